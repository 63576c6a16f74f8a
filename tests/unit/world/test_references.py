"""Which objects a change concerns, if objects of one kind name those of another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from memcached_operator.kube.resource import SERVICES, Key, Object
from memcached_operator.world.kind import Reference
from memcached_operator.world.references import References
from unit.builders import MEMCACHEDS

PROXIES = SERVICES
"""Any resource, of the objects that name Memcacheds."""
REFERENCE = Reference(
    MEMCACHEDS,
    names=lambda obj: obj["names"],
    reads=lambda obj: obj["read"],
    shows=lambda obj: obj["shown"],
)
REFERENCES = References({PROXIES: [REFERENCE]})
CACHE, FIRST, SECOND = (
    Key(resource, "test", name) for resource, name in ((MEMCACHEDS, "a"), (PROXIES, "first"), (PROXIES, "second"))
)


@dataclass(frozen=True)
class Stored:
    """A stored object."""

    content: Mapping[str, Any]

    def object(self) -> Object:
        """A copy."""
        return {**self.content}


def names_of(
    key: Key, before: Object | None, after: Object | None, *referrers: Key, references: References = REFERENCES
) -> list[str]:
    """The names of the objects that a change concerns."""
    versions = [None if each is None else Stored(each) for each in (before, after)]
    found = references.concerned(key, versions[0], versions[1], lambda _: referrers)
    return sorted(each.name for each in found)


ONE: Object = {"read": 1, "other": 1}


def test_object_without_a_plan_is_not_concerned_but_shows_what_it_uses() -> None:
    found = References({PROXIES: [replace(REFERENCE, reads=None)]})
    assert names_of(CACHE, None, ONE, FIRST, references=found) == []
    assert names_of(FIRST, None, {"names": ["a"], "shown": 1}, references=found) == ["a"]


NAMED: dict[str, tuple[Object | None, Object | None, list[str]]] = {
    "what is read has changed": (ONE, {"read": 2, "other": 1}, ["first", "second"]),
    "something else has changed": (ONE, {"read": 1, "other": 2}, []),
    "created": (None, ONE, ["first", "second"]),
    "deleted": (ONE, None, ["first", "second"]),
}


@pytest.mark.parametrize(("before", "after", "expected"), NAMED.values(), ids=NAMED.keys())
def test_change_of_a_named_object_concerns_those_that_name_it(
    before: Object | None, after: Object | None, expected: list[str]
) -> None:
    assert names_of(CACHE, before, after, FIRST, SECOND) == expected
    assert names_of(CACHE, before, after) == []


BOTH: Object = {"names": ["a", "b"], "shown": 1}
NAMING: dict[str, tuple[Object | None, Object | None, list[str]]] = {
    "what is shown has changed": (BOTH, {"names": ["a", "b"], "shown": 2}, ["a", "b"]),
    "nothing of it has changed": (BOTH, {"names": ["b", "a"], "shown": 1, "other": 1}, []),
    "one name less": (BOTH, {"names": ["a"], "shown": 1}, ["b"]),
    "one name more": (BOTH, {"names": ["a", "b", "c"], "shown": 1}, ["c"]),
    "created": (None, BOTH, ["a", "b"]),
    "deleted": (BOTH, None, ["a", "b"]),
}


@pytest.mark.parametrize(("before", "after", "expected"), NAMING.values(), ids=NAMING.keys())
def test_change_of_an_object_concerns_those_that_it_shows_something_else(
    before: Object | None, after: Object | None, expected: list[str]
) -> None:
    assert names_of(FIRST, before, after) == expected


def test_names_are_keys_in_the_namespace_of_the_object() -> None:
    found = list(REFERENCES.named(FIRST, {"names": ["a", "b", "a"]}))
    assert found == [CACHE, Key(MEMCACHEDS, "test", "b")]
    assert list(REFERENCES.named(CACHE, {})) == []


def test_only_existing_objects_are_read_and_shown() -> None:
    known = {CACHE: ONE}
    assert REFERENCES.read_by(FIRST, BOTH, known.get) == {CACHE: 1}
    shown = REFERENCES.shown_to(CACHE, lambda _: (SECOND, FIRST), lambda _, shows: shows(BOTH))
    assert list(shown.items()) == [(FIRST, 1), (SECOND, 1)]
    assert REFERENCES.shown_to(FIRST, lambda _: (SECOND,), lambda _, shows: shows(BOTH)) == {}
