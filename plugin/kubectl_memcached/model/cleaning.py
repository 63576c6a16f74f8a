"""Objects for a report, without values that can be secret and without fields that only the API server needs."""

from typing import Any, Final, cast

from kubectl_memcached.model.objects import Object, mapping, objects, text
from kubectl_memcached.model.redaction import REDACTED

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with a copy of the object, values included."""


def cleaned(obj: Object) -> dict[str, Any]:
    """The object without managed fields, copies of itself, and values of environment variables.

    Raises ValueError for a Secret, which must never be part of a report.
    """
    if text(obj, "kind") == "Secret":
        raise ValueError("a report contains no Secrets")
    return cast("dict[str, Any]", _clean(dict(obj)))


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    kept = {name: _clean(content) for name, content in fields.items() if name not in ("managedFields", _APPLIED)}
    if isinstance(kept.get("env"), list):
        kept["env"] = [_variable(variable) for variable in cast("list[Any]", kept["env"])]
    return kept


def _variable(variable: Any) -> Any:
    if not isinstance(variable, dict):
        return variable
    fields = cast("dict[str, Any]", variable)
    return {**fields, "value": REDACTED} if "value" in fields else fields


def concerns(event: Object, name: str) -> bool:
    """Whether an Event is about a Memcached or one of its children, whose names begin with its name."""
    about = text(event, "involvedObject", "name")
    return about == name or about.startswith((f"{name}-", f"{name}."))


def node(obj: Object) -> dict[str, Any]:
    """The part of a node that a report contains: its resources, conditions and taints."""
    return {
        "name": text(obj, "metadata", "name"),
        "allocatable": dict(mapping(obj, "status", "allocatable")),
        "conditions": [dict(condition) for condition in objects(obj, "status", "conditions")],
        "taints": [dict(taint) for taint in objects(obj, "spec", "taints")],
        "kubeletVersion": text(obj, "status", "nodeInfo", "kubeletVersion"),
        "unschedulable": mapping(obj, "spec").get("unschedulable") is True,
    }
