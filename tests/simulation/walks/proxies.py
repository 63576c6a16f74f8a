"""What holds for slots that proxies use: functions of what has happened, without the product's own."""

from collections.abc import Iterator
from typing import Final

from faults.routes import routes_of, template_routes
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Key, Object, controller_of, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from simulation.cluster.access import is_ready
from simulation.walks.specs import NAMESPACE
from simulation.walks.world import USER, Change, World, is_deleted

TRUSTED: Final = frozenset({PODS.plural, DEPLOYMENTS.plural, MEMCACHEDS.plural, MEMCACHEDPROXIES.plural})
"""The resources whose lists must be complete: from an empty one it follows that no proxy uses a slot."""


class Replay:
    """The objects at each moment of a walk. `latest`: the last version of each by uid, even after its deletion.

    `left`: the number of slots of each Memcached that the operator has scaled in, until it has another number.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.latest: dict[str, Object] = {}
        self.left: dict[str, int] = {}

    def add(self, change: Change) -> None:
        """The next change."""
        self.latest[change.new["metadata"]["uid"]] = change.new
        if change.key.resource == STATEFULSETS:
            self._count(change)
        if change.what == "DELETED":
            self.objects.pop(change.key, None)
        else:
            self.objects[change.key] = change.new

    def _count(self, change: Change) -> None:
        """The slots of a StatefulSet."""
        after = change.new["spec"].get("replicas", 1)
        before = after if change.old is None else change.old["spec"].get("replicas", 1)
        if change.user == USER and change.what == "MODIFIED" and after < before:
            self.left[change.key.name] = after
        elif after != before or change.what != "MODIFIED":
            self.left.pop(change.key.name, None)

    def of(self, resource: object) -> list[Object]:
        """The existing objects of a resource."""
        return [obj for key, obj in self.objects.items() if key.resource == resource]

    def proxy_of(self, obj: Object) -> str:
        """The name of the existing MemcachedProxy that controls an object, directly or not; empty without one."""
        owner = controller_of(obj)
        while owner is not None and owner["kind"] != MEMCACHEDPROXIES.kind:
            owner = controller_of(self.latest.get(owner["uid"], {"metadata": {}}))
        if owner is None:
            return ""
        found = self.objects.get(Key(MEMCACHEDPROXIES, NAMESPACE, owner["name"]))
        return owner["name"] if found is not None and found["metadata"]["uid"] == owner["uid"] else ""

    def used(self, cache: str) -> dict[str, int]:
        """The number of slots of a Memcached that pods and pod templates of existing proxies use, by their names.

        Pods count also after the deletion of their proxy, until they do not exist any more.
        """
        found = {f"pod {pod['metadata']['name']}": routes_of(pod) for pod in self.of(PODS)}
        for live in self.of(DEPLOYMENTS):
            if self.proxy_of(live):
                found[f"Deployment {live['metadata']['name']}"] = template_routes(live)
        return {name: routes.slots for name, routes in found.items() if routes is not None and routes.cache == cache}


def slot_violations(world: World) -> Iterator[str]:
    """What the operator did with slots, and with the pods that use them, and must not do."""
    replay, ready = Replay(), set[str]()
    is_trusted = not world.unlisted & TRUSTED
    for change in world.history:
        if change.user == USER and change.key.resource == DEPLOYMENTS and change.what != "DELETED" and is_trusted:
            yield from _missing_slots(replay, change)
        if change.user == USER and change.old is not None:
            if change.key.resource == STATEFULSETS and is_trusted:
                yield from _removed_slots(replay, change, change.old)
            if change.key.resource == DEPLOYMENTS and replay.proxy_of(change.old):
                yield from _removed_pods(change, change.old)
                yield from _early_slots(replay, change, change.old, ready)
        replay.add(change)
        if change.key.resource == PODS and is_ready(change.new):
            ready.add(change.key.name)


def _removed_slots(replay: Replay, change: Change, old: Object) -> Iterator[str]:
    """A Memcached is scaled in although a pod of a proxy uses its slots, even one that is being deleted."""
    kept, before = (obj["spec"].get("replicas", 1) for obj in (change.new, old))
    if change.what != "MODIFIED" or kept >= before:
        return
    for user, slots in replay.used(change.key.name).items():
        if slots > kept:
            yield f"{change.at:.3f}: {change.key} was scaled from {before} to {kept}, but {user} uses {slots} slots"


def _missing_slots(replay: Replay, change: Change) -> Iterator[str]:
    """A pod template gets slots that the operator has removed."""
    before, after = (None if obj is None else template_routes(obj) for obj in (change.old, change.new))
    if after is None or before == after:
        return
    left = replay.left.get(after.cache)
    if left is not None and left < after.slots:
        yield f"{change.at:.3f}: {change.key} uses {after.slots} slots of {after.cache}, of which {left} are left"


def _removed_pods(change: Change, old: Object) -> Iterator[str]:
    """The Deployment of a proxy is deleted, or has no pods any more."""
    if change.what == "DELETED" or is_deleted(change.new) != is_deleted(old):
        yield f"{change.at:.3f}: the operator deleted {change.key}"
    elif (old["spec"].get("replicas", 1) and not change.new["spec"].get("replicas", 1)) or (
        template_routes(old) is not None and template_routes(change.new) is None
    ):
        yield f"{change.at:.3f}: the operator removed the pods of {change.key}, or their routes"


def _early_slots(replay: Replay, change: Change, old: Object, ready: set[str]) -> Iterator[str]:
    """A pod template gets slots that have never been ready, although its pods serve with others.

    If their Memcached does not exist any more, it can get them: they cannot serve.
    """
    before, after = template_routes(old), template_routes(change.new)
    if before is None or after is None or before == after:
        return
    live = replay.objects.get(Key(MEMCACHEDS, NAMESPACE, before.cache))
    if live is None or is_deleted(live) or live["metadata"]["uid"] not in json_of(old):
        return
    first = before.slots if before.cache == after.cache else 0
    for slot in range(first, after.slots):
        if (name := f"{after.cache}-{slot}") not in ready:
            yield f"{change.at:.3f}: {change.key} uses slot {name}, which has never been ready"


def json_of(live: Object) -> str:
    """The annotations of a pod template as text, which contain the uid of the Memcached."""
    return str(nested_map(live, "spec", "template", "metadata", "annotations"))


def used_slots(world: World, cache: str) -> int:
    """The number of slots of a Memcached that are used now, by pods or by the pod templates of existing proxies."""
    replay = Replay()
    for change in world.history:
        replay.add(change)
    return max(replay.used(cache).values(), default=0)
