"""The fields that the API server sets, keeps or rejects before it stores an object.

Source: the strategies in pkg/registry and the validation in pkg/apis of Kubernetes 1.35. All functions change the new
object, which is a fresh copy, and never the old one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from memcached_operator.kube.resource import Object, nested_map
from simulation.api.errors import Cause, invalid, invalid_value
from simulation.api.kinds import ALL_FIELDS, NO_GENERATION, Kind
from simulation.api.pod_updates import keep_all_but_resources, qos, violations_of_resize, violations_of_update

SET_FIELDS: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
"""The fields of a StatefulSet's spec that may change."""
SET_MESSAGE: Final = (
    "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
    "are forbidden"
)


def prepare_create(kind: Kind, obj: Object) -> None:
    """Set or remove the fields of a new object that clients cannot set."""
    if kind.has_status:
        _set(obj, "status", kind.initial_status())
    meta = obj["metadata"]
    for name in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)
    if kind.generation != NO_GENERATION:
        meta["generation"] = 1
    if (function := _CREATE.get(kind.resource.plural)) is not None:
        function(obj)


def _set(obj: Object, name: str, value: Any) -> None:
    if value is None:
        obj.pop(name, None)
    else:
        obj[name] = value


def _create_pod(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", "qosClass": qos(obj["spec"])}
    spec = obj["spec"]
    # The admission plugins Priority, ServiceAccount and DefaultTolerationSeconds.
    spec.setdefault("priority", 0)
    name = spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = name
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(each.get("key") in (None, key) for each in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _create_namespace(obj: Object) -> None:
    obj["spec"].setdefault("finalizers", ["kubernetes"])
    obj["status"] = {"phase": "Active"}


def _create_claim(obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}
    # The admission plugin StorageObjectInUseProtection.
    obj["metadata"].setdefault("finalizers", []).append("kubernetes.io/pvc-protection")


_CREATE: Final[Mapping[str, Callable[[Object], None]]] = {
    "pods": _create_pod,
    "namespaces": _create_namespace,
    "persistentvolumeclaims": _create_claim,
}


def prepare_update(kind: Kind, new: Object, old: Object, subresource: str) -> None:
    """Keep the fields that this endpoint cannot change, and count the generation."""
    if subresource == "status":
        _keep_all_but_status(kind, new, old)
    elif subresource == "resize":
        keep_all_but_resources(new, old)
    elif kind.has_status and subresource != "binding":
        _set(new, "status", old.get("status"))
    meta, before = new["metadata"], old["metadata"]
    for name in ("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        _set(meta, name, before.get(name))
    meta.setdefault("uid", before["uid"])
    if kind.generation != NO_GENERATION and subresource != "status" and _counts(kind, new, old):
        meta["generation"] = before["generation"] + 1


def _keep_all_but_status(kind: Kind, new: Object, old: Object) -> None:
    if kind.custom:
        status, version = new.get("status"), new["metadata"].get("resourceVersion")
        new.clear()
        new.update(old)
        new["metadata"] = {**old["metadata"], "resourceVersion": version}
        _set(new, "status", status)
        return
    for name in [name for name in old if name not in ("metadata", "status")]:
        new[name] = old[name]
    plural, meta = kind.resource.plural, new["metadata"]
    if plural == "deployments":
        _set(meta, "labels", old["metadata"].get("labels"))
    if plural == "pods":
        _set(meta, "ownerReferences", old["metadata"].get("ownerReferences"))
        new["status"].setdefault("qosClass", old["status"].get("qosClass"))
        _keep_observed_generations(new["status"], old["status"])


def _keep_observed_generations(new: Object, old: Object) -> None:
    """A client that clears `observedGeneration` keeps the old value (preserveOldObservedGeneration)."""
    before = {each["type"]: each for each in old.get("conditions", ())}
    conditions: list[Object] = new.get("conditions", [])
    for status, earlier in ((new, old), *((each, before.get(each["type"], {})) for each in conditions)):
        if "observedGeneration" not in status and "observedGeneration" in earlier:
            status["observedGeneration"] = earlier["observedGeneration"]


def _counts(kind: Kind, new: Object, old: Object) -> bool:
    """Whether a change is one of the generation."""
    if kind.generation == ALL_FIELDS:
        return _content(new) != _content(old)
    if new.get(kind.generation) != old.get(kind.generation):
        return True
    # The annotations of a Deployment are copied to its ReplicaSets.
    return kind.resource.plural == "deployments" and nested_map(new, "metadata", "annotations") != nested_map(
        old, "metadata", "annotations"
    )


def _content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "metadata"}


def validate(kind: Kind, new: Object, old: Object | None, subresource: str = "") -> None:
    """Check the rules that the operator or a test can violate. `old`: None for a new object. Raises StatusError."""
    # Metadata is validated twice: by the registry and by the strategy. Owners are validated once more.
    metadata = [*_metadata(new, old or new)]
    owners = [*_owners(new["metadata"])] * 3
    rules = _VALIDATIONS.get(f"{kind.resource.plural}/{subresource}".rstrip("/"), _nothing)
    causes = [*metadata, *metadata, *owners, *rules(new, old)]
    if causes:
        raise invalid(kind.resource, new["metadata"].get("name", ""), *causes)


def _metadata(new: Object, old: Object) -> Iterator[Cause]:
    meta, before = new["metadata"], old["metadata"]
    if meta.get("deletionTimestamp") and set(added := meta.get("finalizers", ())) - set(before.get("finalizers", ())):
        new_ones = [each for each in added if each not in before.get("finalizers", ())]
        names = ", ".join(f'"{each}"' for each in new_ones)
        problem = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield Cause("FieldValueForbidden", f"Forbidden: {problem} []string{{{names}}}", "metadata.finalizers")
    if meta.get("uid") != before.get("uid"):
        yield invalid_value("metadata.uid", meta["uid"], "field is immutable")


def _owners(meta: Object) -> Iterator[Cause]:
    owners: list[Object] = meta.get("ownerReferences") or []
    first, *others = [f"{each['kind']}/{each['name']}" for each in owners if each.get("controller")] or [""]
    shown = [{name: each[name] for name in REFERENCE if name in each} for each in owners]
    for other in others:
        found = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first} and {other}'
        )
        yield invalid_value("metadata.ownerReferences", shown, found, order=None)


