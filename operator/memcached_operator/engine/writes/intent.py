"""The intent of the operator for a child: its digest, by which a later reconcile recognizes what was applied."""

from typing import Any, Final, cast

from memcached_api.annotations import INTENT_ANNOTATION, MOVE_TIMES_ANNOTATION
from memcached_operator.kube.compare import ALLOCATED_FIELDS, digest, encoded
from memcached_operator.kube.resource import Object, nested_map

_LEFT_OUT: Final = (*ALLOCATED_FIELDS, MOVE_TIMES_ANNOTATION)
"""Fields and annotations that are no part of the intent."""


def intent_digest(obj: Object) -> str:
    """16 hex digits of a hash of the intent, without the number of pods.

    So a child of which only that differs can be recognized and changed with one merge patch. The number is compared
    like all other values.
    """
    return digest(_encoded_intent(with_replicas(obj, None)))


def digest_v1(obj: Object) -> str:
    """The digest of release 0.1.0, which included the number of pods. Its children stay as they are."""
    return digest(_encoded_intent(obj))


def identity(child: Object) -> str:
    """Identifies the intent of an object with its digest, which does not include the number of pods: both."""
    return f"{child['metadata']['annotations'][INTENT_ANNOTATION]} {replicas_of(child)}"


def without_times(obj: Object) -> Object:
    """The object without the annotations whose values differ in each attempt."""
    annotations = nested_map(obj, "metadata", "annotations")
    if MOVE_TIMES_ANNOTATION not in annotations:
        return obj
    kept = {name: text for name, text in annotations.items() if name != MOVE_TIMES_ANNOTATION}
    return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}


def _encoded_intent(obj: Object) -> bytes:
    """The text without _LEFT_OUT. Most children have none, and a copy takes a quarter of a reconcile."""
    text = encoded(obj)
    return encoded(_copy(obj)) if any(f'"{name}"'.encode() in text for name in _LEFT_OUT) else text


def _copy(value: object) -> object:
    """A copy without _LEFT_OUT."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {name: _copy(item) for name, item in fields if name not in _LEFT_OUT}
    return [_copy(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def replicas_of(obj: Object) -> int | None:
    """The number of pods of a workload; None for other objects."""
    spec: Any = obj.get("spec")
    return cast("Object", spec).get("replicas") if isinstance(spec, dict) else None


def with_replicas(obj: Object, replicas: int | None) -> Object:
    """The object with another number of pods; without the field if that is None."""
    if replicas_of(obj) == replicas:
        return obj
    spec = {field: value for field, value in obj["spec"].items() if field != "replicas"}
    return {**obj, "spec": spec if replicas is None else {**spec, "replicas": replicas}}


def with_intent(obj: Object) -> Object:
    """The object with its digest in INTENT_ANNOTATION."""
    return _with_digest(obj, intent_digest(obj))


def with_recorded_intent(obj: Object, live: Object) -> Object | None:
    """The object of `with_intent` with the digest that `live` records for this intent; None if it records another."""
    recorded = nested_map(live, "metadata", "annotations").get(INTENT_ANNOTATION)
    annotations: dict[str, str] = obj["metadata"]["annotations"]
    if recorded == annotations[INTENT_ANNOTATION]:
        return obj
    return _with_digest(obj, recorded) if recorded and recorded == digest_v1(_without_digest(obj)) else None


def _with_digest(obj: Object, digest: str) -> Object:
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), INTENT_ANNOTATION: digest}}}


def _without_digest(obj: Object) -> Object:
    meta: Object = dict(obj["metadata"])
    annotations = {name: text for name, text in meta.pop("annotations").items() if name != INTENT_ANNOTATION}
    return {**obj, "metadata": meta | ({"annotations": annotations} if annotations else {})}
