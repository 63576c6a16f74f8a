"""An AppService runs and is reached as declared, follows every change, and keeps out of the way of others."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support import kube, memcached
from support.appservice import (
    IMAGE,
    OTHER_IMAGE,
    PAGES,
    appservice,
    conditions,
    degraded,
    node_ports,
    page,
    pods_of,
    settled,
)
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL

SAMPLE = Path(__file__).parents[2] / "config" / "samples" / "app_v1_appservice.yaml"
HEALED = 60
"""Seconds until an object whose obstacle is gone is well again without a touch: the retries back off meanwhile."""

pytestmark = pytest.mark.usefixtures("cluster")


def container_of(namespace: str, name: str = "app") -> Object:
    """The only container of the Deployment's pods."""
    (container,) = must_get("deployments", namespace, name)["spec"]["template"]["spec"]["containers"]
    return container


def serves(port: int, image: str) -> None:
    """Wait until a node answers with the page of an image, and with no other."""
    eventually(lambda: PAGES[image] in page(port), 15, f"port {port} answers with the page of {image}")


def test_nginx_app_is_reached_and_follows_every_change(namespace: str) -> None:
    sample: dict[str, Any] = yaml.safe_load(SAMPLE.read_text())
    assert sample["metadata"]["name"] == "nginx-app"
    kubectl("apply", "-n", namespace, "-f", str(SAMPLE))
    found = settled(namespace, "nginx-app")
    serves(30002, IMAGE)
    assert node_ports(found) == {80: 30002}
    assert len(found["status"]["nodes"]) == len(pods_of(namespace, "nginx-app")) == 2
    before = must_get("services", namespace, "nginx-app")

    def change(**spec: Any) -> Object:
        sample["spec"] |= spec
        kube.apply(sample, "-n", namespace)
        return settled(namespace, "nginx-app")

    change(image=OTHER_IMAGE)
    serves(30002, OTHER_IMAGE)
    change(envs=[{"name": "LEVEL", "value": "info"}])
    assert container_of(namespace, "nginx-app")["env"] == [{"name": "LEVEL", "value": "info"}]
    assert change(size=3)["status"]["readyReplicas"] == 3
    changed = change(ports=[{"port": 8080, "targetPort": 80, "nodePort": 30003}])
    assert node_ports(changed) == {8080: 30003}
    serves(30003, OTHER_IMAGE)
    eventually(lambda: page(30002) == "", 15, "the former node port is closed")
    after = must_get("services", namespace, "nginx-app")
    for part in ("uid", "creationTimestamp"):
        assert after["metadata"][part] == before["metadata"][part]
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]


def test_the_status_has_the_counts_of_the_deployment(namespace: str) -> None:
    kube.apply(appservice(namespace, size=2, resources=SMALL))
    status = settled(namespace)["status"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    assert [status[count] for count in counts] == [2, 2, 2, 2, 0]
    assert [condition["type"] for condition in status["conditions"]] == ["Available", "Progressing", "Degraded"]
    assert status["nodes"] == kube.names(pods_of(namespace))
    assert status["nodePorts"] == []
    selected = kube.items("pods", namespace, status["selector"])
    assert kube.names(selected) == status["nodes"]


def test_it_scales_by_its_short_name(namespace: str) -> None:
    kube.apply(appservice(namespace, resources=SMALL))
    settled(namespace)
    kubectl("scale", "appsvc/app", "-n", namespace, "--replicas=3")
    assert settled(namespace)["status"]["readyReplicas"] == 3


def test_variables_come_from_everywhere(namespace: str) -> None:
    kubectl("create", "secret", "generic", "credentials", "--from-literal=password=secret", "-n", namespace)
    envs: list[Object] = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}},
        {"name": "BOTH", "value": "$(NAME)/$(PASSWORD)"},
        {"name": "EMPTY"},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1024Ki"}}},
    ]
    kube.apply(appservice(namespace, envs=envs, resources=SMALL))
    settled(namespace)
    (pod,) = kube.names(pods_of(namespace))
    text = kubectl("exec", "-n", namespace, pod, "--", "env").stdout
    assert {f"NAME={pod}", "PASSWORD=secret", f"BOTH={pod}/secret", "EMPTY=", "MEMORY=16"} <= set(text.splitlines())


