"""The CRD alone enforces the rules of AppService, with the same messages as admission."""

from typing import Any

import pytest

from integration.control_plane import ControlPlane
from memcached_api.appservice.types import decode_spec
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.appservice.desired.deployment import deployment
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, Resource
from support.appservice import appservice
from support.invalid_appservice import RULES, TYPES
from support.invalid_memcached import NAME, NAMES, InvalidObject, missing_parts


@pytest.mark.parametrize("invalid", [*RULES.values(), *TYPES.values()], ids=[*RULES, *TYPES])
def test_violation_is_rejected_with_field_value_and_remedy(
    plane: ControlPlane, version: str, namespace: str, invalid: InvalidObject
) -> None:
    with pytest.raises(ApiError) as caught:
        plane.would_create(APPSERVICES, appservice(namespace, **invalid.spec))
    assert missing_parts(invalid, caught.value.message, version) == [], caught.value.message


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name_that_is_invalid_for_children_is_rejected(plane: ControlPlane, namespace: str, name: str) -> None:
    with pytest.raises(ApiError, match=NAME):
        plane.would_create(APPSERVICES, appservice(namespace, name))


def test_static_defaults_are_set(plane: ControlPlane, namespace: str) -> None:
    spec = plane.would_create(APPSERVICES, appservice(namespace, ports=[{"port": 80}]))["spec"]
    assert (spec["size"], spec["ports"]) == (1, [{"port": 80, "protocol": "TCP"}])


def test_largest_object_is_within_the_cost_budget_of_the_rules(plane: ControlPlane, namespace: str) -> None:
    ports: list[dict[str, Any]] = [
        {"name": f"{'a' * 60}{number}", "port": 1 + number, "nodePort": 30000 + number} for number in range(64)
    ]
    ports[0]["targetPort"] = "http"
    ports[-1]["name"] = "http"
    envs = [{"name": f"{'A' * 250}{number}", "value": "a" * 1000} for number in range(128)]
    stored = plane.would_create(APPSERVICES, appservice(namespace, "a" * 52, ports=ports, envs=envs))
    assert (len(stored["spec"]["ports"]), len(stored["spec"]["envs"])) == (64, 128)


def test_target_port_can_be_a_number_or_a_name(plane: ControlPlane, namespace: str) -> None:
    ports: list[dict[str, Any]] = [
        {"name": "lowest", "port": 80, "targetPort": 1},
        {"name": "highest", "port": 81, "targetPort": 65535},
        {"name": "by-name", "port": 82, "targetPort": "highest"},
    ]
    plane.would_create(APPSERVICES, appservice(namespace, ports=ports))


def test_stored_object_can_be_changed(plane: ControlPlane, namespace: str) -> None:
    plane.create(APPSERVICES, appservice(namespace, ports=[{"port": 80}]))
    key = Key(APPSERVICES, namespace, "app")
    assert plane.change(key, {"spec": {"size": 3}})["spec"]["size"] == 3


LONGEST = ".".join(["a" * 62] * 4) + "a"
KEYS = (
    *("a", "A", "a.b_c-D", "example.com/team", "Example.com/team", "a" * 63, "a" * 64, f"{LONGEST}/a", f"{LONGEST}b/a"),
    *("", " ", "a b", "a/", "/a", "a/b/c", "-a", "a-", "a..b/c", "a_b/c", "ä", "a'", "a']['b", "a\nb", "..", "a]"),
)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_field_path_is_accepted_if_and_only_if_a_deployment_accepts_it(
    plane: ControlPlane, namespace: str, kind: str, key: str
) -> None:
    envs: list[dict[str, Any]] = [
        {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.{kind}['{key}']"}}}
    ]
    app = appservice(namespace, envs=envs)
    child = deployment(app, decode_spec(app))
    assert is_accepted(plane, APPSERVICES, app) == is_accepted(plane, DEPLOYMENTS, child)


def is_accepted(plane: ControlPlane, resource: Resource, obj: Object) -> bool:
    """Whether the API server would create an object."""
    try:
        plane.would_create(resource, obj)
    except ApiError as error:
        if error.code != 422:
            raise
        return False
    return True
