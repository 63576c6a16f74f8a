"""Sets of fields, as in `managedFields`: unions, differences, and their form in JSON.

A set is a tree of path elements such as `f:spec` or `k:{"name":"x"}`. A node that is a member has the element MEMBER.
In JSON (FieldsV1), a member without children is `{}`. Source: structured-merge-diff v6, fieldpath/set.go.
Sets are never mutated once another function has received them.
"""

from collections.abc import Iterator
from typing import Any, Final

from simulation.api.schema import Type

Fields = dict[str, Any]
"""A set: subsets by path element."""

MEMBER: Final = "."
LEAF: Final[Fields] = {MEMBER: {}}
"""The subset of a field without children."""


def union(one: Fields, other: Fields) -> Fields:
    """The fields that are in one of the sets."""
    if not other or one is other:
        return one
    found = dict(one)
    for element, below in other.items():
        found[element] = union(found[element], below) if element in found else below
    return found


def intersection(one: Fields, other: Fields) -> Fields:
    """The fields that are in both sets."""
    found: Fields = {}
    for element, below in one.items():
        if element == MEMBER:
            if MEMBER in other:
                found[MEMBER] = below
        elif element in other and (common := intersection(below, other[element])):
            found[element] = common
    return found


def difference(one: Fields, other: Fields) -> Fields:
    """The fields of `one` that are not in `other`. A member is another field than those below it."""
    if not other:
        return one
    found: Fields = {}
    for element, below in one.items():
        if element not in other:
            found[element] = below
        elif element != MEMBER and (left := difference(below, other[element])):
            found[element] = left
    return found


def without(one: Fields, other: Fields) -> Fields:
    """The fields of `one` that are neither in `other` nor below a member of it."""
    found: Fields = {}
    for element, below in one.items():
        removed = other.get(element)
        if removed is None:
            found[element] = below
        elif MEMBER not in removed and (left := without(below, removed)):
            found[element] = left
    return found


def within(one: Fields, other: Fields) -> Fields:
    """The fields of `one` that are members of `other`, or below one. `*` stands for any element."""
    found: Fields = {}
    for element, below in one.items():
        kept = other.get(element) or other.get("*")
        if kept is not None and (left := below if MEMBER in kept else within(below, kept)):
            found[element] = left
    return found


def of(*paths: str) -> Fields:
    """The set of these paths, such as `spec.replicas`."""
    found: Fields = {}
    for path in paths:
        node = found
        for name in path.split("."):
            node = node.setdefault(name if name == "*" else f"f:{name}", {})
        node[MEMBER] = {}
    return found


def with_named(kind: Type, fields: Fields) -> Fields:
    """The set and each field of a struct above its members (EnsureNamedFieldsAreMembers)."""
    found: Fields = {}
    for element, below in fields.items():
        if element == MEMBER:
            found[element] = below
            continue
        name = element[2:] if element.startswith("f:") else ""
        subset = with_named(kind.child(name), below)
        found[element] = {MEMBER: {}, **subset} if name and kind.is_field(name) else subset
    return found


def encoded(fields: Fields) -> Fields:
    """The set as FieldsV1, in the order of the API server."""
    found = _encoded(fields)
    _remember(found, fields)
    return found


def _encoded(fields: Fields) -> Fields:
    ordered = sorted(fields.items()) if len(fields) > 1 else fields.items()
    return {element: {} if below is LEAF or below.keys() <= _ONLY else _encoded(below) for element, below in ordered}


def decoded(fields: Fields) -> Fields:
    """The set of a FieldsV1."""
    known = _DECODED.get(id(fields))
    if known is not None and known[0] is fields:
        return known[1]
    found = _decoded(fields)
    _remember(fields, found)
    return found


def _decoded(fields: Fields) -> Fields:
    return {
        element: below if element == MEMBER else _decoded(below) if below else LEAF for element, below in fields.items()
    }


def _remember(text: Fields, fields: Fields) -> None:
    if len(_DECODED) >= MAX_DECODED:
        _DECODED.clear()
    _DECODED[id(text)] = (text, fields)


_ONLY: Final = frozenset({MEMBER})
MAX_DECODED: Final = 4096
_DECODED: Final[dict[int, tuple[Fields, Fields]]] = {}
"""Sets that have been decoded or encoded lately, by the id of their FieldsV1, which is never mutated."""


def paths(fields: Fields, prefix: str = "") -> Iterator[str]:
    """The members as text, such as `.spec.containers[name="x"].image` (fieldpath.Path.String)."""
    for element, below in sorted(fields.items()):
        if element != MEMBER and MEMBER in below:
            yield prefix + _text(element)
    for element, below in sorted(fields.items()):
        if element != MEMBER:
            yield from paths(below, prefix + _text(element))


def _text(element: str) -> str:
    kind, value = element[:2], element[2:]
    if kind == "f:":
        return f".{value}"
    if kind == "v:":
        return f"[={value}]"
    pairs = value[1:-1].replace('":', "=").replace(',"', ",")
    return f"[{pairs[1:]}]"
