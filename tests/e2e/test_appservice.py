"""An AppService is reachable, follows every change, and does not modify objects of others."""

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
    node_ports,
    page,
    pods_of,
    wait_until_degraded,
    wait_until_ready,
)
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL

SAMPLE = Path(__file__).parents[2] / "config" / "samples" / "app_v1_appservice.yaml"
RECOVERY = 60
"""Maximum seconds until an object recovers after the cause of an error is removed: retries back off."""

pytestmark = pytest.mark.usefixtures("cluster")


def container_of(namespace: str, name: str = "app") -> Object:
    """The only container of the Deployment's pods."""
    (container,) = must_get("deployments", namespace, name)["spec"]["template"]["spec"]["containers"]
    return container


def assert_serves(port: int, image: str) -> None:
    """Wait until a node port serves the page of an image."""
    eventually(lambda: PAGES[image] in page(port), 60, f"port {port} serves the page of {image}")


@pytest.mark.smoke
def test_nginx_app_is_reachable_and_follows_every_change(namespace: str) -> None:
    sample: dict[str, Any] = yaml.safe_load(SAMPLE.read_text())
    assert sample["metadata"]["name"] == "nginx-app"
    kubectl("apply", "-n", namespace, "-f", str(SAMPLE))
    found = wait_until_ready(namespace, "nginx-app")
    assert_serves(30002, IMAGE)
    assert node_ports(found) == {80: 30002}
    assert len(found["status"]["nodes"]) == len(pods_of(namespace, "nginx-app")) == 2
    before = must_get("services", namespace, "nginx-app")

    def change(**spec: Any) -> Object:
        sample["spec"] |= spec
        kube.apply(sample, "-n", namespace)
        return wait_until_ready(namespace, "nginx-app")

    change(image=OTHER_IMAGE)
    assert_serves(30002, OTHER_IMAGE)
    change(envs=[{"name": "LEVEL", "value": "info"}])
    assert container_of(namespace, "nginx-app")["env"] == [{"name": "LEVEL", "value": "info"}]
    assert change(size=3)["status"]["readyReplicas"] == 3
    changed = change(ports=[{"port": 8080, "targetPort": 80, "nodePort": 30003}])
    assert node_ports(changed) == {8080: 30003}
    assert_serves(30003, OTHER_IMAGE)
    eventually(lambda: page(30002) == "", 60, "the former node port is closed")
    after = must_get("services", namespace, "nginx-app")
    for part in ("uid", "creationTimestamp"):
        assert after["metadata"][part] == before["metadata"][part]
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]


def test_status_has_the_counts_of_the_deployment(namespace: str) -> None:
    kube.apply(appservice(namespace, size=2, resources=SMALL))
    status = wait_until_ready(namespace)["status"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    assert [status[count] for count in counts] == [2, 2, 2, 2, 0]
    assert [condition["type"] for condition in status["conditions"]] == ["Available", "Progressing", "Degraded"]
    assert status["nodes"] == kube.names(pods_of(namespace))
    assert status["nodePorts"] == []
    selected = kube.items("pods", namespace, status["selector"])
    assert kube.names(selected) == status["nodes"]


def test_scaling_by_the_short_name(namespace: str) -> None:
    kube.apply(appservice(namespace, resources=SMALL))
    wait_until_ready(namespace)
    kubectl("scale", "appsvc/app", "-n", namespace, "--replicas=3")
    assert wait_until_ready(namespace)["status"]["readyReplicas"] == 3


def test_variables_from_every_source(namespace: str) -> None:
    kubectl("create", "secret", "generic", "credentials", "--from-literal=password=secret", "-n", namespace)
    envs: list[Object] = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}},
        {"name": "BOTH", "value": "$(NAME)/$(PASSWORD)"},
        {"name": "EMPTY"},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1024Ki"}}},
    ]
    kube.apply(appservice(namespace, envs=envs, resources=SMALL))
    wait_until_ready(namespace)
    (pod,) = kube.names(pods_of(namespace))
    text = kubectl("exec", "-n", namespace, pod, "--", "env").stdout
    assert {f"NAME={pod}", "PASSWORD=secret", f"BOTH={pod}/secret", "EMPTY=", "MEMORY=16"} <= set(text.splitlines())


