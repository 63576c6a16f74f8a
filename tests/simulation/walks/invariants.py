"""What holds at the end of a walk. Written from the documentation, and from what the cluster contains."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from faults.campaigns.drift import NOTE
from faults.state import difference
from memcached_api import conditions as c
from memcached_operator.kube.labels import INSTANCE, MANAGED_BY, MANAGER
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    PODS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    controller_of,
    nested_list,
    nested_map,
)
from simulation.cluster.access import REPLICA_SETS, is_ready
from simulation.walks.actions import is_foreign
from simulation.walks.proxies import used_slots
from simulation.walks.references import RESOURCES, reference, state
from simulation.walks.specs import NAMESPACE, OWNERS, STABLE, Spec, is_comparable, is_proxy, key_of_owner
from simulation.walks.updates import Updated
from simulation.walks.world import FINALIZER, World

NOTES: Final = (NOTE, "memcached-operator.example.com/retried-at")
"""Annotations that may remain: another client's, and the one that has the cluster create missing pods again."""
MAX_NAMED: Final = 3
"""Problems that a message names."""


def problem_of(world: World) -> str:
    """The first object that is not as users want it; empty if there is none."""
    found = (f"{name}: {problem}" for name in OWNERS for problem in _problems(world, name))
    return next(found, "")


def _problems(world: World, name: str) -> Iterator[str]:
    spec, live = world.wanted.get(name), world.get(key_of_owner(name))
    yield from _leftovers(world, name)
    if spec is None or live is None:
        if (spec is None) != (live is None):
            yield f"exists: {live is not None}, want: {spec}"
        return
    yield from _generations(live)
    yield from _counts(world, name, live)
    if is_proxy(name) and not is_comparable(name, world.wanted):
        yield from _unserved(world, name, spec, live)
    elif name in STABLE and _replicas(world, name) > spec.size:
        yield from _kept_slots(world, name, spec, live)
    elif is_proxy(name) and any(True for _ in _obstacles(world, spec.reference)):
        return  # the proxies may wait for pods of the Memcached that cannot start
    elif not spec.is_paused(name):
        blocked = _blocked(world, name)
        yield from _conditions(live, blocked)
        yield from _children(world, name, live, blocked)
        if isinstance(spec, Updated) and not blocked:
            yield from world.updates.incomplete(world.get(Key(STATEFULSETS, NAMESPACE, name)) or {})
    elif not any(True for _ in _obstacles(world, name)) and _states(live)[c.PROGRESSING] != (c.TRUE, c.PAUSED):
        yield f"the pause is not reported: {_states(live)}"


def _unserved(world: World, name: str, spec: Spec, live: Object) -> Iterator[str]:
    """A MemcachedProxy that is paused, or whose Memcached is paused or cannot be used: its pods stay."""
    if any(True for _ in _obstacles(world, name)):
        return
    found, cache = _states(live), spec.reference
    if cache in STABLE and (served := world.get(key_of_owner(cache))) is not None:
        yield from _waiting(world, name, spec, found, served)
        return
    exists = cache in OWNERS and world.get(key_of_owner(cache)) is not None
    reason = c.REFERENCE_INVALID if exists else c.REFERENCE_NOT_FOUND
    if found[c.DEGRADED] != (c.TRUE, reason):
        yield f"Degraded is {found[c.DEGRADED]}, want {reason}"
    if (c.STALLED in found) != exists:
        yield f"the conditions are {found}"
    workload = world.get(Key(DEPLOYMENTS, NAMESPACE, name))
    if workload is None or not _is_of(workload, {live["metadata"]["uid"]}) or workload["spec"].get("paused"):
        return  # a Deployment that is created during a pause has no pods; without a Memcached, none is adopted
    pods = workload["spec"]["replicas"]
    if live["status"].get("readyReplicas", 0) < pods or (pods and found[c.AVAILABLE][0] != c.TRUE):
        yield f"{pods} pods should serve, although the Memcached cannot be used: {live['status']}"


def _waiting(
    world: World, name: str, spec: Spec, found: Mapping[str, tuple[str, str]], served: Object
) -> Iterator[str]:
    """The conditions of a MemcachedProxy that is paused, or whose Memcached is. `served`: that Memcached."""
    if _states(served)[c.AVAILABLE][0] == c.FALSE:
        reason = c.PAUSED if spec.is_paused(name) else c.WAITING_FOR_MEMCACHED
        if found[c.PROGRESSING] != (c.TRUE, reason) or found[c.READY][0] != c.FALSE:
            yield f"the Memcached is not available, but the conditions are {found}"
    elif spec.is_paused(name) and found[c.PROGRESSING] != (c.TRUE, c.PAUSED):
        yield f"the pause is not reported: {found}"
    elif not spec.is_paused(name) and not any(True for _ in _obstacles(world, spec.reference)) and found != HEALTHY:
        yield f"the conditions are {found}"


