"""What the status says about a change of size."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api import conditions as c
from memcached_api.memcached.scaling import duration_seconds
from memcached_api.memcached.types import MemcachedSpec, warm_scaling_of
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.engine.reporting.lists import failure
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import Key
from memcached_operator.memcached.addresses import slot_name
from memcached_operator.memcached.proxies import unlisted
from memcached_operator.memcached.scaling.facts import others, unready_slots
from memcached_operator.memcached.scaling.latch import Latch
from memcached_operator.parts.ring import Phase
from memcached_operator.world.snapshot import Snapshot

STUCK_SECONDS: Final = 900.0
"""Seconds after which a phase that waits for something is reported as stuck. A rollout of proxies takes 10 to 20 s."""


def scaling_status(
    snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool
) -> dict[str, Any]:
    """The field `status.scaling`; empty while the size is stable. `updated`: no pod of a slot is to be updated."""
    if latch.is_stable:
        return {}
    times = {"since": latch.since, "until": _until(latch, spec)}
    waiting = waiting_for(snapshot, spec, latch, now, updated=updated)
    return {
        "from": latch.source,
        "to": latch.target,
        "phase": str(latch.phase),
        "change": latch.change,
        **{name: timestamp(time) for name, time in times.items() if time is not None},
        **({"waitingFor": waiting} if waiting else {}),
    }


def problems(
    snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool
) -> Iterator[Problem]:
    """What happens now, as a reason of Progressing; nothing while the size is stable. `updated`: as above."""
    if latch.is_stable:
        return
    waiting, until = waiting_for(snapshot, spec, latch, now, updated=updated), _until(latch, spec)
    begun = "next" if latch.phase is Phase.WAIT else f"in phases, now {latch.phase}"
    details = [
        f"The size changes from {latch.source} to {latch.target} slots {begun}",
        *([waiting] if waiting else []),
        *([f"until {timestamp(until)}"] if until is not None else []),
        *_later(spec, latch),
    ]
    age = 0.0 if latch.since is None else (now - latch.since).total_seconds()
    is_stuck = latch.is_waiting and bool(waiting) and age >= STUCK_SECONDS
    yield Problem(c.MOVE_STUCK if is_stuck else c.MOVING_KEYS, "; ".join(details))


def waiting_for(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool) -> str:
    """What prevents the next phase, as a clause; empty for nothing but the duration of Move."""
    unready = [slot for slot, _ in unready_slots(snapshot, latch, now)]
    slot = f"slot {slot_name(snapshot.cr, unready[0])} is not ready" if unready else ""
    if latch.phase is Phase.WAIT and slot:
        return slot
    if unknown := unlisted(snapshot):
        cause = next(_failures(snapshot), f"{unknown[0].plural} are not listed")
        return f"it is not known which slots proxies use: {cause}"
    if slot:
        return f"{slot}: writes of keys that move fail. Repair it{_end_early(spec, latch)}"
    if users := others(snapshot, latch):
        return _proxies(users, latch)
    return "pods are still being updated" if latch.phase is Phase.WAIT and not updated else ""


def _failures(snapshot: Snapshot) -> Iterator[str]:
    """Why proxies or their pods cannot be listed."""
    for resource, known in snapshot.naming.items():
        if known.has_failed:
            yield failure(resource, snapshot.namespace, known)


def _proxies(users: list[Key], latch: Latch) -> str:
    """That proxies have pods with another ring."""
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    verb = "use" if more else "uses"
    other = "other slots" if latch.phase is Phase.WAIT else "another phase"
    return f"{users[0].resource.kind} {users[0].name}{more} still {verb} {other}"


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


def _until(latch: Latch, spec: MemcachedSpec) -> datetime | None:
    """The end of Move; None in another phase, or before all proxies have it."""
    if latch.moving is None:
        return None
    warm = warm_scaling_of(spec)
    return latch.moving + timedelta(seconds=0 if warm is None else duration_seconds(warm))
