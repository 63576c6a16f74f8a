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
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Snapshot


def current(snapshot: Snapshot, spec: MemcachedSpec) -> Latch | None:
    """The state of the change of size; None without `spec.scaling.warm`, unless one takes place.

    Without a record, as after the StatefulSet was deleted with `--cascade=orphan`, it is that of the status: no proxy
    has seen a later one. A record of more slots than exist or are wanted is not the operator's.
    """
    if not is_stable(spec):
        return None
    status = nested_map(snapshot.cr, "status")
    existing, servers = existing_size(snapshot), len(nested_list(status, "servers"))
    latch = recorded(snapshot.workload(STATEFULSETS))
    if latch is not None and latch.kept <= max(existing, servers, spec.size):
        return latch
    latch = published(nested_map(status, "scaling"))
    return latch if latch is not None or warm_scaling_of(spec) is None else stable(servers or existing or spec.size)


def facts(snapshot: Snapshot, spec: MemcachedSpec, latch: Latch, now: datetime, *, updated: bool) -> Facts:
    """The facts for the table. `updated`: no pod is to be updated."""
    warm, unknown = warm_scaling_of(spec), bool(unlisted(snapshot))
    unready = dict(unready_slots(snapshot, latch, now))
    leaving = [seconds for slot, seconds in unready.items() if slot >= latch.target]
    return Facts(
        size=spec.size,
        duration=None if warm is None else duration_seconds(warm),
        used=unknown or any(use.servers for use in uses(snapshot).values()),
        alone=is_published(snapshot, latch) and not unknown and not others(snapshot, latch),
        ready=updated and not unready and existing_size(snapshot) == latch.kept,
        broken=max(unready.values(), default=None),
        leaving=max(leaving, default=None),
        now=now,
    )


def is_published(snapshot: Snapshot, latch: Latch) -> bool:
    """Whether the status, which the controller of the proxies reads, contains a state."""
    found = nested_map(snapshot.cr, "status", "scaling")
    state = (latch.source, latch.target, latch.phase, latch.change)
    return tuple(found.get(name) for name in ("from", "to", "phase", "change")) == state


def others(snapshot: Snapshot, latch: Latch) -> list[Key]:
    """The proxies that may use another ring than that of a state; if none does, the pods of deleted ones."""
    wanted = latch.ring("", "").usage
    found = [key for key, use in uses(snapshot).items() if use.servers and use.usage != wanted]
    return [key for key in found if key.resource != PODS] or found


def unready_slots(snapshot: Snapshot, latch: Latch, now: datetime) -> Iterator[tuple[int, float]]:
    """The slots that are not ready, and the seconds for which this is known, at most since the last arrow.

    0 without a pod: its next one is being created, or the status says why it is not.
    """
    pods = {pod.name: pod for pod in snapshot.pods}
    for slot in range(latch.kept):
        pod = pods.get(slot_name(snapshot.cr, slot))
        if pod is None or not (pod.is_active and pod.is_ready):
            began = None if pod is None else _unready_since(pod, now)
            start = max(began or now, latch.since or now)
            yield slot, max(0.0, (now - start).total_seconds())


def _unready_since(pod: Pod, now: datetime) -> datetime | None:
    """The time from which a pod is not ready; None if that is not known."""
    ready = pod.condition("Ready")
    if not ready.is_true and (since := past_time(ready.last_transition_time, now)) is not None:
        return since
    meta = pod.metadata
    return past_time(meta.creation_timestamp if pod.is_active else meta.deletion_timestamp, now)
