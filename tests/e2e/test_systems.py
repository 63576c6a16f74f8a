"""The required behaviour of the operator with real pods, in both API versions."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support import kube
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, addresses, memcached, pods_of, ready_addresses, send_commands, wait_until_ready

SAMPLES = Path(__file__).parents[2] / "config" / "samples"
VERSIONS = ("v1", "v1alpha1")

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each of the API versions."""
    return request.param


def assert_nodes_are_the_existing_pods(namespace: str, name: str, size: int) -> None:
    """Assert that `status.nodes` has exactly the names of the `size` existing pods."""

    def matches() -> bool:
        nodes = must_get("memcacheds", namespace, name)["status"]["nodes"]
        assert nodes == kube.names(pods_of(namespace, name))
        return len(nodes) == size

    eventually(matches, 60, f"status.nodes of {name} lists exactly the {size} existing pods")


def container_of(namespace: str, name: str) -> Object:
    """The only container of the Deployment's pods."""
    deployment = must_get("deployments", namespace, name)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return container


def test_status_nodes_follow_size_3_then_5_then_3(namespace: str, version: str) -> None:
    for size in (3, 5, 3):
        kube.apply(memcached(namespace, "example-memcached", version, size=size, resources=SMALL))
        wait_until_ready(namespace, "example-memcached")
        deployment = must_get("deployments", namespace, "example-memcached")
        assert (deployment["spec"]["replicas"], deployment["status"]["readyReplicas"]) == (size, size)
        assert_nodes_are_the_existing_pods(namespace, "example-memcached", size)


def test_scale_subresource_reads_and_sets_the_size(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    wait_until_ready(namespace)
    kubectl("scale", f"memcacheds.{version}.cache.example.com/cache", "-n", namespace, "--replicas=2")
    found = wait_until_ready(namespace)
    assert (found["spec"]["size"], found["status"]["replicas"]) == (2, 2)
    scale = kube.read(f"/apis/cache.example.com/{version}/namespaces/{namespace}/memcacheds/cache/scale")
    assert scale is not None
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)
    selected = kube.items("pods", namespace, scale["status"]["selector"])
    assert {pod["metadata"]["name"] for pod in selected} >= set(found["status"]["nodes"])


