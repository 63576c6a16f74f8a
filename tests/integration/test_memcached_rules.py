"""The CRD alone enforces the rules of Memcached, also for objects that were stored before the rules."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from faults.stored import without_rules
from integration.control_plane import CRDS, ROOT, ControlPlane, is_served, until
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support.invalid_memcached import LIMIT, NAME, NAMES, RULES, TYPES, InvalidObject, missing_parts
from support.memcached import memcached

ANOTHER = replace(MEMCACHEDS, group="stored.example.com")
"""The same kind in another group, where the rules are added after the objects."""
CRD = ROOT / "config/crd/bases/cache.example.com_memcacheds.yaml"
SAME_MESSAGES = ("spec.resources.limits[memory]", "spec.cache.extraArgs")
"""Fields for which the CRD has the messages of the webhook, with the same numbers and names of fields."""
STORED: dict[str, dict[str, Any]] = {
    "1cache": {},
    "image": {"image": "no such image"},
    "limit": {"cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": "95Mi"}}},
    "derived": {"resources": {"limits": {"memory": "1Mi"}}},
    "item": {"cache": {"maxItemSize": "64Mi"}},
    "request": {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
    "negative": {"resources": {"requests": {"cpu": "-1"}}},
}
"""Specs that violate a rule, by the name of their object, which may be invalid too."""


@pytest.mark.parametrize("invalid", [*RULES.values(), *TYPES.values()], ids=[*RULES, *TYPES])
def test_violation_is_rejected_with_field_value_and_remedy(
    plane: ControlPlane, version: str, namespace: str, invalid: InvalidObject
) -> None:
    with pytest.raises(ApiError) as caught:
        plane.would_create(MEMCACHEDS, memcached(namespace, **invalid.spec))
    assert missing_parts(invalid, caught.value.message, version) == [], caught.value.message
    errors = MEMCACHED.validate(memcached(namespace, **invalid.spec))
    same = [error.message for error in errors if error.field.startswith(SAME_MESSAGES)]
    assert [message for message in same if message not in caught.value.message] == []


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name_that_is_invalid_for_children_is_rejected(plane: ControlPlane, namespace: str, name: str) -> None:
    with pytest.raises(ApiError, match=NAME):
        plane.would_create(MEMCACHEDS, memcached(namespace, name))


@pytest.mark.parametrize(
    ("request_", "limit"),
    [
        *((1, 1), (1, 2), (2, 1), (1, "1000m"), (2, "1500m"), ("0.5", 1), ("1.5", 1), ("500m", "0.5")),
        *((1000, "1e3"), (1001, "1k"), ("1k", 1001), ("1Ki", 1023), (1023, "1Ki"), ("1E", 2**60), (2**60, "1E")),
        *((2**63 - 1, "8Ei"), ("8Ei", 2**63 - 1), (0, "0"), ("1n", 0), ("+1", 1)),
    ],
)
def test_request_is_compared_with_its_limit_as_in_admission(
    plane: ControlPlane, namespace: str, request_: int | str, limit: int | str
) -> None:
    resources = {"requests": {"example.com/device": request_}, "limits": {"example.com/device": limit}}
    obj = memcached(namespace, resources=resources)
    if MEMCACHED.validate(obj):
        with pytest.raises(ApiError, match="must be at most the limit of the same resource"):
            plane.would_create(MEMCACHEDS, obj)
    else:
        plane.would_create(MEMCACHEDS, obj)


@pytest.fixture
def stored(plane: ControlPlane, namespace: str) -> Iterator[str]:
    """A namespace with objects that violate a rule; the rules are added after the objects."""
    crd = yaml.safe_load(CRD.read_text().replace(MEMCACHEDS.group, ANOTHER.group))
    key = Key(CRDS, "", crd["metadata"]["name"])
    plane.create(CRDS, without_rules(crd))
    try:
        until(lambda: plane.call(lambda client: is_served(client, ANOTHER.path())))
        for name, spec in STORED.items():
            plane.create(ANOTHER, another(namespace, name, **spec))
        plane.change(key, {"spec": crd["spec"]})
        until(lambda: all(plane.rejects(ANOTHER, another(namespace, name, **spec)) for name, spec in STORED.items()))
        yield namespace
    finally:
        plane.delete(key)


def another(namespace: str, name: str, **spec: Any) -> Object:
    """An object of the other group."""
    return {**memcached(namespace, name, **spec), "apiVersion": ANOTHER.api_version}


def test_valid_fields_of_an_object_stored_before_the_rules_can_be_changed(plane: ControlPlane, stored: str) -> None:
    for name in STORED:
        changed = plane.change(Key(ANOTHER, stored, name), {"spec": {"size": 3, "containerPort": 12000}})
        assert (changed["spec"]["size"], changed["spec"]["containerPort"]) == (3, 12000)
    with pytest.raises(ApiError, match="must be an image reference"):
        plane.change(Key(ANOTHER, stored, "image"), {"spec": {"image": "no better image"}})
    with pytest.raises(ApiError, match=LIMIT):
        plane.change(Key(ANOTHER, stored, "limit"), {"spec": {"resources": {"limits": {"memory": "96Mi"}}}})
    with pytest.raises(ApiError, match="must be at least 53Mi, because"):
        plane.change(Key(ANOTHER, stored, "derived"), {"spec": {"resources": {"limits": {"memory": "2Mi"}}}})
    with pytest.raises(ApiError, match=r"must be at most half of spec\.cache\.memory"):
        plane.change(Key(ANOTHER, stored, "item"), {"spec": {"cache": {"maxItemSize": "33Mi"}}})
    with pytest.raises(ApiError, match="must be at most the limit"):
        plane.change(Key(ANOTHER, stored, "request"), {"spec": {"resources": {"requests": {"cpu": "751m"}}}})
    with pytest.raises(ApiError, match="must be at least 0"):
        plane.change(Key(ANOTHER, stored, "negative"), {"spec": {"resources": {"requests": {"cpu": "-2"}}}})