def _replicas(world: World, name: str) -> int:
    """The number of slots of a StatefulSet; 0 without one."""
    return nested_map(world.get(Key(STATEFULSETS, NAMESPACE, name)) or {}, "spec").get("replicas", 0)


def _kept_slots(world: World, name: str, spec: Spec, live: Object) -> Iterator[str]:
    """More slots than those of the spec are kept exactly while proxies use them, and the wait is reported.

    During a pause, a proxy may report more slots than it uses: its pods are not replaced.
    """
    if any(True for _ in _obstacles(world, name)):
        return  # what blocks its children may be reported instead
    kept, used = _replicas(world, name), max(used_slots(world, name), _reported_slots(world, name))
    if used < kept:
        yield f"{kept} slots are kept, but proxies use {used}"
    counts = [live["status"].get(name, 0) for name in ("replicas", "readyReplicas", "updatedReplicas")]
    if not spec.is_paused(name) and set(counts) != {kept}:
        yield f"the rollout is not complete: {counts}, want {kept}"
    if _states(live)[c.PROGRESSING][1] not in (c.WAITING_FOR_PROXIES, c.PAUSED):
        yield f"the wait for proxies is not reported: {_states(live)}"


def _reported_slots(world: World, name: str) -> int:
    """The number of slots of a Memcached that MemcachedProxies report whose rollout is paused."""
    paused = (each for each, spec in world.wanted.items() if is_proxy(each) and spec.is_paused(each))
    statuses = (nested_map(world.get(key_of_owner(each)) or {}, "status") for each in paused)
    caches = (cache for status in statuses for cache in nested_list(status, "caches") if cache["name"] == name)
    return max((cache["servers"] for cache in caches), default=0)


def _leftovers(world: World, name: str) -> Iterator[str]:
    """The children of an object that does not exist any more, except those that a finalizer holds."""
    live = world.get(key_of_owner(name))
    for key, obj in world.objects():
        owner = controller_of(obj)
        if owner is None or (owner["kind"], owner["name"]) != (OWNERS[name].kind, name) or _is_held(obj):
            continue
        if live is None or owner["uid"] != live["metadata"]["uid"]:
            yield f"{key} is left of a deleted object"


def _generations(live: Object) -> Iterator[str]:
    generation = live["metadata"]["generation"]
    found = [each.get("observedGeneration") for each in nested_list(live, "status", "conditions")]
    found.append(nested_map(live, "status").get("observedGeneration"))
    if set(found) != {generation}:
        yield f"the status is of generations {found}, want {generation}"


def _counts(world: World, name: str, live: Object) -> Iterator[str]:
    """The status names exactly the pods of the object, unless its workload is being deleted, perhaps without them."""
    if any(
        key.resource in (DEPLOYMENTS, STATEFULSETS) and key.name == name and _is_held(obj)
        for key, obj in world.objects()
    ):
        return
    pods = [pod for pod in _pods_of(world, name, live) if not pod["metadata"].get("deletionTimestamp")]
    status, ready = nested_map(live, "status"), sum(map(is_ready, pods))
    if status.get("readyReplicas", 0) != ready:
        yield f"readyReplicas is {status.get('readyReplicas')}, want {ready}"
    names = sorted(pod["metadata"]["name"] for pod in pods if nested_map(pod, "status").get("phase") == "Running")
    if sorted(status.get("nodes", ())) != names:
        yield f"nodes are {status.get('nodes')}, want {names}"


def _pods_of(world: World, name: str, live: Object) -> list[Object]:
    """The pods of the workload that an object controls."""
    uids = {live["metadata"]["uid"]}
    for resources in ((DEPLOYMENTS, STATEFULSETS), (REPLICA_SETS,)):
        uids |= {
            obj["metadata"]["uid"] for key, obj in world.objects() if key.resource in resources and _is_of(obj, uids)
        }
    return [obj for key, obj in world.objects() if key.resource == PODS and _is_of(obj, uids)]


def _is_of(obj: Object, uids: set[str]) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner["uid"] in uids


def _blocked(world: World, name: str) -> dict[Key, str]:
    """The children that the walk has blocked, and the reason that a condition must have."""
    obstacles = dict(_obstacles(world, name))
    wanted = [Key(resource, NAMESPACE, name + suffix) for resource, suffix in reference(name, world.wanted)]
    return {key: obstacles[key] for key in wanted if key in obstacles}


def _obstacles(world: World, name: str) -> Iterator[tuple[Key, str]]:
    """The objects with the names of children that are not ours, or that a finalizer holds."""
    for key, obj in world.objects():
        if key.resource not in RESOURCES or not key.name.startswith(name):
            continue
        if is_foreign(world, obj) or (controller_of(obj) is None and not _has_labels(obj, name)):
            yield key, c.CONFLICT
        elif _is_held(obj):
            yield key, c.WAITING_FOR_DELETION


