"""Checks that objects and clients of an earlier release keep working with a later release's CustomResourceDefinitions.

No validator compares two releases. OLM reports an incompatible change only when a cluster upgrades: v0 does not upgrade
while a stored object is invalid, v1 does not upgrade at all. The rules are those of OLM v1 (operator-controller v1.11,
preflights/crdupgradesafety): you may add an optional field, change a description, loosen a bound or extend an enum; any
other change is reported. A rule about a new field therefore belongs on that field. Names, subresources and served
versions are compared too.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from bundle.catalog import Packed
from bundle.errors import BundleError
from bundle.objects import Object, name_of
from memcached_api.validation.field_errors import format_value
from memcached_api.values import is_array, is_object, nested_field

_LOWER: Final = frozenset({"minimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "maxLength", "maxItems", "maxProperties"})
_NAMES: Final = ("scope", "names.kind", "names.listKind", "names.singular")
_KEEPS: Final = "objects are stored with it, or clients use it"
_SHORT: Final = 60
"""Characters of a former value that are shown."""


class Change(NamedTuple):
    """A difference that breaks objects or clients of the earlier release; `now` is None if the field was removed."""

    field: str
    now: Any
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}: {_format(self.now)}: {self.remedy}"


def _format(value: Any) -> str:
    """The value as JSON, truncated."""
    scalar = not is_object(value) and not is_array(value)
    return format_value(value) if scalar else format_value(json.dumps(value, default=str))[1:-1].replace('\\"', '"')


def incompatible(earlier: Packed, later: Packed) -> Iterator[str]:
    """A message for each incompatible change. Raises BundleError if both bundles are the same release."""
    if name_of(earlier.csv()) == name_of(later.csv()):
        raise BundleError(f"both bundles are {name_of(later.csv())}: name the directory of an earlier release")
    found = {name_of(crd): (path, crd) for path, crd in _definitions(later)}
    for path, crd in _definitions(earlier):
        place, now = found.get(name_of(crd), (path, None))
        for change in _definition(crd, now) if now else [Change("metadata.name", None, _must_stay(name_of(crd)))]:
            yield f"{place}: {change}"


def _definitions(bundle: Packed) -> Iterator[tuple[str, Object]]:
    for path, objects in bundle.manifests().items():
        yield from ((path, each) for each in objects if each["kind"] == "CustomResourceDefinition")


def _definition(before: Object, now: Object) -> Iterator[Change]:
    for field in _NAMES:
        old, new = (nested_field(each["spec"], *field.split(".")) for each in (before, now))
        if old != new:
            yield Change(f"spec.{field}", new, _must_stay(old))
    versions = {each["name"]: each for each in now["spec"]["versions"]}
    for each in before["spec"]["versions"]:
        place, found = f"spec.versions[{each['name']}]", versions.get(each["name"])
        if found is None:
            yield Change(place, None, _must_stay(each["name"]))
            continue
        if each["served"] and not found["served"]:
            yield Change(f"{place}.served", False, _must_stay(True))
        for name, old in each.get("subresources", {}).items():
            if (new := nested_field(found, "subresources", name)) != old:
                yield Change(f"{place}.subresources.{name}", new, _must_stay(old))
        yield from changes(_schema(each), _schema(found), place)


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    return nested_field(version, "schema", "openAPIV3Schema") or {}


def changes(before: dict[str, Any], now: dict[str, Any], path: str) -> Iterator[Change]:
    """Differences that make a schema stricter, or change its meaning. New fields are not compared."""
    for keyword in sorted(before.keys() | now.keys()):
        old, new = before.get(keyword), now.get(keyword)
        if keyword == "properties":
            yield from _fields(old or {}, new or {}, path)
        elif keyword == "items" and old and new:
            yield from changes(old, new, f"{path}[]")
        elif old != new and not _harmless(keyword, old, new):
            yield Change(f"{path}: {keyword}", new, _must_stay(old))


def _fields(before: dict[str, Any], now: dict[str, Any], path: str) -> Iterator[Change]:
    for name, schema in before.items():
        if name in now:
            yield from changes(schema, now[name], f"{path}.{name}")
        else:
            yield Change(f"{path}.{name}", None, f"must stay: {_KEEPS}")


def _harmless(keyword: str, old: Any, new: Any) -> bool:
    if keyword == "description":
        return True
    if keyword == "required":
        return set(new or ()) <= set(old or ())
    if keyword == "enum":
        return bool(old and new) and set(old) <= set(new)
    if keyword in _LOWER | _UPPER and old is not None:
        return new is None or (new < old if keyword in _LOWER else new > old)
    return False


def _must_stay(old: Any) -> str:
    if old is None:
        return "must be removed: stored objects may not satisfy it"
    text = str(old)
    return f"must stay {text if len(text) <= _SHORT else 'as it was'}: {_KEEPS}"