def test_deleting_the_object_deletes_deployment_service_and_pods(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    wait_until_ready(namespace)
    kubectl("delete", f"memcacheds.{version}.cache.example.com/cache", "-n", namespace)

    def deleted() -> bool:
        remaining = [*kube.items("deployments", namespace), *kube.items("services", namespace)]
        remaining += [*kube.items("replicasets", namespace), *kube.items("pods", namespace)]
        assert not remaining, kube.names(remaining)
        return True

    eventually(deleted, 60, "all children of the Memcached are deleted")


@pytest.mark.parametrize("version", VERSIONS)
def test_sample_has_its_nodes_in_the_status(namespace: str, version: str) -> None:
    sample: dict[str, Any] = yaml.safe_load((SAMPLES / f"cache_{version}_memcached.yaml").read_text())
    assert sample["apiVersion"] == f"cache.example.com/{version}"
    assert sample["metadata"]["name"] == "memcached-sample"
    sample["metadata"]["namespace"] = namespace
    kube.apply(sample)
    wait_until_ready(namespace, "memcached-sample")
    shown = kubectl("get", "memcached/memcached-sample", "-n", namespace, "-o", "yaml").stdout
    assert yaml.safe_load(shown)["status"]["nodes"] == kube.names(pods_of(namespace, "memcached-sample"))
    assert_nodes_are_the_existing_pods(namespace, "memcached-sample", sample["spec"].get("size", 1))


def test_pods_have_the_documented_requests_probes_and_user(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, size=1, containerPort=11211))
    owner = wait_until_ready(namespace)
    container = container_of(namespace, "cache")
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "128Mi"}
    assert container["command"] == ["memcached", "-m", "64", "-p", "11211", "-U", "0", "-o", "modern", "-v"]
    probe = container["livenessProbe"]
    assert (probe["initialDelaySeconds"], probe["periodSeconds"]) == (30, 10)
    assert probe["tcpSocket"]["port"] in (11211, container["ports"][0]["name"])
    assert container["ports"][0]["containerPort"] == 11211
    for plural in ("deployments", "services"):
        (reference,) = must_get(plural, namespace, "cache")["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["uid"]) == ("Memcached", owner["metadata"]["uid"])
        assert reference["controller"]
    (pod,) = pods_of(namespace)
    assert kubectl("exec", "-n", namespace, pod["metadata"]["name"], "--", "id", "-u").stdout.strip() == "1001"


def test_deleted_children_are_recreated(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    wait_until_ready(namespace)
    old = uids(namespace)
    kubectl("delete", "deployment/cache", "service/cache", "-n", namespace)
    eventually(lambda: not uids(namespace) & old, 60, "both exist again")
    wait_until_ready(namespace)
    assert_nodes_are_the_existing_pods(namespace, "cache", 1)


def uids(namespace: str) -> set[str]:
    """The uids of both children."""
    return {must_get(plural, namespace, "cache")["metadata"]["uid"] for plural in ("deployments", "services")}


EDITS: dict[str, tuple[str, Object]] = {
    "replicas": ("deployment", {"spec": {"replicas": 3}}),
    "image": (
        "deployment",
        {"spec": {"template": {"spec": {"containers": [{"name": "memcached", "image": "docker.io/library/other"}]}}}},
    ),
    "labels": ("deployment", {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}),
    "port": ("service", {"spec": {"ports": [{"name": "memcached", "port": 11211, "targetPort": 1}]}}),
    "selector": ("service", {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}),
    "additional selector": ("service", {"spec": {"selector": {"added": "manually"}}}),
}


@pytest.mark.parametrize(("kind", "edit"), EDITS.values(), ids=EDITS.keys())
def test_manual_edit_is_reverted(namespace: str, kind: str, edit: Object) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    before = must_get(f"{kind}s", namespace, "cache")
    kubectl("patch", kind, "cache", "-n", namespace, "-p", yaml.safe_dump(edit))

    def reverted() -> bool:
        now = must_get(f"{kind}s", namespace, "cache")
        assert now["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        assert now["spec"] == before["spec"]
        assert now["metadata"]["labels"] == before["metadata"]["labels"]
        return True

    eventually(reverted, 60, f"the {kind} is restored")
    wait_until_ready(namespace)


def test_conditions_follow_every_change(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, size=1, resources=SMALL))
    first = wait_until_ready(namespace)
    kube.apply(memcached(namespace, version=version, size=4, resources=SMALL))
    second = wait_until_ready(namespace)
    for found in (first, second):
        status, size = found["status"], found["spec"]["size"]
        assert [condition["type"] for condition in status["conditions"]] == ["Available", "Progressing", "Degraded"]
        generation = found["metadata"]["generation"]
        assert {condition["observedGeneration"] for condition in status["conditions"]} == {generation}
        assert status["observedGeneration"] == generation
        assert (status["replicas"], status["readyReplicas"]) == (size, size)
        assert status["conditions"][0]["message"] == f"{size} of {size} pods are ready"


def test_size_0_is_rejected_and_nothing_is_stored(namespace: str, version: str) -> None:
    assert "spec.size" in kube.rejection(memcached(namespace, version=version, size=0))
    assert kube.get("memcacheds", namespace, "cache") is None


def test_every_endpoint_stores_and_returns_values(namespace: str) -> None:
    kube.apply(memcached(namespace, size=2, containerPort=11311, resources=SMALL))
    wait_until_ready(namespace)
    pods = pods_of(namespace)
    expected = addresses(pods)
    eventually(lambda: ready_addresses(namespace) == expected, 60, "both pods are endpoints of the Service")
    assert resolved(namespace, pods[0], f"cache.{namespace}.svc.cluster.local") == expected
    for address in expected:
        response = send_commands(address, 11311, b"set key 0 0 5", b"value", b"get key")
        assert response == b"STORED\r\nVALUE key 0 5\r\nvalue\r\nEND\r\n"
        assert b"STAT maxbytes 67108864\r\n" in send_commands(address, 11311, b"stats settings")


def resolved(namespace: str, pod: Object, name: str) -> set[str]:
    """The addresses that a name resolves to in the cluster."""
    done = kubectl("exec", "-n", namespace, pod["metadata"]["name"], "--", "getent", "ahostsv4", name)
    return {line.split()[0] for line in done.stdout.splitlines()}
