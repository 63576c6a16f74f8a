from types import MappingProxyType
from typing import Any

import pytest

from memcached_api import conditions
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, decode_spec
from memcached_api.registry import KINDS
from memcached_api.validation.field_errors import SpecDecodeError

BY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@BY_KIND
@pytest.mark.parametrize("obj", [None, 1, [], "x"])
def test_value_that_is_not_an_object_is_an_error(kind: Kind[Any], obj: Any):
    message = f"must be an object of kind {kind.name}"
    assert [error.message for error in kind.validate(obj)] == [message]
    with pytest.raises(SpecDecodeError, match=message):
        kind.decode(obj)


def test_any_mapping_is_accepted():
    obj = MappingProxyType({"metadata": {"name": "a"}, "spec": {"size": 2}})
    assert MEMCACHED.validate(obj) == []
    assert decode_spec(obj) == MemcachedSpec(size=2)


CHECKED: dict[str, tuple[Any, bool, int]] = {
    "valid": ({"metadata": {"name": "a"}, "spec": {"size": 2}}, True, 0),
    "memory without a limit": ({"spec": {"cache": {"memory": "64Mi"}}}, True, 0),
    "violates a rule that blocks": ({"metadata": {"name": "1a"}, "spec": {"size": 2}}, False, 1),
    "violates a newer rule": (
        {"metadata": {"name": "a"}, "spec": {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}}},
        True,
        1,
    ),
    "violates both": (
        {"metadata": {"name": "1a"}, "spec": {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}}},
        False,
        2,
    ),
    "wrong type": ({"metadata": {"name": "a"}, "spec": {"size": "two"}}, False, 1),
    "not an object": (7, False, 1),
}


@pytest.mark.parametrize(("obj", "planned", "errors"), CHECKED.values(), ids=CHECKED.keys())
def test_stored_object_has_a_spec_unless_it_cannot_be_decoded_or_violates_a_rule_that_blocks(
    obj: Any, planned: bool, errors: int
) -> None:
    spec, found = MEMCACHED.check(obj)
    assert (spec is not None, len(found)) == (planned, errors)
    assert found == MEMCACHED.validate(obj)


def test_conditions_are_in_this_order() -> None:
    assert tuple(conditions.MEANINGS) == ("Available", "Progressing", "Degraded", "Ready", "Stalled")


def test_unknown_reason_is_less_severe_than_the_others() -> None:
    reasons = ["New", *reversed(conditions.SEVERITY)]
    assert sorted(reasons, key=conditions.rank) == [*conditions.SEVERITY, "New"]
