"""A change of an object of others concerns only the custom resources whose plan depends on it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from memcached_operator.engine import observers as module
from memcached_operator.engine.observers import Observers
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Key, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

CACHES = [Key(MEMCACHEDS, "test", name) for name in "abcd"]


@dataclass
class Reads:
    """A plan that depends on the letters that its name and a view have in common."""

    name: str
    cost: int = 1
    weight: int = 1

    def comparisons(self, resource: Resource) -> int:
        """The cost of each object."""
        return self.cost

    def dependency(self, resource: Resource, view: Any) -> Hashable:
        """Whether the view has the letter."""
        return self.name in view or None


def concerned(before: Mapping[str, str], after: Mapping[str, str], cost: int = 1, weight: int = 1) -> str:
    """The Memcacheds that a change of views concerns; there is no plan of the last one."""
    observers = Observers()
    for key in CACHES:
        observers.remember(key, Reads(key.name, cost, weight))
    observers.remember(CACHES[-1], None)
    views = (
        {Key(POD_DISRUPTION_BUDGETS, "test", name): view for name, view in each.items()} for each in (before, after)
    )
    return "".join(key.name for key in observers.concerned(CACHES, POD_DISRUPTION_BUDGETS, *views))


FIRST = "".join("xa")  # not the same object as a literal
CHANGES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "no change": ({"one": FIRST}, {"one": FIRST}, ""),
    "created": ({}, {"one": "ab"}, "abd"),
    "created, without an effect": ({}, {"one": "xy"}, "d"),
    "deleted": ({"one": "bc"}, {}, "bcd"),
    "changed": ({"one": "ab"}, {"one": "bc"}, "acd"),
    "changed, with the same effect": ({"one": "ab"}, {"one": "abx"}, "d"),
    "another one displaced": ({"one": "a", "two": "b"}, {"one": "ax"}, "bd"),
}


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_concerned(before: dict[str, str], after: dict[str, str], expected: str) -> None:
    assert concerned(before, after) == expected


def test_beyond_the_limit_each_plan_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COMPARISONS", 20)
    assert concerned({}, {"one": "xy"}, cost=3) == "d"
    assert concerned({}, {"one": "xy"}, cost=5) == "cd"
    assert concerned({}, {"one": "xy"}, cost=11) == "abcd"


def test_what_plans_keep_is_limited_for_each_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant can copy the labels of pods, and give each pod thousands."""
    monkeypatch.setattr(module, "MAX_WEIGHT", 5)
    monkeypatch.setattr(module, "MAX_TOTAL", 9)
    assert concerned({}, {"one": "xy"}, weight=6) == "abcd"
    assert concerned({}, {"one": "xy"}, weight=4) == "cd", "two fit"
    assert concerned({}, {"one": "xy"}, weight=3) == "d"
