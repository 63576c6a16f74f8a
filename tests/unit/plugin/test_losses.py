"""The plugin says of the fields that its advice changes what admission announces of this very change."""

from typing import Final

import pytest

from kubectl_memcached.model import losses
from kubectl_memcached.model.advice import MEMORY
from kubectl_memcached.model.effects import SCHEDULING
from kubectl_memcached.model.losses import Change, sentences
from memcached_api.remedies import Direction
from memcached_operator.memcached.containers import CONTAINERS
from memcached_webhooks.kinds.memcached import warnings
from unit.memcached.prices import CASES, IMAGES, expected

CHANGES: Final[list[Change]] = [
    *(change for remedy in MEMORY.values() for change in remedy.changes),
    *(change for _, changes in SCHEDULING.values() for change in changes.items()),
    ("spec.cache.maxConnections", "up"),
    ("spec.cache.memory", "up"),
    ("spec.cache.verbosity", "down"),
]
"""Those of all advice."""


@pytest.mark.parametrize("name", CASES)
def test_price_is_what_admission_announces(name: str) -> None:
    case = CASES[name]
    for field, direction in CHANGES:
        found = list(sentences({"spec": case.spec}, [(field, direction)], guaranteed="Guaranteed" in name))
        loses = expected(case, field, Direction(direction))
        sentence = f"Changing {field} replaces the pods, and their items are lost."
        assert found == [sentence] * bool(loses), (field, direction)


@pytest.mark.parametrize("name", CASES)
def test_another_image_keeps_the_items_that_admission_says_are_kept(name: str) -> None:
    spec = CASES[name].spec
    for old, new in (("1.6.38", "1.6.45"), ("1.6.45", "1.6.38"), ("1.6", "1.6.45")):
        before, after = ({"spec": {**spec, "image": f"a/b:{tag}"}} for tag in (old, new))
        (said,) = (each for each in warnings(after, before, IMAGES) if each.startswith("spec.image: "))
        expected = None if "unless the release is older" in said else "lost" not in said
        assert losses.keeps_items(before, "a/b:" + new) is expected


def test_advice_about_memory_is_that_of_the_operator() -> None:
    for name, remedy in MEMORY.items():
        (action,) = CONTAINERS[name].memory
        assert (remedy.text, dict(remedy.changes)) == (
            f": {action.text}",
            dict.fromkeys(action.fields, action.direction.value),
        )


def test_directions_are_those_of_the_operator() -> None:
    assert {losses.UP, losses.DOWN, losses.ADDED, losses.ANY} == {each.value for each in Direction}


def test_fields_are_named_once_and_advice_without_a_field_loses_nothing() -> None:
    changes = [("spec.cache.memory", "up"), ("spec.cache.verbosity", "down"), ("spec.cache.memory", "up")]
    (sentence,) = sentences({}, changes)
    assert sentence.startswith("Changing spec.cache.memory or spec.cache.verbosity replaces")
    assert list(sentences({}, [])) == []
