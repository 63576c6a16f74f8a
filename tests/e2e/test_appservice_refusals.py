"""What is let in of the kind AppService, what is refused, filled in and told: as a user with kubectl sees it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import kube
from support.appservice import IMAGE, OTHER_IMAGE, appservice
from support.faulty import NAME, NAMES, Faulty
from support.faulty_appservice import RULES, SIZE, TYPES
from support.kube import Object, kubectl

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def empty() -> Iterator[str]:
    """A namespace in which nothing is ever stored."""
    with kube.own_namespace() as name:
        yield name


@pytest.mark.parametrize("faulty", [*RULES.values(), *TYPES.values()], ids=[*RULES, *TYPES])
def test_a_bad_object_is_refused_with_field_value_and_remedy(empty: str, faulty: Faulty) -> None:
    said = kube.refused(appservice(empty, **faulty.spec))
    assert [part for part in faulty.said if part not in said] == [], said
    assert kube.get("appservices", empty, "app") is None


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_that_children_cannot_have_is_refused(empty: str, name: str) -> None:
    said = kube.refused(appservice(empty, name))
    assert "metadata.name" in said
    assert NAME in said


def test_an_object_without_a_spec_is_refused(empty: str) -> None:
    asked = appservice(empty)
    del asked["spec"]
    assert "spec.image: Required value" in kube.refused(asked)


def test_what_is_absent_is_filled_in(empty: str) -> None:
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


def test_what_is_given_is_kept(empty: str) -> None:
    port = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "http"}
    spec: dict[str, Any] = {"image": IMAGE, "size": 3, "ports": [port], "envs": [{"name": "A", "value": "1"}]}
    assert dry_run(appservice(empty, **spec))["spec"] == spec


def dry_run(asked: Object) -> Object:
    """What would be stored."""
    return json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=asked).stdout)


RESTART = "this change replaces all pods in a rolling update"
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"image": OTHER_IMAGE}, f"Warning: spec.image: {RESTART}"),
    "loose tag": ({"image": "nginx"}, "Warning: spec.image nginx has no fixed version"),
    "envs": ({"envs": [{"name": "A", "value": "1"}]}, f"Warning: spec.envs: {RESTART}"),
    "target port": ({"ports": [{"port": 80, "targetPort": 8080}]}, f"Warning: spec.ports: {RESTART}"),
    "no ports": ({"ports": []}, "Warning: spec.ports: without ports, the Service is deleted"),
    "fewer": ({"size": 1}, "Warning: 1 of 2 pods will be deleted"),
}
FREE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "port": {"ports": [{"port": 8080, "targetPort": 80}]},
    "node port": {"ports": [{"port": 80, "nodePort": 32099}]},
    "name": {"ports": [{"port": 80, "name": "http"}]},
    "more": {"size": 3},
}


@pytest.fixture(scope="module")
def pair_of_pods() -> Iterator[str]:
    """A namespace with an AppService of two pods, which tests only ask about."""
    with kube.own_namespace() as name:
        kube.apply(appservice(name, size=2, ports=[{"port": 80}]))
        yield name


def told(namespace: str, change: dict[str, Any]) -> str:
    """What kubectl says to a change that is not stored."""
    spec: dict[str, Any] = {"size": 2, "ports": [{"port": 80}], **change}
    asked = appservice(namespace, **spec)
    return kubectl("apply", "--dry-run=server", "-f", "-", stdin=asked).stderr


@pytest.mark.parametrize(("change", "warning"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_that_replaces_pods_or_takes_the_service_away_is_told(
    pair_of_pods: str, change: dict[str, Any], warning: str
) -> None:
    assert warning in told(pair_of_pods, change)


@pytest.mark.parametrize("change", FREE.values(), ids=FREE.keys())
def test_a_change_that_replaces_nothing_is_not_warned_of(pair_of_pods: str, change: dict[str, Any]) -> None:
    assert told(pair_of_pods, change) == ""


def test_scaling_to_0_is_refused_with_the_remedy(pair_of_pods: str) -> None:
    done = kubectl("scale", "appsvc/app", "-n", pair_of_pods, "--replicas=0", check=False)
    assert SIZE in done.stderr
    assert done.returncode != 0
