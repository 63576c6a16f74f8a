"""Admission of AppService as a user of kubectl sees it: rejections, defaults and warnings."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import kube
from support.appservice import IMAGE, OTHER_IMAGE, appservice
from support.invalid_appservice import RULES, SIZE, TYPES
from support.invalid_memcached import NAME, NAMES, InvalidObject
from support.kube import Object, kubectl

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def empty() -> Iterator[str]:
    """A namespace in which no test stores anything."""
    with kube.temporary_namespace() as name:
        yield name


@pytest.mark.parametrize("invalid", [*RULES.values(), *TYPES.values()], ids=[*RULES, *TYPES])
def test_violation_is_rejected_with_field_value_and_remedy(empty: str, invalid: InvalidObject) -> None:
    error = kube.rejection(appservice(empty, **invalid.spec))
    assert [part for part in invalid.expected if part not in error] == [], error
    assert kube.get("appservices", empty, "app") is None


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name_that_is_invalid_for_children_is_rejected(empty: str, name: str) -> None:
    error = kube.rejection(appservice(empty, name))
    assert "metadata.name" in error
    assert NAME in error


def test_object_without_a_spec_is_rejected(empty: str) -> None:
    obj = appservice(empty)
    del obj["spec"]
    assert "spec.image: Required value" in kube.rejection(obj)


def test_defaults_are_set(empty: str) -> None:
    ports: list[Object] = [{"port": 80}, {"port": 53, "protocol": "UDP", "targetPort": 5353}]
    assert dry_run(appservice(empty, ports=ports))["spec"] == {
        "image": IMAGE,
        "size": 1,
        "ports": [
            {"name": "tcp-80", "port": 80, "protocol": "TCP", "targetPort": 80},
            {"name": "udp-53", "port": 53, "protocol": "UDP", "targetPort": 5353},
        ],
    }


def test_a_single_port_needs_no_name(empty: str) -> None:
    (port,) = dry_run(appservice(empty, ports=[{"port": 8080}]))["spec"]["ports"]
    assert port == {"port": 8080, "protocol": "TCP", "targetPort": 8080}


def test_given_values_are_kept(empty: str) -> None:
    port = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "http"}
    spec: dict[str, Any] = {"image": IMAGE, "size": 3, "ports": [port], "envs": [{"name": "A", "value": "1"}]}
    assert dry_run(appservice(empty, **spec))["spec"] == spec


def dry_run(obj: Object) -> Object:
    """The object that would be stored."""
    return json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=obj).stdout)


RESTART = "this change replaces 2 pods, a few at a time"
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"image": OTHER_IMAGE}, f"Warning: spec.image: {RESTART}"),
    "tag without a fixed version": ({"image": "nginx"}, "Warning: spec.image nginx has no fixed version"),
    "envs": ({"envs": [{"name": "A", "value": "1"}]}, f"Warning: spec.envs: {RESTART}"),
    "target port": ({"ports": [{"port": 80, "targetPort": 8080}]}, f"Warning: spec.ports: {RESTART}"),
    "no ports": ({"ports": []}, "Warning: spec.ports: without ports, the Service is deleted"),
    "fewer pods": ({"size": 1}, "Warning: 1 of 2 pods will be deleted"),
}
WITHOUT_WARNING: dict[str, dict[str, Any]] = {
    "nothing": {},
    "port": {"ports": [{"port": 8080, "targetPort": 80}]},
    "node port": {"ports": [{"port": 80, "nodePort": 32099}]},
    "name": {"ports": [{"port": 80, "name": "http"}]},
    "more pods": {"size": 3},
}


@pytest.fixture(scope="module")
def two_pods() -> Iterator[str]:
    """A namespace with an AppService of two pods; tests change it only with dry runs."""
    with kube.temporary_namespace() as name:
        kube.apply(appservice(name, size=2, ports=[{"port": 80}]))
        yield name


def warnings(namespace: str, change: dict[str, Any]) -> str:
    """What kubectl prints to standard error for a dry run of a change."""
    spec: dict[str, Any] = {"size": 2, "ports": [{"port": 80}], **change}
    obj = appservice(namespace, **spec)
    return kubectl("apply", "--dry-run=server", "-f", "-", stdin=obj).stderr


@pytest.mark.parametrize(("change", "warning"), CHANGES.values(), ids=CHANGES.keys())
def test_change_that_replaces_pods_or_deletes_the_service_is_warned_about(
    two_pods: str, change: dict[str, Any], warning: str
) -> None:
    assert warning in warnings(two_pods, change)


@pytest.mark.parametrize("change", WITHOUT_WARNING.values(), ids=WITHOUT_WARNING.keys())
def test_change_that_replaces_no_pods_has_no_warning(two_pods: str, change: dict[str, Any]) -> None:
    assert warnings(two_pods, change) == ""


def test_scaling_to_0_is_rejected_with_the_remedy(two_pods: str) -> None:
    done = kubectl("scale", "appsvc/app", "-n", two_pods, "--replicas=0", check=False)
    assert SIZE in done.stderr
    assert done.returncode != 0
