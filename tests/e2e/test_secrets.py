"""The status names a Secret, or a key of it, for which pods wait: it learns that from the Events of the kubelet."""

import json

import pytest

from support import kube, mounting
from support.kube import Object, eventually
from support.memcached import SMALL, memcached, wait_until_degraded, wait_until_ready
from support.mounting import SECRET
from support.secrets import MISSING_REPORTED, MOUNTED

ITEMS: Object = {"items": [{"key": "tls.crt", "path": "tls.crt"}]}
VOLUMES: dict[str, Object] = {
    "projected": {"name": "tls", "projected": {"sources": [{"secret": {"name": SECRET, **ITEMS}}]}},
    "secret": {"name": "tls", "secret": {"secretName": SECRET}},
    "secret with items": {"name": "tls", "secret": {"secretName": SECRET, **ITEMS}},
}

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def node(cluster: Object) -> None:
    """A node that mounts volumes."""
    if cluster["mode"] != "node":
        pytest.skip("needs a node that runs pods")


def start(namespace: str, volume: Object) -> None:
    """Create a Memcached, and let its pods mount a Secret."""
    kube.apply(memcached(namespace, size=1, resources=SMALL))
    eventually(lambda: kube.get("deployments", namespace, "cache"), 30, "the Deployment exists")
    # The kubelet sets up only volumes that a container mounts.
    containers = [{"name": "memcached", "volumeMounts": [{"name": volume["name"], "mountPath": "/tls"}]}]
    patch = json.dumps({"spec": {"template": {"spec": {"volumes": [volume], "containers": containers}}}})
    kube.kubectl("patch", "deployment", "cache", "-n", namespace, "-p", patch)


@pytest.mark.parametrize("volume", VOLUMES.values(), ids=VOLUMES)
def test_missing_secret_and_missing_key_are_reported_until_they_exist(namespace: str, volume: Object) -> None:
    start(namespace, volume)
    message = wait_until_degraded(namespace, "SecretUnavailable", timeout=MISSING_REPORTED)["message"]
    assert message.startswith("Pod cache-")
    assert message.endswith(f": {mounting.MESSAGE}")
    kube.kubectl("create", "secret", "generic", SECRET, "-n", namespace, "--from-literal=other=x")
    if volume != VOLUMES["secret"]:
        key = "references non-existent secret key: tls.crt; add the key tls.crt to the Secret sessions-tls"

        def names_the_key() -> bool:
            found = wait_until_degraded(namespace, "SecretUnavailable", timeout=0)["message"]
            assert found.endswith(f": volume tls cannot be mounted: {key}"), found
            return True

        eventually(names_the_key, MOUNTED + 60, "the missing key is reported")
        kube.kubectl("patch", "secret", SECRET, "-n", namespace, "-p", json.dumps({"stringData": {"tls.crt": "x"}}))
    wait_until_ready(namespace, timeout=MOUNTED)
