"""Fuzz: values at the limits decide about objects in which everything else is valid."""

import re
from collections.abc import Iterator

from faults import limits
from faults.campaigns.fuzz import COUNT, SEEDS
from memcached_api.memcached.types import MEMCACHED
from memcached_api.shared.rules.placing import PLACING_RULES
from memcached_api.values import nested_field


def _drawn() -> Iterator[limits.Object]:
    """The objects of all seeds."""
    for number in range(SEEDS[MEMCACHED.plural]):
        yield from limits.objects(MEMCACHED, number, COUNT // 2)


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


def test_every_rule_about_placement_denies_and_allows_some_of_the_objects() -> None:
    valid, single = _results()
    for rule in PLACING_RULES:
        assert [each for each in single if each.startswith(SAME[rule.message]) and rule.message in each], rule
        assert [obj for obj in valid if nested_field(obj, *rule.path.partition("[")[0].split("."))], rule
