import msgspec
import pytest

from memcached_api.appservice.types import AppServiceStatus
from memcached_operator.appservice.status import status
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.reporting.conditions import with_transition_times
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, key_of
from unit.builders import NOW, appservice, owned, pod, rolled_out, snapshot_of, waiting

CR = appservice("cache")
LIVE = rolled_out()
PORTS: list[Object] = [
    {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30002},
    {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53, "nodePort": 31053},
]
SERVICE: Object = {**owned(resource=SERVICES), "spec": {"ports": PORTS}}
CHILDREN = {key_of(DEPLOYMENTS, LIVE): LIVE, key_of(SERVICES, SERVICE): SERVICE}
OBSERVED = snapshot_of(CR, CHILDREN, (pod("b"), pod("c"), pod("a")))


def test_counts_of_the_deployment_and_node_ports_of_the_service() -> None:
    found = status(OBSERVED, Outcome(), NOW).status
    conditions = found.pop("conditions")
    assert found == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "unavailableReplicas": 0,
        "selector": "app.kubernetes.io/instance=cache,app.kubernetes.io/managed-by=memcached-operator,"
        "app.kubernetes.io/name=appservice",
        "nodes": ["a", "b", "c"],
        "nodePorts": [
            {"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30002},
            {"name": "dns", "protocol": "UDP", "port": 53, "nodePort": 31053},
        ],
    }
    assert [(each["type"], each["status"]) for each in conditions] == [
        ("Available", "True"),
        ("Progressing", "False"),
        ("Degraded", "False"),
        ("Ready", "True"),
    ]


@pytest.mark.parametrize(("generation", "updated"), [(2, 3), (3, 0)], ids=["current", "of an earlier generation"])
def test_pods_are_updated_once_the_deployment_has_observed_its_template(generation: int, updated: int) -> None:
    live = {**LIVE, "metadata": {**LIVE["metadata"], "generation": generation}}
    snapshot = snapshot_of(CR, {key_of(DEPLOYMENTS, live): live})
    assert status(snapshot, Outcome(), NOW).status["updatedReplicas"] == updated


def test_status_without_children() -> None:
    found = status(snapshot_of(CR), Outcome(), NOW).status
    assert (found["replicas"], found["unavailableReplicas"], found["nodes"], found["nodePorts"]) == (0, 0, [], [])


def test_port_without_a_node_port_is_not_reported() -> None:
    service: Object = {**owned(resource=SERVICES), "spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}
    snapshot = snapshot_of(CR, {key_of(SERVICES, service): service})
    assert status(snapshot, Outcome(), NOW).status["nodePorts"] == []


def test_status_matches_the_api_type() -> None:
    found = status(OBSERVED, Outcome(), NOW).status
    found["conditions"] = with_transition_times([], found["conditions"], NOW)
    assert msgspec.to_builtins(msgspec.convert(found, AppServiceStatus)) == found


def test_remedy_for_an_image_names_the_field_of_this_kind() -> None:
    stuck = pod(containerStatuses=[{**waiting("ErrImagePull", "unauthorized"), "name": "cache"}])
    snapshot = snapshot_of(CR, {key_of(DEPLOYMENTS, LIVE): LIVE}, (stuck,))
    degraded = status(snapshot, Outcome(), NOW).status["conditions"][2]
    assert degraded["reason"] == "ImageUnavailable"
    assert degraded["message"].endswith("in imagePullSecrets of the ServiceAccount default, and delete the pod")