def _is_watched(obj: Object) -> bool:
    return nested_map(obj, "metadata", "labels").get(MANAGED_BY) == MANAGER


def _has_labels(obj: Object, name: str) -> bool:
    """Whether an object without a controller has the labels with which it is adopted."""
    return nested_map(obj, "metadata", "labels").get(INSTANCE) == name and _is_watched(obj)


def _is_held(obj: Object) -> bool:
    meta = obj["metadata"]
    return bool(meta.get("deletionTimestamp")) and FINALIZER in (meta.get("finalizers") or ())


def _states(live: Object) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in nested_list(live, "status", "conditions")}


HEALTHY: Final = {
    c.AVAILABLE: (c.TRUE, c.MINIMUM_REPLICAS_AVAILABLE),
    c.PROGRESSING: (c.FALSE, c.ROLLOUT_COMPLETE),
    c.DEGRADED: (c.FALSE, c.AS_EXPECTED),
    c.READY: (c.TRUE, c.AS_EXPECTED),
}


def _conditions(live: Object, blocked: Mapping[Key, str]) -> Iterator[str]:
    """All conditions are good, or they name what blocks the children."""
    found = _states(live)
    if not blocked and found != HEALTHY:
        yield f"the conditions are {found}: {json.dumps(live['status']['conditions'])}"
    for reason, kind in ((c.CONFLICT, c.DEGRADED), (c.WAITING_FOR_DELETION, c.PROGRESSING)):
        keys = [key for key, each in blocked.items() if each == reason]
        if keys and found[kind] != (c.TRUE, reason):
            yield f"{kind} is {found[kind]}, want {reason} because of {keys[0]}"
        message = next(each["message"] for each in live["status"]["conditions"] if each["type"] == kind)
        for key in keys if len(keys) <= MAX_NAMED else ():
            if f"{key.resource.kind} {key.name} " not in message:
                yield f"{kind} does not name {key}: {message}"


def _children(world: World, name: str, live: Object, blocked: Mapping[Key, str]) -> Iterator[str]:
    """The object and its children are those of a run without faults, and no others exist."""
    expected = reference(name, world.wanted)
    for (resource, suffix), wanted in expected.items():
        key = Key(resource, NAMESPACE, name + suffix)
        if key in blocked or (blocked and resource in (OWNERS[name], CONFIG_MAPS, NETWORK_POLICIES)):
            # The status has the conflict, the published addresses lack those of a blocked Service, and clients can
            # reach the ports of a workload that is still being deleted.
            continue
        obj = world.get(key)
        found = None if obj is None else _comparable(state(obj, name), wanted)
        if resource == OWNERS[name] and (SERVICES, "") not in expected:
            yield from _held_node_ports(world, name, live)
            found = found and {**found, "status": {**found["status"], "nodePorts": wanted["status"]["nodePorts"]}}
        if problem := difference(found, wanted):
            yield f"{key}: {problem}"
    for key, obj in world.objects():
        mine = _is_of(obj, {live["metadata"]["uid"]}) and not _is_held(obj)
        # The operator watches only what has its label. What it does not want, it does not look for.
        if mine and _is_watched(obj) and (key.resource, key.name.removeprefix(name)) not in expected:
            yield f"{key} is not wanted"


def _held_node_ports(world: World, name: str, live: Object) -> Iterator[str]:
    """A Service that is not wanted has its node ports until it is deleted, and the status has them too."""
    service = world.get(Key(SERVICES, NAMESPACE, name))
    is_held = service is not None and _is_of(service, {live["metadata"]["uid"]}) and _is_held(service)
    wanted = [each["nodePort"] for each in nested_list(service or {}, "spec", "ports") if is_held]
    found = [each["nodePort"] for each in nested_list(live, "status", "nodePorts")]
    if sorted(found) != sorted(wanted):
        yield f"status.nodePorts are {found}, want {wanted}"


def _comparable(found: Object, wanted: Object) -> Object:
    """A state without the fields of other clients, and without the reports about them, which stay for an hour."""
    meta = dict(found["metadata"])
    annotations = {key: text for key, text in meta.get("annotations", {}).items() if key not in NOTES}
    meta = {key: value for key, value in {**meta, "annotations": annotations}.items() if value}
    status = found["status"]
    if "conditions" in status:
        pairs = zip(status["conditions"], wanted["status"]["conditions"], strict=False)
        status = {**status, "conditions": [_without_notice(one, other) for one, other in pairs]}
    return {**found, "metadata": meta, "status": status}


def _without_notice(condition: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    own: str = wanted["message"]
    message: str = condition["message"]
    is_longer = condition["type"] == c.DEGRADED and message.startswith(f"{own}. ")
    return {**condition, "message": own} if is_longer else condition
