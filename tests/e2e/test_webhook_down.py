"""The deployed operator while the webhook does not run. The fault cases admission/down/* test every write."""

from collections.abc import Iterator

import pytest

from support import installed, kube
from support.kube import kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_ready

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture
def stopped(namespace: str) -> Iterator[None]:
    """Create an object, then stop admission until the test ends."""
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    with installed.without_webhook():
        yield
    kube.apply(memcached(namespace, "afterwards", resources=SMALL))
    wait_until_ready(namespace, "afterwards")


@pytest.mark.usefixtures("stopped")
def test_creating_and_changing_fail_closed_with_the_cause(namespace: str) -> None:
    error = kube.rejection(memcached(namespace, "new"))
    for part in ("failed calling webhook", "mmemcached.cache.example.com", "memcached-operator-webhook-service"):
        assert part in error
    assert kube.get("memcacheds", namespace, "new") is None
    assert "failed calling webhook" in kube.rejection(memcached(namespace, containerPort=12000))
    assert must_get("memcacheds", namespace, "cache")["spec"]["containerPort"] == 11211
    kubectl("scale", "memcached/cache", "-n", namespace, "--replicas=2")
    status = wait_until_ready(namespace)["status"]
    assert status["readyReplicas"] == 2
    assert status["nodes"] == kube.names(pods_of(namespace))
