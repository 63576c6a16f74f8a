"""JSON patches that set fields of a spec."""

from collections.abc import Mapping
from typing import Any

from memcached_api.values import is_object, nested_field
from memcached_webhooks.review import Patch


def field_at(spec: Mapping[str, Any], path: str) -> Any:
    """The value of a field by its path below the spec, such as `rollout/maxSurge`; None if it does not exist."""
    return nested_field(spec, *path.split("/"))


def merge_operations(spec: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Patch:
    """The operations that set these fields, by their paths below the spec, such as `rollout/maxSurge`.

    They also create the parents that do not exist or are null. A field below something that is not an object is left
    out: the validating webhook reports the error.
    """
    operations: Patch = []
    merged: dict[str, Any] = {"spec": None if spec is None else dict(spec)}
    for path, value in fields.items():
        parents = ["spec", *path.split("/")]
        if (operation := _set(merged, parents, value)) is not None:
            operations.append(operation)
    return operations


def _set(root: dict[str, Any], path: list[str], value: Any) -> dict[str, Any] | None:
    """Set a value below `root`, whose objects are copied; the operation that does the same."""
    parent = root
    for depth, name in enumerate(path[:-1], 1):
        child = parent.get(name)
        if child is None:
            parent[name] = _nested(path[depth:], value)
            return _add(path[:depth], parent[name])
        if not is_object(child):
            return None
        parent[name] = dict(child)
        parent = parent[name]
    parent[path[-1]] = value
    return _add(path, value)


def _nested(path: list[str], value: Any) -> Any:
    """The value within the objects that its path names."""
    for name in reversed(path):
        value = {name: value}
    return value


def _add(path: list[str], value: Any) -> dict[str, Any]:
    return {"op": "add", "path": "/" + "/".join(path), "value": value}
