"""A cache with real pods: created, scaled, restored after manual changes, and deleted."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support import kube
from support.audit import Audit
from support.installed import CRD_SIZE_ERROR
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import (
    IMAGE,
    SMALL,
    addresses,
    memcached,
    pods_of,
    ready_addresses,
    send_commands,
    wait_until_ready,
)

SAMPLES = Path(__file__).parents[2] / "config" / "samples"

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.smoke
def test_cache_is_created_scaled_and_deleted(namespace: str, audit: Audit) -> None:
    kube.apply(memcached(namespace, size=3, resources=SMALL))
    wait_until_ready(namespace)
    assert_serves(namespace, 3)
    audit.wait_until_quiet(namespace=namespace)
    created = {f"create {each}": 1 for each in ("deployments", "services", "poddisruptionbudgets")}
    assert {what: count for what, count in audit.writes(namespace).items() if "status" not in what} == created
    kubectl("scale", "memcached/cache", "-n", namespace, "--replicas=5")
    wait_until_ready(namespace)
    assert_serves(namespace, 5)
    kube.apply(memcached(namespace, size=3, resources=SMALL))
    wait_until_ready(namespace)
    assert_serves(namespace, 3)
    kubectl("delete", "memcached/cache", "-n", namespace)

    def deleted() -> bool:
        plurals = ("deployments", "replicasets", "services", "poddisruptionbudgets", "pods")
        remaining = [obj for plural in plurals for obj in kube.items(plural, namespace)]
        assert not remaining, kube.names(remaining)
        return True

    eventually(deleted, description="all children of the Memcached are deleted")


def assert_serves(namespace: str, size: int) -> None:
    """Assert that the status and the name of the Service lead to exactly the existing pods, and that each serves."""

    def settled() -> bool:
        status, pods = must_get("memcacheds", namespace, "cache")["status"], pods_of(namespace)
        assert (status["nodes"], status["readyReplicas"]) == (kube.names(pods), size)
        assert resolved(namespace, pods[0]) == ready_addresses(namespace) == addresses(pods)
        return len(pods) == size

    eventually(settled, description=f"the status, the endpoints and DNS have exactly {size} pods")
    for address in addresses(pods_of(namespace)):
        response = send_commands(address, 11211, b"set key 0 0 5", b"value", b"get key")
        assert response == b"STORED\r\nVALUE key 0 5\r\nvalue\r\nEND\r\n"


def resolved(namespace: str, pod: Object) -> set[str]:
    """The addresses that the name of the Service resolves to in a pod."""
    name = f"cache.{namespace}.svc.cluster.local"
    done = kubectl("exec", "-n", namespace, pod["metadata"]["name"], "--", "getent", "ahostsv4", name)
    return {line.split()[0] for line in done.stdout.splitlines()}


@pytest.mark.smoke
def test_invalid_object_is_rejected_and_a_valid_one_gets_defaults(namespace: str) -> None:
    assert CRD_SIZE_ERROR in kube.rejection(memcached(namespace, size=0))
    assert kube.get("memcacheds", namespace, "cache") is None
    done = kubectl("create", "-f", "-", stdin=memcached(namespace, image="memcached:latest", cache={"memory": "64Mi"}))
    assert "has no fixed version" in done.stderr, "the webhook must be called"
    kubectl("create", "-f", "-", stdin=memcached(namespace, "valid", resources=SMALL))
    assert wait_until_ready(namespace, "valid")["spec"]["image"] == IMAGE
    done = kubectl("scale", "memcached/valid", "-n", namespace, "--replicas=0", check=False)
    assert CRD_SIZE_ERROR in done.stderr


EDITS: dict[str, Object] = {
    "deployments": {
        "metadata": {"labels": {"app.kubernetes.io/managed-by": None}},
        "spec": {
            "replicas": 3,
            "template": {"spec": {"containers": [{"name": "memcached", "image": "docker.io/library/other"}]}},
        },
    },
    "services": {
        "spec": {
            "ports": [{"name": "memcached", "port": 11211, "targetPort": 1}],
            "selector": {"app.kubernetes.io/instance": "other", "added": "manually"},
        }
    },
}
"""Manual changes of each child."""


@pytest.mark.smoke
def test_changed_and_deleted_children_are_restored(namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    before = {plural: must_get(plural, namespace, "cache") for plural in EDITS}
    for plural, edit in EDITS.items():
        kubectl("patch", plural, "cache", "-n", namespace, "-p", yaml.safe_dump(edit))
    for plural, original in before.items():
        eventually(lambda old=original, key=plural: is_restored(key, old), description=f"the {plural} is restored")
    wait_until_ready(namespace)
    kubectl("delete", "deployment/cache", "service/cache", "-n", namespace, "--wait=false")
    for plural, original in before.items():
        eventually(lambda old=original, key=plural: is_recreated(key, old), description=f"the {plural} exists again")
    wait_until_ready(namespace)
    assert_serves(namespace, 1)


def is_restored(plural: str, before: Object) -> bool:
    """Whether an object was written since, and has its original spec and labels again."""
    meta = before["metadata"]
    now = must_get(plural, meta["namespace"], meta["name"])
    assert now["metadata"]["resourceVersion"] != meta["resourceVersion"]
    assert now["spec"] == before["spec"]
    assert now["metadata"]["labels"] == meta["labels"]
    return True


def is_recreated(plural: str, before: Object) -> bool:
    """Whether another object of this name exists."""
    meta = before["metadata"]
    found = kube.get(plural, meta["namespace"], meta["name"])
    return found is not None and found["metadata"]["uid"] != meta["uid"]


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_sample_of_each_version_runs_as_an_ordinary_user(namespace: str, version: str) -> None:
    sample: dict[str, Any] = yaml.safe_load((SAMPLES / f"cache_{version}_memcached.yaml").read_text())
    assert sample["apiVersion"] == f"cache.example.com/{version}"
    kube.apply(sample, "-n", namespace)
    wait_until_ready(namespace, "memcached-sample")
    shown = kubectl("get", f"memcacheds.{version}.cache.example.com/memcached-sample", "-n", namespace, "-o", "yaml")
    (pod, *_) = kube.names(pods_of(namespace, "memcached-sample"))
    assert pod in yaml.safe_load(shown.stdout)["status"]["nodes"]
    assert kubectl("exec", "-n", namespace, pod, "--", "id", "-u").stdout.strip() == "1001"