def test_an_image_that_cannot_be_pulled_is_named_and_mended(namespace: str) -> None:
    kube.apply(appservice(namespace, image="localhost:1/no-such:image", resources=SMALL))
    message = degraded(namespace, "ImageUnavailable")["message"]
    for part in ("localhost:1/no-such:image", "spec.image", "imagePullSecrets"):
        assert part in message
    kube.apply(appservice(namespace, resources=SMALL))
    settled(namespace)


def test_children_edited_or_deleted_by_hand_are_put_back(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    settled(namespace)
    before = must_get("services", namespace, "app")
    patch = '{"spec": {"selector": {"added": "by-hand"}}}'
    kubectl("patch", "service/app", "-n", namespace, "-p", patch)
    eventually(lambda: must_get("services", namespace, "app")["spec"] == before["spec"], 15, "the Service is as before")
    kubectl("delete", "deployment/app", "service/app", "-n", namespace)
    eventually(lambda: kube.get("services", namespace, "app"), 15, "the Service is there again")
    settled(namespace)


def test_deleting_the_object_removes_everything(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    settled(namespace)
    kubectl("delete", "appsvc/app", "-n", namespace)

    def gone() -> bool:
        left = [obj for plural in ("deployments", "services", "pods") for obj in kube.items(plural, namespace)]
        assert not left, kube.names(left)
        return True

    eventually(gone, 60, "everything of the deleted AppService is gone")


def blocker(namespace: str) -> Object:
    """Somebody else's Service, which has a node port."""
    spec: Object = {"type": "NodePort", "selector": {"app": "other"}, "ports": [{"port": 80}]}
    meta = {"name": "other", "namespace": namespace}
    kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    return must_get("services", namespace, "other")


def test_a_node_port_that_is_taken_is_told_and_heals_when_it_is_free(namespace: str) -> None:
    taken = blocker(namespace)["spec"]["ports"][0]["nodePort"]
    kube.apply(appservice(namespace, ports=[{"port": 80, "nodePort": taken}], resources=SMALL))
    message = degraded(namespace, "ApplyFailed")["message"]
    for part in ("Service app", "spec.ports[0].nodePort", str(taken), "provided port is already allocated"):
        assert part in message
    kube.apply(appservice(namespace, "beside", ports=[{"port": 80}], resources=SMALL))
    settled(namespace, "beside")
    eventually(lambda: conditions(namespace)["Available"]["status"] == "True", 30, "its pods run nevertheless")
    kubectl("delete", "service/other", "-n", namespace)
    assert node_ports(settled(namespace, timeout=HEALED)) == {80: taken}
    serves(taken, IMAGE)


def untouched(namespace: str, name: str) -> tuple[Any, ...]:
    """What must not change of the children of somebody else."""
    deployment, service = must_get("deployments", namespace, name), must_get("services", namespace, name)
    meta = deployment["metadata"]
    return meta["uid"], meta["generation"], meta["labels"], service["metadata"], service["spec"]


def test_an_appservice_named_as_a_memcached_gets_a_conflict(namespace: str) -> None:
    kube.apply(memcached.memcached(namespace, "app", resources=SMALL))
    memcached.settled(namespace, "app")
    before = untouched(namespace, "app")
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    message = degraded(namespace, "Conflict")["message"]
    for part in (
        "Deployment app belongs to Memcached app",
        "Service app belongs",
        "use another name for this AppService",
    ):
        assert part in message
    assert untouched(namespace, "app") == before
    memcached.settled(namespace, "app")
    kubectl("delete", "mc/app", "-n", namespace)
    assert settled(namespace)["status"]["readyReplicas"] == 1


def test_a_memcached_named_as_an_appservice_gets_a_conflict(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    settled(namespace)
    before = untouched(namespace, "app")
    kube.apply(memcached.memcached(namespace, "app", resources=SMALL))
    message = memcached.degraded(namespace, "Conflict", "app")["message"]
    assert "Deployment app belongs to AppService app" in message
    assert "use another name for this Memcached" in message
    assert untouched(namespace, "app") == before
    settled(namespace)
