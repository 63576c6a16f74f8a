"""The status reports failures of pods and their cause within 15 s; fixing the spec clears it."""

from typing import Any

import pytest

from support import kube
from support.images import load_program
from support.kube import Object, eventually
from support.memcached import (
    IMAGE,
    SMALL,
    addresses,
    conditions,
    exhaust_memory,
    memcached,
    pods_of,
    ready_addresses,
    wait_until_degraded,
    wait_until_ready,
)

REPORTED = 60
"""Maximum seconds from a failure to a status that reports it."""

PAUSE = "localhost/memcached-operator/pause:1"
"""An image that every local cluster has, and that does not contain memcached."""

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="session")
def crashing_image(cluster: Object) -> str:
    """An image whose memcached exits with code 71."""
    if cluster["mode"] != "node":
        pytest.skip("needs a node that runs pods")
    return load_program("crashing", "exit 71")


def small(namespace: str, **spec: Any) -> Object:
    """A Memcached with small pods."""
    given: Object = {"resources": SMALL, **spec}
    return memcached(namespace, **given)


def assert_recovers(namespace: str, **spec: Any) -> None:
    """Assert that the object becomes ready with this spec, and that its status no longer reports the failure."""
    kube.apply(small(namespace, **spec))
    condition = wait_until_ready(namespace)["status"]["conditions"][2]
    assert (condition["reason"], condition["message"]) == ("AsExpected", "All components are healthy")


def test_image_that_cannot_be_pulled_is_reported(namespace: str) -> None:
    kube.apply(small(namespace, image="localhost:1/no-such:image"))
    message = wait_until_degraded(namespace, "ImageUnavailable", timeout=REPORTED)["message"]
    for part in ("localhost:1/no-such:image", "connection refused", "spec.image", kube.names(pods_of(namespace))[0]):
        assert part in message
    available = conditions(namespace)["Available"]
    assert (available["status"], available["reason"]) == ("False", "MinimumReplicasUnavailable")
    assert_recovers(namespace, image=IMAGE)


def test_missing_image_with_pull_policy_never_is_reported(namespace: str) -> None:
    kube.apply(small(namespace, image="localhost:1/no-such:image", imagePullPolicy="Never"))
    message = wait_until_degraded(namespace, "ImageUnavailable", timeout=REPORTED)["message"]
    assert "localhost:1/no-such:image" in message
    assert_recovers(namespace, image=IMAGE, imagePullPolicy="Never")


def test_old_pods_serve_while_a_new_image_cannot_be_pulled(namespace: str) -> None:
    kube.apply(small(namespace, size=2))
    wait_until_ready(namespace)
    serving = addresses(pods_of(namespace))
    eventually(lambda: ready_addresses(namespace) == serving, 60, "both pods are endpoints of the Service")
    kube.apply(small(namespace, size=2, image="localhost:1/no-such:image"))
    wait_until_degraded(namespace, "ImageUnavailable", timeout=REPORTED)
    assert conditions(namespace)["Available"]["status"] == "True"
    assert ready_addresses(namespace) == serving
    assert_recovers(namespace, size=2, image=IMAGE)


def test_image_without_memcached_is_reported(namespace: str) -> None:
    kube.apply(small(namespace, image=PAUSE))
    message = wait_until_degraded(namespace, "PodsCrashing", timeout=REPORTED)["message"]
    for part in ("cannot be started", '"memcached": executable file not found', kube.names(pods_of(namespace))[0]):
        assert part in message
    assert conditions(namespace)["Available"]["status"] == "False"
    assert_recovers(namespace, image=IMAGE)


def test_crash_is_reported_with_exit_code_and_reason(namespace: str, crashing_image: str) -> None:
    kube.apply(small(namespace, image=crashing_image))
    message = wait_until_degraded(namespace, "PodsCrashing", timeout=REPORTED)["message"]
    for part in ("exit code 71", "(Error)", "kubectl logs --previous", kube.names(pods_of(namespace))[0]):
        assert part in message
    assert conditions(namespace)["Available"]["status"] == "False"
    assert_recovers(namespace, image=IMAGE)


def test_condition_does_not_flap_in_a_crash_loop(namespace: str, crashing_image: str) -> None:
    kube.apply(small(namespace, image=crashing_image))
    since = wait_until_degraded(namespace, "PodsCrashing", timeout=REPORTED)["lastTransitionTime"]

    def restarts() -> int:
        return sum(
            status["restartCount"] for pod in pods_of(namespace) for status in pod["status"]["containerStatuses"]
        )

    kube.eventually(lambda: restarts() >= 2, 60, "the container was restarted twice")
    assert wait_until_degraded(namespace, "PodsCrashing", timeout=0)["lastTransitionTime"] == since


def test_out_of_memory_kill_is_reported(namespace: str) -> None:
    minimal = {**SMALL, "limits": {"memory": "95Mi"}}
    kube.apply(small(namespace, resources=minimal))
    wait_until_ready(namespace)
    exhaust_memory(pods_of(namespace)[0], mebibytes=300)
    message = wait_until_degraded(namespace, "PodsCrashing", timeout=REPORTED)["message"]
    for part in ("exit code 137", "OOMKilled", "spec.resources.limits.memory", kube.names(pods_of(namespace))[0]):
        assert part in message
    assert_recovers(namespace, resources={**SMALL, "limits": {"memory": "512Mi"}})


def test_unschedulable_pods_are_reported(namespace: str) -> None:
    kube.apply(small(namespace, resources={"requests": {"cpu": "5000"}}))

    def reported() -> bool:
        available = conditions(namespace).get("Available", {})
        assert available.get("status") == "False", available
        return "cannot be scheduled" in available["message"] and "cpu" in available["message"].lower()

    kube.eventually(reported, REPORTED, "Available reports that the pod cannot be scheduled")
    assert_recovers(namespace)


def test_pods_rejected_by_a_quota_are_reported(namespace: str) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": namespace},
        "spec": {"hard": {"pods": "0"}},
    }
    kube.apply(quota)
    kube.apply(small(namespace))
    message = wait_until_degraded(namespace, "ApplyFailed", timeout=REPORTED)["message"]
    assert "exceeded quota: none" in message
    kube.kubectl("delete", "quota/none", "-n", namespace)
    wait_until_ready(namespace)
