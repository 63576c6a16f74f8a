"""The children of an AppService."""

import re
from typing import Any

import pytest

from memcached_api.appservice.types import with_defaults
from memcached_operator.appservice.controller import appservice, plan
from memcached_operator.engine.writes.intent import with_intent
from memcached_operator.engine.writes.ownership import is_current
from memcached_operator.kube.resource import SERVICES, Object, key_of
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW, owned
from unit.builders import appservice as cr_of


def children(cr: Object, service: Object | None = None) -> dict[str, Object]:
    """The desired children, by kind."""
    snapshot = Snapshot(cr, {} if service is None else {key_of(SERVICES, service): service})
    return {child["kind"]: child for child in plan(snapshot, NOW).children or ()}


def message_of(cr: Object) -> str:
    """The message about an invalid object, whose children stay as they are."""
    found = plan(Snapshot(cr), NOW)
    (problem,) = found.problems
    assert (found.children, problem.reason) == (None, "InvalidSpec")
    return problem.message


def pod_of(**spec: Any) -> Object:
    """The pod spec of the Deployment."""
    return children(cr_of(**spec))["Deployment"]["spec"]["template"]["spec"]


def container_of(**spec: Any) -> Object:
    """The only container."""
    (container,) = pod_of(**spec)["containers"]
    return container


def test_no_service_without_ports() -> None:
    assert list(children(cr_of())) == list(children(cr_of(ports=[]))) == ["Deployment"]
    assert list(children(cr_of(ports=[{"port": 80}]))) == ["Deployment", "Service"]
    assert {resource.kind for resource in appservice().owns} == {"Deployment", "Service"}


def test_children_and_no_pod_inherit_metadata() -> None:
    inherited = {"labels": {"team": "a"}, "annotations": {"team": "b"}}
    before = children(cr_of(ports=[{"port": 80}]))
    after = children(cr_of(ports=[{"port": 80}], inheritedMetadata=inherited))
    for kind, child in after.items():
        found, own = child.pop("metadata"), before[kind].pop("metadata")
        assert found == {**own, "labels": own["labels"] | {"team": "a"}, "annotations": {"team": "b"}}
    assert after == before
    assert list(after) == ["Deployment", "Service"]


SERVICE_ONLY: list[dict[str, Any]] = [
    {"size": 5},
    {"ports": [{"port": 81, "targetPort": 80}]},
    {"ports": [{"port": 80, "nodePort": 30001}]},
    {"ports": [{"port": 80, "name": "http", "appProtocol": "http"}]},
    {"ports": [{"port": 80}, {"port": 81, "targetPort": 80}]},
]


@pytest.mark.parametrize("spec", SERVICE_ONLY, ids=str)
def test_change_of_the_service_alone_does_not_change_the_pods(spec: dict[str, Any]) -> None:
    changed: dict[str, Any] = {"ports": [{"port": 80}], **spec}
    assert pod_of(**changed) == pod_of(ports=[{"port": 80}])


def test_environment_variables_are_spelled_as_the_api_server_stores_them() -> None:
    envs: list[dict[str, Any]] = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": ""},
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0.001"}}},
        {"name": "D", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b", "optional": False}}},
    ]
    found = container_of(envs=envs)["env"]
    assert found[0] == {"name": "A", "value": "1"}
    assert found[1] == {"name": "B"}
    assert found[2]["valueFrom"] == {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}
    assert found[3] == envs[3]


def stored(service: Object, *node_ports: int) -> Object:
    """The applied Service as the API server stores it, with node ports."""
    ports = [{**port, "nodePort": number} for port, number in zip(service["spec"]["ports"], node_ports, strict=True)]
    meta = {**owned(resource=SERVICES)["metadata"], **with_intent(service)["metadata"]}
    return {**service, "metadata": meta, "spec": {**service["spec"], "ports": ports, "clusterIP": "10.0.0.1"}}


CHANGES: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "no change": ([{"port": 80, "name": "http"}], True),
    "the current node port": ([{"port": 80, "name": "http", "nodePort": 31000}], True),
    "another node port": ([{"port": 80, "name": "http", "nodePort": 30001}], False),
    "another number": ([{"port": 81, "name": "http"}], False),
    "another name": ([{"port": 80, "name": "web"}], False),
}


@pytest.mark.parametrize(("ports", "current"), CHANGES.values(), ids=CHANGES.keys())
def test_service_is_written_only_if_it_differs(ports: list[dict[str, Any]], current: bool) -> None:
    live = stored(children(cr_of(ports=[{"port": 80, "name": "http"}]))["Service"], 31000)
    wanted = children(cr_of(ports=ports), live)["Service"]
    assert is_current(with_intent(wanted), live) == current
    rewritten = stored(wanted, wanted["spec"]["ports"][0]["nodePort"])
    assert is_current(with_intent(children(cr_of(ports=ports), rewritten)["Service"]), rewritten), (
        "one write must suffice"
    )


WITHOUT_DEFAULTS: dict[str, list[dict[str, Any]]] = {
    "one port": [{"port": 80}],
    "unnamed ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}],
    "a name that is a default": [{"port": 80}, {"port": 81, "name": "tcp-80", "targetPort": 8080}],
    "a target by name": [{"port": 80, "name": "http"}, {"port": 81, "targetPort": "http"}],
}


@pytest.mark.parametrize("ports", WITHOUT_DEFAULTS.values(), ids=WITHOUT_DEFAULTS.keys())
def test_defaults_that_release_0_1_0_stored_in_ports_make_no_difference(ports: list[dict[str, Any]]) -> None:
    wanted = children(cr_of(ports=ports))
    live = stored(wanted["Service"], *range(31000, 31000 + len(ports)))
    for written in (ports, with_defaults({"ports": ports})["ports"]):
        assert children(cr_of(ports=written)) == wanted
        assert is_current(with_intent(children(cr_of(ports=written), live)["Service"]), live)


def test_all_field_errors_of_an_invalid_object_are_one_problem() -> None:
    assert re.search(r"spec\.size.*spec\.ports\[0\]\.port", message_of(cr_of(size=0, ports=[{"port": 0}])))


def test_field_errors_that_exceed_the_message_limit_are_counted() -> None:
    message = message_of(cr_of(envs=[{"name": f"A={number}", "value": "x"} for number in range(128)]))
    assert len(message) <= 4096
    assert re.search(r", and \d+ more\]$", message)
