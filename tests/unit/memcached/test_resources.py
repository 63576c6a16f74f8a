from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.types import MEMCACHED, decode_spec
from memcached_api.quantity import parse_quantity
from unit.builders import memcached

Amounts = dict[str, str]


def required(resources: dict[str, Any] | None = None, cache: str | None = None) -> dict[str, Amounts]:
    """The container's resources for a spec."""
    spec: dict[str, Any] = {}
    if resources is not None:
        spec["resources"] = resources
    if cache is not None:
        spec["cache"] = {"memory": cache}
    return requirements(decode_spec(memcached(**spec)))


CPU = {"cpu": "100m"}
DERIVED = {"limits": {"memory": "128Mi"}, "requests": CPU | {"memory": "128Mi"}}

TABLE: dict[str, tuple[dict[str, Any] | None, dict[str, Amounts]]] = {
    "nothing given": (None, DERIVED),
    "empty": ({}, DERIVED),
    "empty lists": ({"limits": {}, "requests": {}}, DERIVED),
    "a memory limit above the derived one": (
        {"limits": {"memory": "1Gi"}},
        {"limits": {"memory": "1Gi"}, "requests": CPU | {"memory": "1Gi"}},
    ),
    "a memory limit below the derived one": (
        {"limits": {"memory": "100Mi"}},
        {"limits": {"memory": "100Mi"}, "requests": CPU | {"memory": "100Mi"}},
    ),
    "a memory request below the derived one": (
        {"requests": {"memory": "64Mi"}},
        {"limits": {"memory": "128Mi"}, "requests": CPU | {"memory": "64Mi"}},
    ),
    "a memory request above the derived one": (
        {"requests": {"memory": "1Gi"}},
        {"limits": {"memory": "1Gi"}, "requests": CPU | {"memory": "1Gi"}},
    ),
    "memory limit and request": (
        {"limits": {"memory": "2Gi"}, "requests": {"memory": "1Gi"}},
        {"limits": {"memory": "2Gi"}, "requests": CPU | {"memory": "1Gi"}},
    ),
    "a CPU limit above the default request": (
        {"limits": {"cpu": 2}},
        {"limits": {"memory": "128Mi", "cpu": "2"}, "requests": DERIVED["requests"]},
    ),
    "a CPU limit below the default request": (
        {"limits": {"cpu": "50m"}},
        {"limits": {"memory": "128Mi", "cpu": "50m"}, "requests": {"cpu": "50m", "memory": "128Mi"}},
    ),
    "a CPU request": (
        {"requests": {"cpu": "1"}},
        {"limits": {"memory": "128Mi"}, "requests": {"cpu": "1", "memory": "128Mi"}},
    ),
    "another resource": (
        {"limits": {"ephemeral-storage": "1Gi"}, "requests": {"ephemeral-storage": "1Gi"}},
        {
            "limits": {"memory": "128Mi", "ephemeral-storage": "1Gi"},
            "requests": DERIVED["requests"] | {"ephemeral-storage": "1Gi"},
        },
    ),
}


@pytest.mark.parametrize(("given", "expected"), TABLE.values(), ids=TABLE.keys())
def test_spec_overrides_each_amount_separately(given: dict[str, Any] | None, expected: dict[str, Amounts]) -> None:
    assert required(given) == expected


SPELLINGS = {
    "0.5": "500m",
    "500m": "500m",
    "1000m": "1",
    "1024Mi": "1Gi",
    "0.5Gi": "512Mi",
    "1e3": "1e3",
    "128974848": "128974848",
    "100u": "1m",
}


@pytest.mark.parametrize(("given", "stored"), SPELLINGS.items(), ids=SPELLINGS.keys())
def test_amounts_are_spelled_as_the_api_server_stores_them(given: str, stored: str) -> None:
    assert required({"limits": {"ephemeral-storage": given}})["limits"]["ephemeral-storage"] == stored


@pytest.mark.parametrize(("given", "stored"), [(1, "1"), (2.0, "2")], ids=["integer", "whole float"])
def test_numbers_are_valid_amounts(given: float, stored: str) -> None:
    assert required({"limits": {"cpu": given}})["limits"]["cpu"] == stored


MEMORY = {
    "the smallest": ("2Mi", "128Mi"),
    "default": ("64Mi", "128Mi"),
    "floor decides": ("80Mi", "140Mi"),
    "large": ("1000Mi", "1405Mi"),
    "rounded up": ("100Mi", "168Mi"),
    "decimal unit": ("1G", "1342Mi"),
}


@pytest.mark.parametrize(("cache", "derived"), MEMORY.values(), ids=MEMORY.keys())
def test_memory_request_and_limit_are_derived_from_the_cache_size(cache: str, derived: str) -> None:
    assert required(cache=cache) == {"limits": {"memory": derived}, "requests": CPU | {"memory": derived}}


NAMES = st.sampled_from(["cpu", "memory", "ephemeral-storage"])
AMOUNTS = st.dictionaries(NAMES, st.builds("{}{}".format, st.integers(0, 5000), st.sampled_from(["", "m", "Mi", "Gi"])))


@given(AMOUNTS, AMOUNTS, st.integers(2, 4096))
def test_request_never_exceeds_its_limit_in_a_valid_spec(limits: Amounts, requests: Amounts, cache: int) -> None:
    given = {"limits": limits, "requests": requests}
    if MEMCACHED.validate(memcached(resources=given, cache={"memory": f"{cache}Mi"})):
        return
    found = required(given, f"{cache}Mi")
    for name, limit in found["limits"].items():
        assert parse_quantity(found["requests"].get(name, "0")) <= parse_quantity(limit)
    assert {name: parse_quantity(found["limits"][name]) for name in limits} == {
        name: parse_quantity(a) for name, a in limits.items()
    }
