"""An AppService is reachable on a node port, follows every change, and does not modify objects of others."""

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
    node_ports,
    page,
    pods_of,
    wait_until_degraded,
    wait_until_ready,
)
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL

SAMPLE = Path(__file__).parents[2] / "config" / "samples" / "app_v1_appservice.yaml"
STATIC = 30040
"""A node port from the static part of the range, from which Kubernetes allocates last (KEP-3668)."""

pytestmark = pytest.mark.usefixtures("cluster")


def assert_serves(port: int, image: str) -> None:
    """Wait until a node port serves the page of an image."""
    eventually(lambda: PAGES[image] in page(port), description=f"port {port} serves the page of {image}")


@pytest.mark.smoke
def test_nginx_app_is_reachable_and_follows_every_change(namespace: str) -> None:
    sample: dict[str, Any] = yaml.safe_load(SAMPLE.read_text())
    assert sample["metadata"]["name"] == "nginx-app"
    kubectl("apply", "-n", namespace, "-f", str(SAMPLE))
    found = wait_until_ready(namespace, "nginx-app")
    assert_serves(30002, IMAGE)
    assert node_ports(found) == {80: 30002}
    assert found["status"]["nodes"] == kube.names(pods_of(namespace, "nginx-app"))
    before = must_get("services", namespace, "nginx-app")

    def change(**spec: Any) -> Object:
        sample["spec"] |= spec
        kube.apply(sample, "-n", namespace)
        return wait_until_ready(namespace, "nginx-app")

    change(image=OTHER_IMAGE, envs=[{"name": "LEVEL", "value": "info"}])
    assert_serves(30002, OTHER_IMAGE)
    (container,) = must_get("deployments", namespace, "nginx-app")["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "LEVEL", "value": "info"}]
    kubectl("scale", "appsvc/nginx-app", "-n", namespace, "--replicas=3")
    assert wait_until_ready(namespace, "nginx-app")["status"]["readyReplicas"] == 3
    changed = change(size=2, ports=[{"port": 8080, "targetPort": 80, "nodePort": 30003}])
    assert node_ports(changed) == {8080: 30003}
    assert_serves(30003, OTHER_IMAGE)
    eventually(lambda: page(30002) == "", description="the former node port is closed")
    after = must_get("services", namespace, "nginx-app")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]


def test_allocated_node_port_is_reported_until_it_is_free(namespace: str) -> None:
    spec: Object = {"type": "NodePort", "selector": {"app": "other"}, "ports": [{"port": 80}]}
    meta = {"name": "other", "namespace": namespace}
    kube.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    allocated = must_get("services", namespace, "other")["spec"]["ports"][0]["nodePort"]
    kube.apply(appservice(namespace, ports=[{"port": 80, "nodePort": allocated}], resources=SMALL))
    message = wait_until_degraded(namespace, "ApplyFailed")["message"]
    for part in ("Service app", "spec.ports[0].nodePort", str(allocated), "provided port is already allocated"):
        assert part in message
    kube.apply(appservice(namespace, "beside", ports=[{"port": 80}], resources=SMALL))
    wait_until_ready(namespace, "beside")
    kubectl("delete", "service/other", "-n", namespace)
    assert node_ports(wait_until_ready(namespace)) == {80: allocated}
    assert_serves(allocated, IMAGE)


def test_name_of_an_appservice_is_a_conflict_for_a_memcached(namespace: str) -> None:
    kube.apply(appservice(namespace, ports=[{"port": 80}], resources=SMALL))
    wait_until_ready(namespace)

    def children() -> list[Any]:
        deployment, service = must_get("deployments", namespace, "app"), must_get("services", namespace, "app")
        meta = deployment["metadata"]
        return [meta["uid"], meta["generation"], meta["labels"], service["metadata"], service["spec"]]

    before = children()
    kube.apply(memcached.memcached(namespace, "app", resources=SMALL))
    message = memcached.wait_until_degraded(namespace, "Conflict", "app")["message"]
    for part in (
        "Deployment app belongs to AppService app",
        "Use another name for Memcached app or for AppService app",
    ):
        assert part in message
    assert children() == before
    kubectl("delete", "appsvc/app", "-n", namespace)
    memcached.wait_until_ready(namespace, "app")


def port(number: int, name: str | None = None, **fields: Any) -> Object:
    """A port with the container's port as target."""
    return {"port": number, "targetPort": 80, **({"name": name} if name else {}), **fields}


PORTS: list[tuple[list[Object], dict[int, int | None]]] = [
    ([port(80)], {80: None}),
    ([port(8080)], {8080: 80}),
    ([port(8080, "web"), port(9090, "metrics")], {8080: 8080, 9090: None}),
    ([port(8081, "web"), port(9090, "metrics", targetPort="web")], {8081: 8080, 9090: 9090}),
    ([port(8081, "web", nodePort=STATIC)], {8081: STATIC}),
    ([port(84, "web")], {84: STATIC}),
]
"""Changes of the ports, and for each port of the result the previous port whose node port it has, or a number."""


def test_changed_ports_keep_their_node_ports_with_one_write_each(namespace: str, audit: Audit) -> None:
    known: dict[int, int] = {}
    service: Object = {}
    for number, (ports, expected) in enumerate(PORTS):
        since = Audit(audit.path)
        kube.apply(appservice(namespace, ports=ports, resources=SMALL))
        found = node_ports(wait_until_ready(namespace))
        kept = {new: known.get(old, old) for new, old in expected.items() if old is not None}
        assert found.items() >= kept.items(), ports
        assert found.keys() == expected.keys()
        assert len(set(found.values())) == len(found)
        if number:
            now = must_get("services", namespace, "app")
            assert now["metadata"]["uid"] == service["metadata"]["uid"]
            assert now["spec"]["clusterIP"] == service["spec"]["clusterIP"]
            # The first change also transfers the field ownership.
            assert since.writes(namespace)["patch services"] == (2 if number == 1 else 1)
        known, service = found, must_get("services", namespace, "app")
    assert_serves(STATIC, IMAGE)
    kube.apply(appservice(namespace, ports=[], resources=SMALL))
    assert node_ports(wait_until_ready(namespace)) == {}
    eventually(lambda: kube.get("services", namespace, "app") is None, description="the Service is deleted")
