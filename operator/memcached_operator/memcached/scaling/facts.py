"""What a change of size needs of a snapshot: its state, who uses another ring, and which slots are not ready."""

from collections.abc import Iterator
from datetime import datetime

from memcached_api.memcached.scaling import duration_seconds
from memcached_api.memcached.types import MemcachedSpec, is_stable, warm_scaling_of
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, nested_list, nested_map
from memcached_operator.kube.times import past_time
from memcached_operator.memcached.addresses import slot_name
from memcached_operator.memcached.proxies import existing_size, unlisted, uses
from memcached_operator.memcached.scaling.decision import Facts
from memcached_operator.memcached.scaling.latch import Latch, published, recorded, stable
from memcached_operator.world.snapshot import Snapshot


def current(snapshot: Snapshot, spec: MemcachedSpec) -> Latch | None:
    """The state of the change of size; None without `spec.scaling.warm`, unless one takes place.

    Without a record, as after the StatefulSet was deleted with `--cascade=orphan`, it is that of the status: no proxy
    has seen a later one.
    """
    live = snapshot.workload(STATEFULSETS)
    if (latch := recorded(live)) is not None or warm_scaling_of(spec) is None or not is_stable(spec):
        return latch
    status = nested_map(snapshot.cr, "status")
    known = len(nested_list(status, "servers")) or existing_size(snapshot) or spec.size
    return published(nested_map(status, "scaling")) or stable(known)


def facts(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool) -> Facts:
    """The facts for the table. `updated`: no pod is to be updated."""
    warm = warm_scaling_of(spec)
    unready = dict(unready_slots(snapshot, latch, now))
    is_alone = is_published(snapshot, latch) and not unlisted(snapshot) and not others(snapshot, latch)
    leaving = [seconds for slot, seconds in unready.items() if slot >= latch.target]
    return Facts(
        size=spec.size,
        duration=None if warm is None else duration_seconds(warm),
        alone=is_alone,
        ready=updated and not unready and existing_size(snapshot) == latch.kept,
        broken=max(unready.values(), default=None),
        leaving=max(leaving, default=None),
        now=now,
    )


def is_published(snapshot: Snapshot, latch: Latch) -> bool:
    """Whether the status, which the controller of the proxies reads, contains a state."""
    found = nested_map(snapshot.cr, "status", "scaling")
    return (found.get("phase"), found.get("change")) == (latch.phase, latch.change)


def others(snapshot: Snapshot, latch: Latch) -> list[Key]:
    """The proxies that may use another ring than that of a state; if none does, the pods of deleted ones."""
    wanted = latch.ring("", "").usage
    found = [key for key, use in uses(snapshot).items() if use.servers and use.usage != wanted]
    return [key for key in found if key.resource != PODS] or found


def unready_slots(snapshot: Snapshot, latch: Latch, now: datetime) -> Iterator[tuple[int, float]]:
    """The slots that are not ready, and the seconds for which they have not been, at most since the last arrow."""
    pods = {pod.name: pod for pod in snapshot.pods if pod.is_active}
    start = latch.since or now
    for slot in range(latch.kept):
        pod = pods.get(slot_name(snapshot.cr, slot))
        if pod is not None and pod.is_ready:
            continue
        began = None if pod is None else past_time(pod.condition("Ready").last_transition_time, now)
        yield slot, max(0.0, (now - max(start, began or start)).total_seconds())
