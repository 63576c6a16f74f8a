"""Behaviour while the webhook does not run, without its configurations, and without the rules of the CRD."""

from collections.abc import Iterator

import pytest

from support import installed, kube
from support.invalid_memcached import PORT, SIZE
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_ready
from support.waiting import STEP

CASCADES = ("background", "foreground", "orphan")

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace for this module."""
    with kube.temporary_namespace() as name:
        yield name


@pytest.fixture(scope="class")
def stopped(space: str) -> Iterator[None]:
    """Create some objects, then stop admission."""
    for name in (*CASCADES, "cache"):
        kube.apply(memcached(space, name, resources=SMALL))
    for name in (*CASCADES, "cache"):
        wait_until_ready(space, name)
    with installed.without_webhook():
        yield
    kube.apply(memcached(space, "afterwards", resources=SMALL))
    wait_until_ready(space, "afterwards")


@pytest.mark.usefixtures("stopped")
class TestProcessesStopped:
    """No admission pod runs; the webhook configurations are in place."""

    def test_creating_and_changing_fail_closed_with_the_cause(self, space: str) -> None:
        error = kube.rejection(memcached(space, "new"))
        for part in ("failed calling webhook", "mmemcached.cache.example.com", "memcached-operator-webhook-service"):
            assert part in error
        assert kube.get("memcacheds", space, "new") is None
        assert "failed calling webhook" in kube.rejection(memcached(space, containerPort=12000))
        assert must_get("memcacheds", space, "cache")["spec"]["containerPort"] == 11211

    @pytest.mark.parametrize("cascade", CASCADES)
    def test_deleting_works(self, space: str, cascade: str) -> None:
        kubectl("delete", "memcached", cascade, "-n", space, f"--cascade={cascade}", "--timeout=60s")
        assert kube.get("memcacheds", space, cascade) is None
        if cascade == "orphan":
            deployment = must_get("deployments", space, cascade)
            assert "ownerReferences" not in deployment["metadata"]
            kubectl("delete", f"deployment/{cascade}", f"service/{cascade}", "-n", space, "--wait=false")
        else:
            eventually(lambda: kube.get("deployments", space, cascade) is None, STEP, "the Deployment is deleted")

    def test_scaling_works_and_updates_the_status(self, space: str) -> None:
        kubectl("scale", "memcached/cache", "-n", space, "--replicas=2")
        status = wait_until_ready(space)["status"]
        assert status["readyReplicas"] == 2
        assert status["nodes"] == kube.names(pods_of(space))


def test_without_configurations_the_crd_rejects_and_pods_run_the_default_image(space: str) -> None:
    with installed.without_configurations():
        assert SIZE in kube.rejection(memcached(space, "invalid", size=0))
        kube.apply(memcached(space, "unpinned", resources=SMALL))
        assert "image" not in wait_until_ready(space, "unpinned")["spec"]
    kubectl("delete", "memcached/unpinned", "-n", space, "--wait=false")


def test_without_rules_in_the_crd_the_webhook_rejects_with_all_violations(space: str) -> None:
    spec: Object = {"size": 0, "containerPort": 80, "image": "no such image", "cache": {"memory": "1Mi"}}
    with installed.without_rules():
        error = kube.rejection(memcached(space, "invalid", **spec))
    for part in ("spec.size", SIZE, "spec.containerPort", PORT, "spec.image", "spec.cache.memory"):
        assert part in error
