"""Fuzz: values at the limits decide about objects in which everything else is valid."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from faults import limits
from faults.campaigns.fuzz import COUNT, SEEDS
from memcached_api.memcached.rules.placing import PLACING_RULES
from memcached_api.memcached.types import MEMCACHED
from memcached_api.validation.rules import Rule
from memcached_api.values import nested_field


def _drawn() -> Iterator[limits.Object]:
    """The objects of all seeds."""
    for number in range(SEEDS[MEMCACHED.plural]):
        yield from limits.objects(MEMCACHED, number, COUNT // 2)


@cache
def _results() -> tuple[list[limits.Object], set[str]]:
    """The valid objects; of the objects with a single error, the path and message of that error."""
    valid: list[limits.Object] = []
    single: set[str] = set()
    for obj in _drawn():
        errors = MEMCACHED.validate(obj)
        valid += [] if errors else [obj]
        single |= {re.sub(r"\[[^]]*\]", "[*]", str(error)) for error in errors} if len(errors) == 1 else set()
    return valid, single


SAME: dict[str, tuple[str, ...]] = {
    rule.message: tuple(f"{each.path}{each.field_path}" for each in PLACING_RULES if each.message == rule.message)
    for rule in PLACING_RULES
}
"""The paths of the rules with the same message. tests/support/placing_edges.py has values for each path."""


@pytest.mark.parametrize("rule", PLACING_RULES, ids=lambda rule: f"{rule.path}{rule.field_path}: {rule.message[:30]}")
def test_every_rule_about_placement_denies_and_allows_some_of_the_objects(rule: Rule) -> None:
    valid, single = _results()
    assert [each for each in single if each.startswith(SAME[rule.message]) and rule.message in each]
    assert [obj for obj in valid if nested_field(obj, *rule.path.partition("[")[0].split("."))]
