"""Patches of objects. The results share with the objects whatever the patches do not change."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from memcached_operator.kube.resource import Object
from simulation.api.errors import unprocessable
from simulation.api.schema import Type


def merge_patch(obj: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found: Object = dict(cast("Object", obj)) if isinstance(obj, dict) else {}
    for name, value in cast("Object", patch).items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merge_patch(found.get(name), value)
    return found


def json_patch(obj: Object, operations: Sequence[Mapping[str, Any]]) -> Object:
    """A JSON patch (RFC 6902) with the operations test, add, remove and replace. Raises StatusError."""
    found: Any = obj
    for operation in operations:
        path: str = operation["path"]
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        if operation["op"] == "test":
            _test(found, parts, operation.get("value"))
        else:
            found = _changed(found, parts, operation)
    return found


_MISSING: Final = object()


def _test(obj: Any, parts: Sequence[str], value: Any) -> None:
    for part in parts:
        obj = _member(obj, part)
    if obj != value and not (obj is _MISSING and value is None):
        raise unprocessable()


def _member(obj: Any, part: str) -> Any:
    if isinstance(obj, dict):
        return cast("Object", obj).get(part, _MISSING)
    if isinstance(obj, list) and part.isdecimal():
        items = cast("list[Any]", obj)
        return items[int(part)] if int(part) < len(items) else _MISSING
    return _MISSING


def _changed(obj: Any, parts: Sequence[str], operation: Mapping[str, Any]) -> Any:
    """A copy of a part of the object with the change at the path."""
    name, *rest = parts
    if rest:
        below = _member(obj, name)
        if below is _MISSING:
            raise unprocessable()
        return _with(obj, name, _changed(below, rest, operation))
    op, exists = operation["op"], _member(obj, name) is not _MISSING
    if op == "remove" and exists:
        if isinstance(obj, dict):
            return {key: value for key, value in cast("Object", obj).items() if key != name}
        return [each for index, each in enumerate(cast("list[Any]", obj)) if index != int(name)]
    if op == "replace" and exists:
        return _with(obj, name, operation.get("value"))
    if op == "add":
        return _added(obj, name, operation.get("value"))
    raise unprocessable()


def _with(obj: Any, name: str, value: Any) -> Any:
    if isinstance(obj, dict):
        return {**cast("Object", obj), name: value}
    found = list(cast("list[Any]", obj))
    found[int(name)] = value
    return found


def _added(obj: Any, name: str, value: Any) -> Any:
    if isinstance(obj, dict):
        return {**cast("Object", obj), name: value}
    if not isinstance(obj, list):
        raise unprocessable()
    found = list(cast("list[Any]", obj))
    index = len(found) if name == "-" else int(name) if name.isdecimal() else -1
    if not 0 <= index <= len(found):
        raise unprocessable()
    found.insert(index, value)
    return found


MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "conditions": "type",
    "ownerReferences": "uid",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "podIPs": "ip",
    "secrets": "name",
    "webhooks": "name",
}
"""The keys of merged lists (`x-kubernetes-patch-merge-key`); those of `ports` depend on the object."""


def strategic_merge_patch(kind: Type, obj: Object, patch: Object) -> Object:
    """A strategic merge patch: lists are merged by key or are sets, if the type says so."""
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    found = dict(obj)
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        child = kind.child(name)
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = strategic_merge_patch(child, found[name], cast("Object", value))
        elif isinstance(value, list) and isinstance(found.get(name), list):
            found[name] = _merged_list(child, name, found[name], cast("list[Any]", value))
        else:
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    """A new value without directives."""
    if isinstance(value, dict):
        fields = cast("Object", value).items()
        return {name: _plain(each) for name, each in fields if each is not None and not name.startswith("$")}
    if isinstance(value, list):
        values = cast("list[Any]", value)
        return [_plain(each) for each in values if not (isinstance(each, dict) and "$patch" in each)]
    return value


def _merged_list(kind: Type, name: str, live: list[Any], patch: list[Any]) -> list[Any]:
    if kind.unique:
        return _ordered([each for each in live if each not in patch], patch, live)
    key = MERGE_KEYS.get(name) or (
        "containerPort" if "containerPort" in kind.keys else kind.keys[0] if kind.keys else ""
    )
    if not key:
        return _plain(patch)
    found = {each[key]: each for each in live}
    patched: list[Any] = []
    for each in patch:
        value = each[key]
        if each.get("$patch") == "delete":
            found.pop(value, None)
        elif each.get("$patch") != "replace":
            patched.append(value)
            found[value] = strategic_merge_patch(kind.rest, found[value], each) if value in found else _plain(each)
    known = [each[key] for each in live]
    order = _ordered([value for value in known if value in found and value not in patched], patched, known)
    return [found[value] for value in order]


def _ordered(others: list[Any], patched: list[Any], live: list[Any]) -> list[Any]:
    """The patched items in their order, and the others in that of the live list (mergeSortedSlice)."""
    found: list[Any] = []
    left, right = list(others), list(patched)
    while left and right:
        is_before = right[0] in live and live.index(left[0]) < live.index(right[0])
        found.append((left if is_before else right).pop(0))
    return found + left + right
