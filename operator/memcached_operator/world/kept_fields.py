"""The forms in which objects are cached: whole, or without what nobody reads. Anyone decides how large objects are."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from memcached_api.annotations import HANDLER_ANNOTATION, OWN_PREFIX, ROUTES_ANNOTATION
from memcached_operator.kube.resource import Object, controller_of, nested_list, nested_map

VPA_UPDATES: Final = "vpaUpdates"
VPA_IN_PLACE: Final = "vpaInPlaceUpdated"
"""Annotations that a VerticalPodAutoscaler adds to a pod that it creates with other resources, or resizes
(kubernetes/autoscaler). The first one contains its name."""

_MAX_VPA: Final = 300
"""Characters of such an annotation that are kept: a name has at most 253."""

_FILES: Final = (ROUTES_ANNOTATION, HANDLER_ANNOTATION)
"""Annotations of pods that only the kubelet reads: they are larger than the rest of a pod."""

_MANAGER_FIELDS: Final = ("manager", "operation", "subresource", "time")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONTROLLER: Final = ("apiVersion", "kind", "name", "uid", "controller")
_POD_METADATA: Final = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "finalizers", "labels"),
)
_CONTAINER: Final = ("name", "image", "ports", "resources")
_SEEN: Final[Object] = {}
"""Instead of an object of which only the existence is used."""
_VOLUME: Final = ("name", "secret", "projected")
_INIT_CONTAINER: Final = ("name", "image", "restartPolicy")
_POD_SPEC: Final = ("nodeName", "readinessGates", "schedulingGates")
_POD_STATUS: Final = (
    "phase",
    "reason",
    "message",
    "observedGeneration",
    "conditions",
    "containerStatuses",
    "initContainerStatuses",
)


class Kept(NamedTuple):
    """The part of an object that is cached."""

    obj: Object
    needed: bool = True
    """A plan can depend on it, so it is stored whatever its size."""


def whole(obj: Object) -> Object:
    """A copy without data that the controller never reads: most of managedFields, and kubectl's last-applied copy."""
    meta: Object = dict(obj["metadata"])
    meta["managedFields"] = _managed_fields(meta)
    annotations = meta.get("annotations")
    if annotations and _LAST_APPLIED in annotations:
        meta["annotations"] = {name: text for name, text in annotations.items() if name != _LAST_APPLIED}
    return {**obj, "metadata": meta}


def pod(obj: Object) -> Object:
    """The fields of a pod that are read."""
    own, spec = obj["metadata"], nested_map(obj, "spec")
    annotations, controller = nested_map(own, "annotations"), controller_of(obj)
    meta = {
        **_only(own, _POD_METADATA),
        **({} if controller is None else {"ownerReferences": [_only(controller, _CONTROLLER)]}),
        "annotations": {
            **{name: text for name, text in annotations.items() if _is_read(name)},
            **{name: annotations[name][:_MAX_VPA] for name in (VPA_UPDATES, VPA_IN_PLACE) if name in annotations},
        },
        "managedFields": _managed_fields(own),
    }
    containers = [_only(container, _CONTAINER) for container in nested_list(spec, "containers")]
    init = [_only(container, _INIT_CONTAINER) for container in nested_list(spec, "initContainers")]
    init_containers = {"initContainers": init} if init else {}
    named = [each for each in nested_list(spec, "volumes") if each.keys() & {"secret", "projected", "ephemeral"}]
    volumes = [_only(each, _VOLUME) | dict.fromkeys(each.keys() & {"ephemeral"}, _SEEN) for each in named]
    return {
        **_only(obj, ("apiVersion", "kind")),
        "metadata": meta,
        "spec": {"containers": containers, **init_containers, "volumes": volumes, **_only(spec, _POD_SPEC)},
        "status": _only(nested_map(obj, "status"), _POD_STATUS),
    }


def _is_read(annotation: str) -> bool:
    return annotation.startswith(OWN_PREFIX) and annotation not in _FILES


def _managed_fields(meta: Mapping[str, Any]) -> list[Object]:
    """Every entry keeps its index, because a patch addresses an entry by its index."""
    return [_only(entry, _MANAGER_FIELDS) for entry in nested_list(meta, "managedFields")]


def _only(fields: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}