REFERENCE: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
"""The fields of an owner reference, in the order of a message."""


def _nothing(new: Object, old: Object | None) -> Iterator[Cause]:
    yield from ()


def _pod(new: Object, old: Object | None) -> Iterator[Cause]:
    if old is not None:
        yield from violations_of_update(new, old)


def _resize(new: Object, old: Object | None) -> Iterator[Cause]:
    if old is not None:
        yield from violations_of_resize(new, old)


def _workload(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new["spec"]
    labels = nested_map(spec, "template", "metadata", "labels")
    wanted = nested_map(spec["selector"] or {}, "matchLabels")
    if any(labels.get(name) != value for name, value in wanted.items()):
        yield invalid_value(
            "spec.template.metadata.labels", labels or None, "`selector` does not match template `labels`"
        )
    if old is not None and old["spec"]["selector"] != spec["selector"]:
        yield invalid_value("spec.selector", spec["selector"], "field is immutable")


def _stateful_set(new: Object, old: Object | None) -> Iterator[Cause]:
    yield from _workload(new, None)
    strategy = nested_map(new, "spec", "updateStrategy")
    if strategy.get("type") == "OnDelete" and "rollingUpdate" in strategy:
        problem = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid_value("spec.updateStrategy.rollingUpdate", strategy["rollingUpdate"], problem)
    if old is None:
        return
    one, other = ({k: v for k, v in obj["spec"].items() if k not in SET_FIELDS} for obj in (new, old))
    if one != other:
        yield Cause("FieldValueForbidden", SET_MESSAGE, "spec")


def _service(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new["spec"]
    if old is not None and "ExternalName" not in (spec["type"], old["spec"]["type"]):
        yield from _addresses(new, old)
    if spec.get("clusterIP") == "None" and spec["type"] in ("NodePort", "LoadBalancer"):
        problem = f"may not be set to 'None' for {spec['type']} services"
        yield invalid_value("spec.clusterIPs[0]", "None", problem)


def _addresses(new: Object, old: Object) -> Iterator[Cause]:
    before: list[Any] = old["spec"].get("clusterIPs", [])
    after: list[Any] = new["spec"].get("clusterIPs", [])
    path = "spec.clusterIPs[0]"
    if before and not after:
        yield invalid_value(path, None, "primary clusterIP can not be unset")
    elif before and after[0] != before[0]:
        yield invalid_value(path, after, "may not change once set")


def _budget(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = cast("Object", new["spec"])
    if "minAvailable" in spec and "maxUnavailable" in spec:
        # The value is that of the internal type, whose fields have no JSON names.
        names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
        value = msgspec.json.encode({name[0].upper() + name[1:]: spec.get(name) for name in names}).decode()
        message = f"Invalid value: {value}: minAvailable and maxUnavailable cannot be both set"
        yield Cause("FieldValueInvalid", message, "spec")


_VALIDATIONS: Final[Mapping[str, Callable[[Object, Object | None], Iterator[Cause]]]] = {
    "pods": _pod,
    "pods/resize": _resize,
    "deployments": _workload,
    "replicasets": _workload,
    "statefulsets": _stateful_set,
    "services": _service,
    "poddisruptionbudgets": _budget,
}
"""The rules by resource, and by subresource if it has rules of its own."""
