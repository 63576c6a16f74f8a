"""The ring that the pods of a MemcachedProxy should have, and the one that they get next."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from memcached_api.annotations import RING_ANNOTATION
from memcached_operator.kube import texts
from memcached_operator.kube.resource import DEPLOYMENTS, Object
from memcached_operator.memcachedproxy.references import MEMCACHEDS, Cache, Slots, cache_of, obstacle, shows
from memcached_operator.memcachedproxy.ring import next_ring
from memcached_operator.parts.ring import CORRECT, NO_USE, Ring, Use, ring_of
from memcached_operator.world.kind import Reference
from memcached_operator.world.pod import has_completed
from memcached_operator.world.snapshot import Snapshot


class Target(NamedTuple):
    """A Memcached, and the rings of the pods.

    `slots`: the addresses of its slots. `ring`: now; None without pods. `announced`: the next one. `wanted`: that of
    all slots.

    `announced` differs from `ring` until the status contains it. Then the Memcached keeps these slots, whatever its
    size becomes: pods never get a slot that is removed at the same time.
    """

    cache: Cache
    slots: Slots
    ring: Ring | None
    announced: Ring
    wanted: Ring


def current_ring(snapshot: Snapshot) -> Ring | None:
    """The ring of the pod template; None without a Deployment, or without a valid one."""
    live = snapshot.workload(DEPLOYMENTS)
    return None if live is None else ring_of(live["spec"]["template"])


def target(snapshot: Snapshot, cache: Cache, slots: Slots) -> Target:
    """The rings with a Memcached. `slots`: the addresses of its slots."""
    now = current_ring(snapshot)
    wanted = cache.ring(slots.name)
    announced = next_ring(now, wanted, ready=cache.ready)
    is_new = now is None or not now.is_of(announced) or now.servers < announced.servers
    if is_new and shows(snapshot.cr).get(announced.name, NO_USE).servers < announced.servers:
        return Target(cache, slots, now, announced, wanted)
    return Target(cache, slots, announced, announced, wanted)


def target_of(snapshot: Snapshot, name: str) -> Target | None:
    """The rings with the Memcached of this name; None while it cannot be used."""
    cache = cache_of(snapshot, name)
    if cache is None or cache.slots is None or obstacle(snapshot, name, cache) is not None:
        return None
    return target(snapshot, cache, cache.slots)


def _used_by(pod: Object) -> Mapping[str, Use]:
    """The slots that a pod uses, by the name of the Memcached; empty for another pod, or one that has ended.

    Any pod with a ring counts, whatever its owner: the MemcachedProxy may not exist any more.
    """
    ring = None if has_completed(pod) else ring_of(pod)
    return {} if ring is None else {ring.name: Use(ring.servers, ring.usage)}


def _names(pod: Object) -> Iterator[str]:
    yield from _used_by(pod)


def ringless(pod: Object) -> str:
    """Why it is not known which slots a pod uses; empty if it is, or if the pod has ended."""
    if has_completed(pod) or ring_of(pod) is not None:
        return ""
    name = texts.name(pod["metadata"]["name"])
    return f"No slot is removed, because pod {name} has no valid annotation {RING_ANNOTATION}. {CORRECT}"


POD_REFERENCE: Final[Reference[None]] = Reference(MEMCACHEDS, _names, reads=None, shows=_used_by, unknown=ringless)
"""The Memcached whose slots a pod uses. It shows the same as a MemcachedProxy."""
