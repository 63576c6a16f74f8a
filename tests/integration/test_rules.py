"""The CRDs alone enforce the rules that tests/unit/api/test_rules.py checks in Python, with the same tables.

They also do for objects that were stored before the rules.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from faults.registration import resource_of
from faults.stored import without_rules
from integration.control_plane import CRDS, ROOT, ControlPlane, is_served, until
from memcached_api.appservice.types import decode_spec
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.appservice.desired.deployment import deployment
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support.appservice import appservice
from support.invalid import InvalidObject
from support.invalid_memcached import LIMIT, NAME, NAMES
from support.kubernetes import VALUES
from support.memcached import memcached
from support.rule_tables import TABLES, Tables

pytestmark = pytest.mark.server

BY_KIND = pytest.mark.parametrize("tables", TABLES, ids=lambda tables: tables.kind.name)
TYPES_FOR_VALUES = ('Invalid value: "string":', 'Invalid value: "":')
"""How early versions of the API server report a string or quantity that violates a CEL rule."""
SAME_MESSAGES = ("spec.resources.limits[memory]", "spec.cache.extraArgs")
"""Fields for which the CRD has the messages of the webhook, with the same numbers and names of fields."""


def error_of(plane: ControlPlane, resource: Resource, obj: Object) -> str:
    """The message with which the API server rejects an object; empty if it would create the object."""
    try:
        plane.would_create(resource, obj)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        return error.message
    return ""


def missing_parts(tables: Tables, invalid: InvalidObject, obj: Object, message: str, version: str) -> list[str]:
    """The expected parts missing from an error message; early versions may report the type instead of the value."""
    missing = [part for part in invalid.expected if part not in message]
    typed = not VALUES.applies(version) and any(text in message for text in TYPES_FOR_VALUES)
    same = [error.message for error in tables.kind.validate(obj) if error.field.startswith(SAME_MESSAGES)]
    return [
        *(part for part in missing if not (typed and part in invalid.expected[1:-1])),
        *(text for text in same if text not in message),
    ]


@BY_KIND
def test_violations_are_rejected_with_field_value_and_remedy(
    plane: ControlPlane, version: str, namespace: str, tables: Tables
) -> None:
    found: dict[str, Any] = {}
    for invalid in (*tables.rules, *tables.types):
        obj = tables.obj(invalid.spec, namespace=namespace)
        message = error_of(plane, resource_of(tables.kind), obj)
        if missing := missing_parts(tables, invalid, obj, message, version):
            found[invalid.name] = (missing, message)
    assert found == {}


@BY_KIND
def test_valid_specs_are_accepted(plane: ControlPlane, namespace: str, tables: Tables) -> None:
    objects = {name: tables.obj(spec, namespace=namespace) for name, spec in tables.valid.items()}
    errors = {name: error_of(plane, resource_of(tables.kind), obj) for name, obj in objects.items()}
    assert {name: error for name, error in errors.items() if error} == {}


@BY_KIND
def test_names_that_are_invalid_for_children_are_rejected(plane: ControlPlane, namespace: str, tables: Tables) -> None:
    for name in NAMES.values():
        assert NAME in error_of(plane, resource_of(tables.kind), tables.obj({}, name, namespace=namespace))


def test_size_has_a_default_and_items_of_lists_have_none(plane: ControlPlane, namespace: str) -> None:
    spec = plane.would_create(APPSERVICES, appservice(namespace, ports=[{"port": 80}]))["spec"]
    assert (spec["size"], spec["ports"]) == (1, [{"port": 80}])


AMOUNTS: list[tuple[int | str, int | str]] = [
    *((1, 1), (1, 2), (2, 1), (1, "1000m"), (2, "1500m"), ("0.5", 1), ("1.5", 1), ("500m", "0.5")),
    *((1000, "1e3"), (1001, "1k"), ("1k", 1001), ("1Ki", 1023), (1023, "1Ki"), ("1E", 2**60), (2**60, "1E")),
    *((2**63 - 1, "8Ei"), ("8Ei", 2**63 - 1), (0, "0"), ("1n", 0), ("+1", 1)),
]


def test_requests_are_compared_with_their_limits_as_in_admission(plane: ControlPlane, namespace: str) -> None:
    for request, limit in AMOUNTS:
        resources = {"requests": {"example.com/device": request}, "limits": {"example.com/device": limit}}
        obj = memcached(namespace, resources=resources)
        rejected = "must be at most the limit of the same resource" in error_of(plane, MEMCACHEDS, obj)
        assert rejected == bool(MEMCACHED.validate(obj)), (request, limit)


LONGEST = ".".join(["a" * 62] * 4) + "a"
KEYS = (
    *("a", "A", "a.b_c-D", "example.com/team", "Example.com/team", "a" * 63, "a" * 64, f"{LONGEST}/a", f"{LONGEST}b/a"),
    *("", " ", "a b", "a/", "/a", "a/b/c", "-a", "a-", "a..b/c", "a_b/c", "ä", "a'", "a']['b", "a\nb", "..", "a]"),
)


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_field_path_is_accepted_if_and_only_if_a_deployment_accepts_it(
    plane: ControlPlane, namespace: str, kind: str
) -> None:
    for key in KEYS:
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.{kind}['{key}']"}}
        app = appservice(namespace, envs=[{"name": "A", "valueFrom": source}])
        child = deployment(app, decode_spec(app))
        assert bool(error_of(plane, APPSERVICES, app)) == bool(error_of(plane, DEPLOYMENTS, child)), key


ANOTHER = MEMCACHEDS._replace(group="stored.example.com")
"""The same kind in another group, where the rules are added after the objects."""
CRD = ROOT / "config/crd/bases/cache.example.com_memcacheds.yaml"
STORED: dict[str, dict[str, Any]] = {
    "1cache": {},
    "image": {"image": "no such image"},
    "limit": {"cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": "95Mi"}}},
    "derived": {"resources": {"limits": {"memory": "1Mi"}}},
    "item": {"cache": {"maxItemSize": "64Mi"}},
    "request": {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
    "negative": {"resources": {"requests": {"cpu": "-1"}}},
    "metrics": {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}},
}
"""Specs that violate a rule, by the name of their object, which may be invalid too."""


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


VIOLATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"image": "no better image"}, "must be an image reference"),
    "limit": ({"resources": {"limits": {"memory": "96Mi"}}}, LIMIT),
    "derived": ({"resources": {"limits": {"memory": "2Mi"}}}, "must be at least 53Mi, because"),
    "item": ({"cache": {"maxItemSize": "33Mi"}}, "must be at most half of spec.cache.memory"),
    "request": ({"resources": {"requests": {"cpu": "751m"}}}, "must be at most the limit"),
    "negative": ({"resources": {"requests": {"cpu": "-2"}}}, "must be at least 0"),
    "metrics": (
        {"networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}]}},
        "must not be set without spec.monitoring",
    ),
}
"""Changes of these specs to other violations of the same rules."""


def test_valid_fields_of_an_object_stored_before_the_rules_can_be_changed(plane: ControlPlane, stored: str) -> None:
    for name in STORED:
        changed = plane.change(Key(ANOTHER, stored, name), {"spec": {"size": 3, "containerPort": 12000}})
        assert (changed["spec"]["size"], changed["spec"]["containerPort"]) == (3, 12000)
    for name, (spec, message) in VIOLATIONS.items():
        with pytest.raises(ApiError, match=re.escape(message)):
            plane.change(Key(ANOTHER, stored, name), {"spec": spec})
