"""What the variants in config/overlays change becomes a condition of the chart."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, cast

from chart.objects.nodes import If
from memcached_api.values import is_object


def merged(first: Any, second: Any, condition: str) -> Any:
    """A value that is `first` if the condition holds, and `second` if it does not."""
    if first == second:
        return first
    if isinstance(first, dict) and isinstance(second, dict):
        return _mapping(cast("dict[str, Any]", first), cast("dict[str, Any]", second), condition)
    if isinstance(first, list) and isinstance(second, list):
        return _list(cast("list[Any]", first), cast("list[Any]", second), condition)
    return If(condition, first, second)


def only(value: Any, condition: str, *, holds: bool) -> If:
    """A value that exists only if the condition holds, or only if it does not."""
    return If(condition if holds else f"not ({condition})", value)


def _mapping(first: dict[str, Any], second: dict[str, Any], condition: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in (*first, *(key for key in second if key not in first)):
        if key in first and key in second:
            found[key] = merged(first[key], second[key], condition)
        else:
            found[key] = only((first | second)[key], condition, holds=key in first)
    return found


def _list(first: list[Any], second: list[Any], condition: str) -> list[Any]:
    """Lists of as many objects, such as containers, are merged object by object; others have further items."""
    if len(first) == len(second) and all(map(is_object, [*first, *second])):
        return [merged(one, other, condition) for one, other in zip(first, second, strict=True)]
    return list(_items(first, second, condition))


def _items(first: Sequence[Any], second: Sequence[Any], condition: str) -> Iterator[Any]:
    texts = [[repr(each) for each in side] for side in (first, second)]
    for same, start, end, other_start, other_end in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if same == "equal":
            yield from first[start:end]
        else:
            yield from (only(each, condition, holds=True) for each in first[start:end])
            yield from (only(each, condition, holds=False) for each in second[other_start:other_end])
