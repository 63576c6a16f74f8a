"""Whether objects and clients of an earlier release live on under the CustomResourceDefinitions of a later one.

It fails closed, by the rules of OLM v1 (operator-controller v1.11, preflights/crdupgradesafety), which refuses any
other upgrade: an optional field may be added, a description changed, a bound loosened, an enum extended; nothing else.
So a rule about a new field stands on that field. Names, subresources and what is served are looked at besides.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from bundle.checks.subject import Finding, Subject
from bundle.errors import BundleError
from bundle.objects import Object, name_of
from memcached_api.values import nested_field

_LOWER: Final = frozenset({"minimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "maxLength", "maxItems", "maxProperties"})
_NAMES: Final = ("scope", "names.kind", "names.listKind", "names.singular")
_KEEPS: Final = "objects are stored with it, or clients use it"
_SHORT: Final = 60
"""Characters of a former value that are shown."""


class Change(NamedTuple):
    """A difference that objects or clients of the earlier release may not survive; `now` is None for what is gone."""

    field: str
    now: Any
    remedy: str


def incompatible(earlier: Subject, later: Subject) -> Iterator[Finding]:
    """What the later release takes away. Raises BundleError where both are the same release: nothing is compared."""
    if name_of(earlier.csv) == name_of(later.csv):
        raise BundleError(f"both bundles are {name_of(later.csv)}: name the directory of an earlier release")
    found = {name_of(crd): (path, crd) for path, crd in later.of("CustomResourceDefinition").items()}
    for path, crd in earlier.of("CustomResourceDefinition").items():
        place, now = found.get(name_of(crd), (path, None))
        for change in _definition(crd, now) if now else [Change("metadata.name", None, _must_stay(name_of(crd)))]:
            yield Finding(place, *change)


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
    """What a schema no longer allows, or allows otherwise than before; of new fields nothing is asked."""
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
        return "must go: objects that are stored may not fit it"
    text = str(old)
    return f"must stay {text if len(text) <= _SHORT else 'as it was'}: {_KEEPS}"
