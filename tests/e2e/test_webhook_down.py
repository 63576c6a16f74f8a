"""Behaviour without admission or without CRD rules, and of objects that were stored before the rules."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import installed, kube
from support.invalid_memcached import PORT, SIZE
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import IMAGE, SMALL, conditions, memcached, pods_of, wait_until_degraded, wait_until_ready

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
            eventually(lambda: kube.get("deployments", space, cascade) is None, 30, "the Deployment is deleted")

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


BAD: dict[str, dict[str, Any]] = {
    "zero": {"size": 0, "containerPort": 80, "resources": {"limits": {"memory": "1Mi"}}},
    "text": {"size": "three", "replicas": 3},
    "small": {"image": IMAGE, "size": 1, "cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": "100Mi"}}},
    "unsized": {"image": "docker.io/library/memcached:1.6.38", "resources": SMALL},
}
"""Specs stored before the rules. `small` was valid in release 0.1.0; the last one is valid, but without defaults."""


@pytest.fixture(scope="class")
def crashes(space: str) -> Iterator[None]:
    """Store invalid objects; the controller must not crash."""
    before = installed.restarts(installed.CONTROLLER)
    with installed.without_rules(), installed.without_configurations():
        for name, spec in BAD.items():
            kubectl("create", "-f", "-", stdin=memcached(space, name, **spec))
    yield
    assert installed.restarts(installed.CONTROLLER) == before


@pytest.mark.usefixtures("crashes")
class TestObjectsStoredBeforeTheRules:
    """They were stored without rules; all rules are in effect now."""

    def test_status_reports_the_violations(self, space: str) -> None:
        message = wait_until_degraded(space, "InvalidSpec", "zero")["message"]
        for part in ("spec.size: Invalid value: 0", SIZE, "spec.containerPort", PORT, "spec.resources.limits[memory]"):
            assert part in message
        assert "spec.size" in wait_until_degraded(space, "InvalidSpec", "text")["message"]
        assert kube.get("deployments", space, "zero") is None
        assert set(conditions(space, "zero")) == {"Available", "Progressing", "Degraded"}

    def test_only_new_violations_are_denied_and_a_fixed_spec_recovers(self, space: str) -> None:
        wait_until_degraded(space, "InvalidSpec", "zero")
        patch(space, "zero", imagePullPolicy="Never")
        spec = must_get("memcacheds", space, "zero")["spec"]
        assert (spec["size"], spec["imagePullPolicy"]) == (0, "Never")
        done = patch(space, "zero", check=False, image="no such image")
        assert done.returncode != 0
        assert 'spec.image: Invalid value: "no such image"' in done.stderr
        patch(space, "zero", size=1, containerPort=11211, imagePullPolicy=None, resources={**SMALL, "limits": None})
        wait_until_ready(space, "zero")

    def test_memory_limit_that_the_first_release_accepted_is_kept(self, space: str) -> None:
        wait_until_ready(space, "small")
        done = kubectl("label", "memcached/small", "-n", space, "team=a")
        assert "Warning: spec.resources.limits[memory] is kept, but must be at least 126Mi" in done.stderr
        done = patch(space, "small", check=False, cache={"memory": "65Mi"})
        assert (done.returncode != 0, "must be at least 127Mi" in done.stderr) == (True, True)

    def test_object_stored_without_a_size_can_be_scaled(self, space: str) -> None:
        kubectl("scale", "memcached/unsized", "-n", space, "--replicas=2")
        assert wait_until_ready(space, "unsized")["status"]["readyReplicas"] == 2


def patch(namespace: str, name: str, *, check: bool = True, **spec: Any) -> Any:
    """Merge fields into a Memcached's spec."""
    text = json.dumps({"spec": spec})
    return kubectl("patch", f"memcached/{name}", "-n", namespace, "--type=merge", "-p", text, check=check)


def test_without_rules_in_the_crd_the_webhook_rejects_with_all_violations(space: str) -> None:
    spec: Object = {"size": 0, "containerPort": 80, "image": "no such image", "cache": {"memory": "1Mi"}}
    with installed.without_rules():
        error = kube.rejection(memcached(space, "invalid", **spec))
    for part in ("spec.size", SIZE, "spec.containerPort", PORT, "spec.image", "spec.cache.memory"):
        assert part in error