def test_image_that_cannot_be_pulled_is_reported_until_fixed(namespace: str) -> None:
    kube.apply(appservice(namespace, image="localhost:1/no-such:image", resources=SMALL))
    message = wait_until_degraded(namespace, "ImageUnavailable")["message"]
    for part in ("localhost:1/no-such:image", "spec.image", "imagePullSecrets"):
        assert part in message
    kube.apply(appservice(namespace, resources=SMALL))
    wait_until_ready(namespace)


def test_manually_changed_or_deleted_children_are_restored(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    wait_until_ready(namespace)
    before = must_get("services", namespace, "app")
    patch = '{"spec": {"selector": {"added": "manually"}}}'
    kubectl("patch", "service/app", "-n", namespace, "-p", patch)
    eventually(lambda: must_get("services", namespace, "app")["spec"] == before["spec"], 60, "the Service is restored")
    kubectl("delete", "deployment/app", "service/app", "-n", namespace)
    eventually(lambda: kube.get("services", namespace, "app"), 60, "the Service exists again")
    wait_until_ready(namespace)


def test_deleting_the_object_deletes_its_children(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    wait_until_ready(namespace)
    kubectl("delete", "appsvc/app", "-n", namespace)

    def deleted() -> bool:
        remaining = [obj for plural in ("deployments", "services", "pods") for obj in kube.items(plural, namespace)]
        assert not remaining, kube.names(remaining)
        return True

    eventually(deleted, 60, "all children of the AppService are deleted")


def foreign_service(namespace: str) -> Object:
    """Create a Service with a node port that does not belong to the operator."""
    spec: Object = {"type": "NodePort", "selector": {"app": "other"}, "ports": [{"port": 80}]}
    meta = {"name": "other", "namespace": namespace}
    kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    return must_get("services", namespace, "other")


def test_allocated_node_port_is_reported_until_it_is_free(namespace: str) -> None:
    allocated = foreign_service(namespace)["spec"]["ports"][0]["nodePort"]
    kube.apply(appservice(namespace, ports=[{"port": 80, "nodePort": allocated}], resources=SMALL))
    message = wait_until_degraded(namespace, "ApplyFailed")["message"]
    for part in ("Service app", "spec.ports[0].nodePort", str(allocated), "provided port is already allocated"):
        assert part in message
    kube.apply(appservice(namespace, "beside", ports=[{"port": 80}], resources=SMALL))
    wait_until_ready(namespace, "beside")
    eventually(lambda: conditions(namespace)["Available"]["status"] == "True", 30, "its pods are available")
    kubectl("delete", "service/other", "-n", namespace)
    assert node_ports(wait_until_ready(namespace, timeout=RECOVERY)) == {80: allocated}
    assert_serves(allocated, IMAGE)


def snapshot(namespace: str, name: str) -> tuple[Any, ...]:
    """The parts of another object's children that must not change."""
    deployment, service = must_get("deployments", namespace, name), must_get("services", namespace, name)
    meta = deployment["metadata"]
    return meta["uid"], meta["generation"], meta["labels"], service["metadata"], service["spec"]


def test_appservice_with_the_name_of_a_memcached_is_a_conflict(namespace: str) -> None:
    kube.apply(memcached.memcached(namespace, "app", resources=SMALL))
    memcached.wait_until_ready(namespace, "app")
    before = snapshot(namespace, "app")
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    message = wait_until_degraded(namespace, "Conflict")["message"]
    for part in (
        "Deployment app belongs to Memcached app",
        "Service app belongs",
        "use another name for this AppService",
    ):
        assert part in message
    assert snapshot(namespace, "app") == before
    memcached.wait_until_ready(namespace, "app")
    kubectl("delete", "mc/app", "-n", namespace)
    assert wait_until_ready(namespace)["status"]["readyReplicas"] == 1


def test_memcached_with_the_name_of_an_appservice_is_a_conflict(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    wait_until_ready(namespace)
    before = snapshot(namespace, "app")
    kube.apply(memcached.memcached(namespace, "app", resources=SMALL))
    message = memcached.wait_until_degraded(namespace, "Conflict", "app")["message"]
    assert "Deployment app belongs to AppService app" in message
    assert "use another name for this Memcached" in message
    assert snapshot(namespace, "app") == before
    wait_until_ready(namespace)
