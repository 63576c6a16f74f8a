"""The change of size for a plan: the next state, and its deadlines."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.times import earliest
from memcached_operator.memcached.scaling import report
from memcached_operator.memcached.scaling.decision import ABORT_SECONDS, LEAVING_SECONDS, Facts, advance
from memcached_operator.memcached.scaling.facts import facts, is_published
from memcached_operator.memcached.scaling.latch import Latch
from memcached_operator.parts.ring import Phase
from memcached_operator.world.snapshot import Snapshot

PUBLISH_DELAY: Final = 1.0
"""Seconds until the plan is made again while the status does not contain the state yet: its own patch is no event."""


@dataclass(frozen=True)
class Change:
    """The state of a change of size now and next; None if the size simply changes.

    `needs_users`: the arrow depends on the pods of proxies, which are listed before it is written. `requeue_after`:
    seconds until the state may change without an event, or None.
    """

    latch: Latch | None = None
    following: Latch | None = None
    needs_users: bool = False
    requeue_after: float | None = None

    @property
    def published(self) -> int | None:
        """The number of slots that clients should use; None for that of the spec."""
        return None if self.following is None or self.latch is None else self.latch.published

    @property
    def kept(self) -> int | None:
        """The number of slots that must exist; None for that of the spec."""
        return None if self.following is None else self.following.kept

    @property
    def is_moving(self) -> bool:
        """Whether no slot may be updated, because proxies may use routes of a phase."""
        return self.latch is not None and self.latch.is_moving

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the StatefulSet."""
        return {} if self.following is None else self.following.annotations()


def change_of(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch | None, now: datetime, *, updated: bool) -> Change:
    """The change of size of a Memcached in a state. `updated`: no pod is to be updated."""
    if latch is None:
        return Change()
    known = facts(snapshot, spec, latch, now, updated=updated)
    following = advance(latch, known)
    if following is None:
        return Change(latch)
    needs_users = following != latch and _needs_users(latch, following)
    return Change(latch, following, needs_users, _requeue_after(snapshot, spec, following, known))


def _needs_users(latch: Latch, following: Latch) -> bool:
    """Whether an arrow depends on all proxies being alone: all but those that begin a change or give it up."""
    is_given_up = following.is_stable and latch.phase in (Phase.WAIT, Phase.PREPARE)
    return following.phase is not Phase.WAIT and not is_given_up


def _requeue_after(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, known: Facts) -> float | None:
    """The earliest deadline of a state."""
    if latch.is_stable:
        return None
    until, began = report.until(latch, spec), report.waits_from(latch, spec)
    elapsed = None if began is None else (known.now - began).total_seconds()
    return earliest(
        (
            None if is_published(snapshot, latch) else PUBLISH_DELAY,
            None if until is None else max(0.0, (until - known.now).total_seconds()),
            _left(ABORT_SECONDS, known.broken) if latch.phase is Phase.PREPARE else None,
            _left(LEAVING_SECONDS, known.leaving) if latch.phase is Phase.MOVE else None,
            _left(report.STUCK_SECONDS, elapsed),
        )
    )


def _left(deadline: float, elapsed: float | None) -> float | None:
    """The seconds until a deadline; None if it has passed. `elapsed`: None if it does not run."""
    return None if elapsed is None or elapsed >= deadline else deadline - elapsed
