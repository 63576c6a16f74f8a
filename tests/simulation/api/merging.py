"""Comparison and merge of objects by the fields of their type (structured-merge-diff v6, package typed).

All functions take maps of one type, and share with their arguments whatever they do not change.
"""

from typing import Any, NamedTuple, cast

from memcached_operator.kube.resource import Object
from simulation.api.field_sets import LEAF, MEMBER, Fields
from simulation.api.schema import Type


class Changes(NamedTuple):
    """The fields that differ between two objects."""

    added: Fields
    modified: Fields
    removed: Fields

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.added or self.modified or self.removed)


def fields_of(kind: Type, obj: Object) -> Fields:
    """The set of the fields of an object, as an apply owns them."""
    found: Fields = {}
    for name, value in obj.items():
        child = kind.child(name)
        if value and child.is_granular(value):
            below = (
                fields_of(child, cast("Object", value)) if isinstance(value, dict) else _fields_of_items(child, value)
            )
            if not kind.is_field(name):
                below = LEAF | below
            if below:
                found[f"f:{name}"] = below
        elif not (isinstance(value, list) and child.merged and kind.is_field(name)):
            found[f"f:{name}"] = LEAF
    return found


def _fields_of_items(kind: Type, values: list[Any]) -> Fields:
    return {kind.element(each): {MEMBER: {}, **_fields_of_item(kind.rest, each)} for each in values}


def _fields_of_item(kind: Type, item: Any) -> Fields:
    return fields_of(kind, cast("Object", item)) if isinstance(item, dict) and not kind.atomic else {}


def compare(kind: Type, old: Object, new: Object) -> Changes:
    """The fields that differ."""
    found = Changes({}, {}, {})
    _compare(kind, old, new, found)
    return found


def _compare(kind: Type, old: Object, new: Object, found: Changes) -> None:
    for name, value in new.items():
        if name not in old:
            found.added[f"f:{name}"] = _whole(kind.child(name), value)
        elif (before := old[name]) is not value and before != value:
            _compare_values(kind.child(name), f"f:{name}", before, value, found)
    for name, value in old.items():
        if name not in new:
            found.removed[f"f:{name}"] = _whole(kind.child(name), value)


def _compare_values(kind: Type, element: str, old: Any, new: Any, found: Changes) -> None:
    """Compare two different values of one field or item. None has whatever type the other value has."""
    one, other = (new, old) if old is None else (old, new)
    same_shape = other is None or isinstance(other, type(one))
    if not (old or new) or not same_shape or not kind.is_granular(one):
        found.modified[element] = LEAF
        return
    below = Changes({}, {}, {})
    if isinstance(one, dict):
        _compare(kind, old or {}, new or {}, below)
    else:
        _compare_items(kind, old or [], new or [], below)
    for fields, parent in zip(below, found, strict=True):
        if fields:
            parent[element] = fields


def _compare_items(kind: Type, old: list[Any], new: list[Any], found: Changes) -> None:
    before = {kind.element(each): each for each in old}
    after = {kind.element(each): each for each in new}
    for element, item in after.items():
        if element not in before:
            found.added[element] = _whole(kind.rest, item)
        elif before[element] != item:
            _compare_values(kind.rest, element, before[element], item, found)
    for element, item in before.items():
        if element not in after:
            found.removed[element] = _whole(kind.rest, item)


def _whole(kind: Type, value: Any) -> Fields:
    """The set of a value that was added or removed, with all that is in it."""
    if not value or not isinstance(value, dict | list) or not kind.is_granular(value):
        return LEAF
    found: Fields = dict(LEAF)
    if isinstance(value, dict):
        for name, each in cast("Object", value).items():
            found[f"f:{name}"] = _whole(kind.child(name), each) if isinstance(each, dict | list) else LEAF
    else:
        for each in cast("list[Any]", value):
            found[kind.element(each)] = _whole(kind.rest, each)
    return found


def merge(kind: Type, live: Object, applied: Object) -> Object:
    """The object with the applied fields."""
    found = dict(live)
    for name, value in applied.items():
        found[name] = _merged(kind.child(name), live[name], value) if name in live else value
    return found


def _merged(kind: Type, live: Any, applied: Any) -> Any:
    if applied is None and live and kind.is_granular(live):
        return live
    if not (live or applied) or not kind.is_granular(applied) or not isinstance(live, type(applied)):
        return applied
    if isinstance(applied, dict):
        return merge(kind, live, cast("Object", applied))
    return _merged_items(kind, live, cast("list[Any]", applied))


def _merged_items(kind: Type, live: list[Any], applied: list[Any]) -> list[Any]:
    """The items of both lists: those that are applied in their order, each of the others before the next one of them.

    A shared item that the applied order has later is moved (mergingWalker.visitListItems).
    """
    theirs, ours = [kind.element(each) for each in live], [kind.element(each) for each in applied]
    old, new = dict(zip(theirs, live, strict=True)), dict(zip(ours, applied, strict=True))
    shared = [each for each in ours if each in old]
    found: list[Any] = []
    left, right = 0, 0
    while left < len(theirs) or right < len(ours):
        element = theirs[left] if left < len(theirs) else None
        if element is not None and right < len(ours):
            if element == ours[right]:
                found.append(_merged(kind.rest, old[element], new[element]))
                shared, left, right = shared[1:], left + 1, right + 1
                continue
            if element in new and shared and shared[0] != element:
                left += 1
                continue
        if element is not None and element not in new:
            found.append(old[element])
            left += 1
            continue
        if element is not None and element not in ours[right:]:
            left += 1  # it has been merged before
        if right < len(ours):
            element = ours[right]
            found.append(_merged(kind.rest, old[element], new[element]) if element in old else new[element])
            shared = shared[1:] if shared[:1] == [element] else shared
            right += 1
    return found


def remove(kind: Type, obj: Object, fields: Fields) -> Object | None:
    """The object without the members of a set; None if nothing is left."""
    found: Object = {}
    for name, value in obj.items():
        below = fields.get(f"f:{name}")
        if below is None:
            found[name] = value
        elif MEMBER not in below:
            found[name] = _removed(kind.child(name), value, below)
    return found or None


def _removed(kind: Type, value: Any, fields: Fields) -> Any:
    if isinstance(value, dict):
        return None if kind.atomic else remove(kind, cast("Object", value), fields)
    if not isinstance(value, list):
        return value
    if not kind.merged:
        return None
    found: list[Any] = []
    for each in cast("list[Any]", value):
        below = fields.get(kind.element(each))
        if below is None:
            found.append(each)
        elif MEMBER not in below:
            found.append(_removed(kind.rest, each, below))
    return found or None
