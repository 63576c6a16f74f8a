"""What the status says about a change of size."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from memcached_api import conditions as c
from memcached_api.annotations import MOVE_ANNOTATION
from memcached_api.memcached.scaling import duration_seconds
from memcached_api.memcached.types import MemcachedSpec, warm_scaling_of
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.engine.reporting.lists import failure
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import STATEFULSETS, Key, Object
from memcached_operator.memcached.addresses import slot_name
from memcached_operator.memcached.proxies import unlisted, uses
from memcached_operator.memcached.scaling.facts import is_published, others, unready_slots
from memcached_operator.memcached.scaling.latch import Latch, recorded
from memcached_operator.memcached.spec import checked
from memcached_operator.parts.ring import CORRECT, MOVING, Phase
from memcached_operator.world.snapshot import Snapshot

STORED: Final = timedelta(minutes=1)
"""Time after which a state that nothing prevents should have been left."""

STUCK_SECONDS: Final = 900.0
"""Seconds after which a phase that waits for something is reported as stuck. A rollout of proxies takes 10 to 20 s."""


class Report(NamedTuple):
    """The field `status.scaling`, empty while the size is stable, and the reason of Progressing."""

    status: dict[str, Any]
    problems: tuple[Problem, ...]


def report_of(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool) -> Report:
    """What is reported of a state. `updated`: no pod of a slot is to be updated."""
    if latch.is_stable:
        return Report({}, tuple(_not_begun(snapshot, spec, latch)))
    waiting = waiting_for(snapshot, spec, latch, now, updated=updated)
    times = {"since": latch.since, "until": until(latch, spec)}
    status = {
        "from": latch.source,
        "to": latch.target,
        "phase": str(latch.phase),
        "change": latch.change,
        **{name: timestamp(time) for name, time in times.items() if time is not None},
        **({"waitingFor": waiting} if waiting else {}),
    }
    return Report(status, (_problem(spec, latch, now, waiting),))


def _not_begun(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch) -> Iterator[Problem]:
    """That another size is wanted, although the plan has begun the change."""
    live = snapshot.workload(STATEFULSETS)
    if live is not None and warm_scaling_of(spec) is not None and spec.size != latch.source:
        cause = f"the annotation {MOVE_ANNOTATION} of StatefulSet {live['metadata']['name']} does not change. {CORRECT}"
        yield Problem(c.MOVE_STUCK, f"The size stays at {latch.source} instead of {spec.size} slots: {cause}")


def _problem(spec: MemcachedSpec, latch: Latch, now: datetime, waiting: str) -> Problem:
    begun = "next" if latch.phase is Phase.WAIT else f"in phases, now {latch.phase}"
    end, began = until(latch, spec), waits_from(latch, spec)
    details = [
        f"The size changes from {latch.source} to {latch.target} slots {begun}",
        *([waiting] if waiting else []),
        *([f"until {timestamp(end)}"] if end is not None and end > now else []),
        *_later(spec, latch),
    ]
    is_stuck = bool(waiting) and began is not None and (now - began).total_seconds() >= STUCK_SECONDS
    moves = latch.moving is not None and not waiting
    return Problem(c.MOVE_STUCK if is_stuck else c.MOVING_KEYS, "; ".join(details), blocks=not moves)


def waiting_for(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool) -> str:
    """What prevents the next phase, as a clause; empty for nothing but the duration of Move."""
    unready = [slot for slot, _ in unready_slots(snapshot, latch, now)]
    slot = f"slot {slot_name(snapshot.cr, unready[0])} is not ready" if unready else ""
    if latch.phase is Phase.WAIT and slot:
        return slot
    if unknown := unlisted(snapshot):
        cause = next(_failures(snapshot), f"{unknown[0].plural} are not listed")
        return f"it is not known which slots proxies use: {cause}"
    users = others(snapshot, latch)
    if slot and latch.phase in MOVING and not (users and latch.phase is Phase.FINISH):
        return f"{slot}: writes of keys that move fail. Repair it{_end_early(spec, latch)}"
    if users:
        return _proxies(snapshot, users, latch)
    if latch.phase is Phase.WAIT and not updated:
        return "pods are still being updated"
    return _not_stored(snapshot, latch, now)


def _not_stored(snapshot: Snapshot, latch: Latch, now: datetime) -> str:
    """That the state or the status does not get what the operator writes; empty as long as it may be on its way."""
    live, age = snapshot.workload(STATEFULSETS), timedelta() if latch.since is None else now - latch.since
    if live is not None and recorded(live) is None:
        return f"StatefulSet {live['metadata']['name']} has lost its annotation {MOVE_ANNOTATION}. {CORRECT}"
    if latch.moving is not None or age < STORED:
        return ""
    if not is_published(snapshot, latch):
        return "the API server does not store status.scaling; install the operator's CustomResourceDefinitions again"
    return f"the annotation {MOVE_ANNOTATION} of the StatefulSet does not change. {CORRECT}"


def _failures(snapshot: Snapshot) -> Iterator[str]:
    """Why proxies or their pods cannot be listed."""
    for resource, known in snapshot.naming.items():
        if known.has_failed:
            yield failure(resource, snapshot.namespace, known)


def _proxies(snapshot: Snapshot, users: list[Key], latch: Latch) -> str:
    """That proxies have pods with another ring, or that they are being replaced."""
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    name = f"{users[0].resource.kind} {users[0].name}{more}"
    if not uses(snapshot)[users[0]].usage:
        return f"{name} {'have' if more else 'has'} pods that are not updated or not available; see its conditions"
    other = "other slots" if latch.phase is Phase.WAIT else "another phase"
    return f"{name} still {'use' if more else 'uses'} {other}"


def _end_early(spec: MemcachedSpec, latch: Latch) -> str:
    """The other remedy while keys move, with its cost."""
    warm = warm_scaling_of(spec)
    if latch.phase is not Phase.MOVE or warm is None or not duration_seconds(warm):
        return ""
    return ", or set spec.scaling.warm.duration to 0s: items of keys that have not moved yet are lost"


def _later(spec: MemcachedSpec, latch: Latch) -> Iterator[str]:
    """That another size is wanted after this change."""
    if latch.phase in (Phase.MOVE, Phase.FINISH, Phase.PLAIN) and spec.size != latch.target:
        yield f"size {spec.size} follows after it"


def until(latch: Latch, spec: MemcachedSpec) -> datetime | None:
    """The end of Move; None in another phase, or before all proxies have it."""
    if latch.moving is None:
        return None
    warm = warm_scaling_of(spec)
    return latch.moving + timedelta(seconds=0 if warm is None else duration_seconds(warm))


def waits_from(latch: Latch, spec: MemcachedSpec) -> datetime | None:
    """The time from which only slots or proxies can prevent the next state; None if it is stable or not known.

    It can be in the future, in Move.
    """
    return None if latch.is_stable else until(latch, spec) or latch.since


def waiting_since(cr: Object, live: Object | None) -> int | None:
    """The same as Unix time, of a Memcached with its StatefulSet."""
    spec, _ = checked(cr)
    latch = None if spec is None else recorded(live)
    began = None if spec is None or latch is None else waits_from(latch, spec)
    return None if began is None else int(began.timestamp())
