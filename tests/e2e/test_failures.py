"""What goes wrong with pods is told by the status, with its cause, within 15 s; mending the spec clears it."""

from typing import Any

import pytest

from support import kube
from support.images import load_program
from support.kube import Object
from support.memcached import (
    IMAGE,
    SMALL,
    conditions,
    degraded,
    memcached,
    pods_of,
    ready_addresses,
    run_out_of_memory,
    settled,
)

TOLD = 15
"""Seconds from a failure to a status that tells of it."""

PAUSE = "localhost/memcached-operator/pause:1"
"""In every local cluster; there is no memcached in it."""

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="session")
def crashing_image(cluster: Object) -> str:
    """An image whose memcached ends with exit code 71."""
    if cluster["mode"] != "node":
        pytest.skip("needs a node that runs pods")
    return load_program("crashing", "exit 71")


def small(namespace: str, **spec: Any) -> Object:
    """A Memcached of small pods."""
    given: Object = {"resources": SMALL, **spec}
    return memcached(namespace, **given)


def assert_mended(namespace: str, **spec: Any) -> None:
    """With this spec the object settles, and nothing of the failure is left in its status."""
    kube.apply(small(namespace, **spec))
    condition = settled(namespace)["status"]["conditions"][2]
    assert (condition["reason"], condition["message"]) == ("AsExpected", "All components are healthy")


def test_an_image_that_cannot_be_pulled_is_named(namespace: str) -> None:
    kube.apply(small(namespace, image="localhost:1/no-such:image"))
    message = degraded(namespace, "ImageUnavailable", timeout=TOLD)["message"]
    for part in ("localhost:1/no-such:image", "connection refused", "spec.image", kube.names(pods_of(namespace))[0]):
        assert part in message
    available = conditions(namespace)["Available"]
    assert (available["status"], available["reason"]) == ("False", "MinimumReplicasUnavailable")
    assert_mended(namespace, image=IMAGE)


def test_an_image_that_may_not_be_pulled_is_named(namespace: str) -> None:
    kube.apply(small(namespace, image="localhost:1/no-such:image", imagePullPolicy="Never"))
    message = degraded(namespace, "ImageUnavailable", timeout=TOLD)["message"]
    assert "localhost:1/no-such:image" in message
    assert_mended(namespace, image=IMAGE, imagePullPolicy="Never")


def test_a_bad_image_leaves_the_old_pods_serving(namespace: str) -> None:
    kube.apply(small(namespace, size=2))
    settled(namespace)
    serving = ready_addresses(namespace)
    kube.apply(small(namespace, size=2, image="localhost:1/no-such:image"))
    degraded(namespace, "ImageUnavailable", timeout=TOLD)
    assert conditions(namespace)["Available"]["status"] == "True"
    assert ready_addresses(namespace) == serving
    assert_mended(namespace, size=2, image=IMAGE)


def test_an_image_without_memcached_is_told(namespace: str) -> None:
    kube.apply(small(namespace, image=PAUSE))
    message = degraded(namespace, "PodsCrashing", timeout=TOLD)["message"]
    for part in ("cannot be started", '"memcached": executable file not found', kube.names(pods_of(namespace))[0]):
        assert part in message
    assert conditions(namespace)["Available"]["status"] == "False"
    assert_mended(namespace, image=IMAGE)


def test_a_crash_is_told_with_exit_code_and_reason(namespace: str, crashing_image: str) -> None:
    kube.apply(small(namespace, image=crashing_image))
    message = degraded(namespace, "PodsCrashing", timeout=TOLD)["message"]
    for part in ("exit code 71", "(Error)", "kubectl logs --previous", kube.names(pods_of(namespace))[0]):
        assert part in message
    assert conditions(namespace)["Available"]["status"] == "False"
    assert_mended(namespace, image=IMAGE)


def test_a_crash_loop_does_not_flap(namespace: str, crashing_image: str) -> None:
    kube.apply(small(namespace, image=crashing_image))
    since = degraded(namespace, "PodsCrashing", timeout=TOLD)["lastTransitionTime"]

    def restarts() -> int:
        return sum(
            status["restartCount"] for pod in pods_of(namespace) for status in pod["status"]["containerStatuses"]
        )

    kube.eventually(lambda: restarts() >= 2, 60, "the container was restarted twice")
    assert degraded(namespace, "PodsCrashing", timeout=0)["lastTransitionTime"] == since


def test_a_pod_killed_for_its_memory_is_told(namespace: str) -> None:
    least = {**SMALL, "limits": {"memory": "95Mi"}}
    kube.apply(small(namespace, resources=least))
    settled(namespace)
    run_out_of_memory(pods_of(namespace)[0], mebibytes=300)
    message = degraded(namespace, "PodsCrashing", timeout=TOLD)["message"]
    for part in ("exit code 137", "OOMKilled", "spec.resources.limits.memory", kube.names(pods_of(namespace))[0]):
        assert part in message
    assert_mended(namespace, resources={**SMALL, "limits": {"memory": "512Mi"}})


def test_pods_that_no_node_can_hold_are_told(namespace: str) -> None:
    kube.apply(small(namespace, resources={"requests": {"cpu": "5000"}}))

    def told() -> bool:
        available = conditions(namespace).get("Available", {})
        assert available.get("status") == "False", available
        return "cannot be scheduled" in available["message"] and "cpu" in available["message"].lower()

    kube.eventually(told, TOLD, "Available says that the pod cannot be scheduled")
    assert_mended(namespace)


def test_pods_that_a_quota_refuses_are_told(namespace: str) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": namespace},
        "spec": {"hard": {"pods": "0"}},
    }
    kube.apply(quota)
    kube.apply(small(namespace))
    message = degraded(namespace, "ApplyFailed", timeout=TOLD)["message"]
    assert "exceeded quota: none" in message
    kube.kubectl("delete", "quota/none", "-n", namespace)
    settled(namespace)
