"""The state of an object and its children without values that differ between runs, and the comparison of two states."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import FIELD_MANAGER, ApiClient
from memcached_operator.kube.resource import Key, Object, Resource, nested_list, nested_map
from support.lists import listed

COUNTS = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "observedGeneration")
"""Fields of a Deployment's status that are compared. The others are times and generated names."""

COUNTERS = ("generation", "observedGeneration", "deployment.kubernetes.io/revision", "fields")
CHILDREN = (
    *(kinds.DEPLOYMENTS, kinds.STATEFULSETS, kinds.SERVICES, kinds.POD_DISRUPTION_BUDGETS),
    *(kinds.NETWORK_POLICIES, kinds.POD_MONITORS, kinds.PROMETHEUS_RULES),
)
"""The resources of the children with the object's name."""
SLOT_CHILDREN = ((kinds.CONFIG_MAPS, "-connection"), (kinds.SERVICES, "-0"), (kinds.SERVICES, "-2"))
"""Those of the other children of a Memcached with slots, and what follows the object's name."""
KEPT = ("labels", "annotations", "generation", "finalizers", "ownerReferences")
"""Fields of the metadata that are compared."""
CHOSEN = ("clusterIP", "clusterIPs", "nodePort")
"""Values that the API server chooses if they are not set."""

UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
READY_CONDITIONS = {"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True"}


async def state_of(client: ApiClient, resource: Resource, namespace: str, name: str) -> Object:
    """An object and its children of the same name, masked; None for each that does not exist."""
    found = {each.plural: await client.get(Key(each, namespace, name)) for each in (resource, *CHILDREN)}
    for each, suffix in SLOT_CHILDREN:
        found[f"{each.plural}{suffix}"] = await client.get(Key(each, namespace, f"{name}{suffix}"))
    state = {plural: obj and masked(obj, namespace) for plural, obj in found.items()}
    obj = found[resource.plural]
    return {
        **state,
        "nodes are the pods": await _nodes_match(client, obj, namespace),
        "node ports are the Service's": _ports(obj, "status", "nodePorts")
        <= _ports(found["services"], "spec", "ports"),
    }


def _ports(obj: Object | None, *path: str) -> set[int]:
    return {port["nodePort"] for port in nested_list(obj or {}, *path) if port.get("nodePort")}


async def _nodes_match(client: ApiClient, obj: Object | None, namespace: str) -> bool:
    """Whether a status names exactly the existing pods."""
    selector = nested_map(obj or {}, "status").get("selector", "")
    if not obj or not selector:
        return obj is None
    pods, _ = await listed(client, kinds.PODS, namespace, selector)
    live = [pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    return sorted(live) == obj["status"].get("nodes")


def masked(obj: Object, namespace: str) -> Object:
    """An object without uids, times, generated names and values chosen by the API server, with our manager's fields."""
    meta = obj["metadata"]
    supervised: Object = {
        "metadata": {name: meta[name] for name in KEPT if meta.get(name)},
        "spec": obj.get("spec", {}),
        "data": obj.get("data", {}),
        "status": _status(obj),
        "fields": sorted(_fields(meta), key=str),
    }
    text = json.dumps(supervised).replace(namespace, "NAMESPACE")
    return json.loads(UID.sub("UID", text), object_hook=_mask)


def is_ready(obj: Object | None) -> bool:
    """Whether an object is Available, not Progressing and not Degraded, for its current generation."""
    if obj is None:
        return False
    generation = obj["metadata"]["generation"]
    found = nested_list(obj, "status", "conditions")
    current = all(each.get("observedGeneration") == generation for each in found)
    ready = {each["type"]: each["status"] for each in found} == READY_CONDITIONS
    return ready and current and nested_map(obj, "status").get("observedGeneration") == generation


def difference(found: object, expected: object, path: str = "") -> str:
    """The first difference between two states; empty if they are equal."""
    if found == expected:
        return ""
    if isinstance(found, dict) and isinstance(expected, dict):
        one, other = cast("Object", found), cast("Object", expected)
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                return difference(one.get(name), other.get(name), f"{path}.{name}")
    if isinstance(found, list) and isinstance(expected, list):
        some, others = cast("list[Any]", found), cast("list[Any]", expected)
        if len(some) == len(others):
            pairs = enumerate(zip(some, others, strict=True))
            return next(difference(one, other, f"{path}[{i}]") for i, (one, other) in pairs if one != other)
    return f"{path[1:]}: got {json.dumps(found)}, want {json.dumps(expected)}"


def without_generations(state: Any) -> Any:
    """A state without generations and revisions, for objects that were changed more often than in the reference."""
    if isinstance(state, dict):
        fields = cast("Object", state).items()
        return {name: without_generations(value) for name, value in fields if name not in COUNTERS}
    return [without_generations(item) for item in cast("list[Any]", state)] if isinstance(state, list) else state


def _status(obj: Object) -> Object:
    status: Object = obj.get("status", {})
    if obj["kind"] in {child.kind for child in (*CHILDREN, kinds.CONFIG_MAPS)}:
        return {name: status[name] for name in COUNTS if name in status}
    conditions = [
        {name: text for name, text in condition.items() if name != "lastTransitionTime"}
        for condition in status.get("conditions", [])
    ]
    return {**status, "conditions": conditions, "nodes": len(status.get("nodes", []))}


def _fields(meta: Object) -> Iterator[Object]:
    found: list[Object] = meta.get("managedFields") or []
    for entry in found:
        # The fields of a status contain names of pods.
        if entry["manager"] == FIELD_MANAGER and not entry.get("subresource"):
            yield {name: entry.get(name) for name in ("operation", "fieldsV1")}


def _mask(obj: Object) -> Object:
    masks = {name: "CHOSEN" for name in CHOSEN if name in obj and obj[name] not in ("None", ["None"])}
    digest = {INTENT_ANNOTATION: "DIGEST"} if INTENT_ANNOTATION in obj else {}
    return {**obj, **masks, **digest}
