"""The change of size for a plan: the next state, its deadlines, and what is reported."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.times import earliest
from memcached_operator.memcached.scaling import report
from memcached_operator.memcached.scaling.decision import ABORT_SECONDS, LEAVING_SECONDS, Facts, advance
from memcached_operator.memcached.scaling.facts import current, facts, is_published
from memcached_operator.memcached.scaling.latch import Latch
from memcached_operator.parts.ring import Phase
from memcached_operator.world.snapshot import Snapshot

PUBLISH_DELAY: Final = 1.0
"""Seconds until the plan is made again while the status does not contain the state yet: its own patch is no event."""


@dataclass(frozen=True)
class Change:
    """The state of a change of size now and next. `latch`: the next one; None if the size simply changes.

    `needs_users`: the arrow depends on the pods of proxies, which are listed before it is written. `problems`: what is
    reported. `requeue_after`: seconds until the state may change without an event, or None.
    """

    latch: Latch | None = None
    needs_users: bool = False
    problems: tuple[Problem, ...] = ()
    requeue_after: float | None = None

    @property
    def published(self) -> int | None:
        """The number of slots that clients should use; None for that of the spec."""
        return None if self.latch is None else self.latch.published

    @property
    def kept(self) -> int | None:
        """The number of slots that must exist; None for that of the spec."""
        return None if self.latch is None else self.latch.kept

    @property
    def is_moving(self) -> bool:
        """Whether no slot may be updated, because proxies may use routes of a phase."""
        return self.latch is not None and self.latch.is_moving

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the StatefulSet."""
        return {} if self.latch is None else self.latch.annotations()


SIMPLE: Final = Change()
"""The size simply changes: without `spec.scaling.warm`."""


def change_of(snapshot: Snapshot, spec: MemcachedSpec, now: datetime, *, updated: bool) -> Change | None:
    """The change of size of a Memcached; None without one, and without `spec.scaling.warm`.

    `updated`: no pod is to be updated.
    """
    latch = current(snapshot, spec)
    if latch is None:
        return None
    known = facts(snapshot, spec, latch, now, updated=updated)
    following = advance(latch, known)
    if following is None:
        return Change(None)
    shown = latch if following == latch else following
    return Change(
        following,
        following != latch and _needs_users(latch, following),
        tuple(report.problems(snapshot, spec, shown, now, updated=updated)),
        _requeue_after(snapshot, following, known),
    )


def _needs_users(latch: Latch, following: Latch) -> bool:
    """Whether an arrow depends on all proxies being alone."""
    is_begun_or_changed = following.phase is Phase.WAIT
    is_given_up = following.is_stable and latch.phase in (Phase.WAIT, Phase.PREPARE)
    return not is_begun_or_changed and not is_given_up


def _requeue_after(snapshot: Snapshot, latch: Latch, known: Facts) -> float | None:
    """The earliest deadline of a state."""
    if latch.is_stable:
        return None
    age = 0.0 if latch.since is None else (known.now - latch.since).total_seconds()
    left = None
    if latch.moving is not None and known.duration is not None:
        left = max(PUBLISH_DELAY, known.duration - (known.now - latch.moving).total_seconds())
    return earliest(
        (
            None if is_published(snapshot, latch) else PUBLISH_DELAY,
            left,
            _left(ABORT_SECONDS, known.broken) if latch.phase is Phase.PREPARE else None,
            _left(LEAVING_SECONDS, known.leaving) if latch.phase is Phase.MOVE else None,
            _left(report.STUCK_SECONDS, age),
        )
    )


def _left(deadline: float, elapsed: float | None) -> float | None:
    """The seconds until a deadline; None if it has passed. `elapsed`: None if it does not run."""
    return None if elapsed is None or elapsed >= deadline else deadline - elapsed
