"""A HorizontalPodAutoscaler scales a Memcached by the CPU figures of a real metrics-server; the operator follows."""

import socket
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest

from support import kube
from support.audit import WRITES, Audit
from support.installed import CONTROLLER, NAMESPACE
from support.kube import Object, eventually, must_get
from support.memcached import memcached, pods_of, wait_until_ready
from support.metrics import metrics_server
from support.probing import Record, probing
from support.waiting import REQUEST, ROLLOUT

MINIMUM, LOADED, MAXIMUM = 2, 4, 5
"""Sizes: the autoscaler's minimum, the least that the load leads to, and the autoscaler's maximum."""
RESOURCES: Object = {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}
TARGET = 50
"""Target of the autoscaler in percent of the request: 10m. An idle pod uses 1m, the load about 180m in all."""
GET = b"get" + 5000 * b" k" + b"\r\n"
"""A command that costs memcached 2 ms and this process little."""
PAUSE = 0.02
"""Seconds between two commands to the same pod: the load uses about a fifth of a CPU."""
AUTOSCALER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:memcached-operator-{CONTROLLER}"
SIZED = ("memcacheds", "deployments", "horizontalpodautoscalers")
"""Objects with a size, or limits of it."""

pytestmark = pytest.mark.usefixtures("cluster")


class Write(NamedTuple):
    """A write request: the time at which the API server received it, the user, and the verb and resource."""

    received: str
    user: str
    what: str


@pytest.fixture
def metrics(cluster: dict[str, Any]) -> Iterator[None]:
    """metrics-server, for one test: the end of another test, in another process, would stop it."""
    if cluster["mode"] != "node":
        pytest.skip("needs containers, whose CPU time is measured")
    with metrics_server():
        yield


def autoscaler(namespace: str) -> Object:
    """An autoscaler of the Memcached `cache` that scales down without delay."""
    target = {"type": "Utilization", "averageUtilization": TARGET}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "cache", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "cache.example.com/v1", "kind": "Memcached", "name": "cache"},
            "minReplicas": MINIMUM,
            "maxReplicas": MAXIMUM,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


@contextmanager
def load(pods: Iterable[Object]) -> Generator[None]:
    """Let memcached in these pods work until the block ends; every command must succeed."""
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((pod["status"]["podIP"], 11211), REQUEST)) for pod in pods
        ]
        for connection in connections:
            connection.sendall(b"set k 0 0 1\r\nx\r\n")
            assert connection.recv(64) == b"STORED\r\n"
        results = stack.enter_context(probing(lambda: " ".join(filter(None, map(get, connections))), PAUSE))
        yield
    assert results.successes
    assert results.failures == []


def get(connection: socket.socket) -> str:
    """Send one command and read the response; returns an error, or an empty string."""
    try:
        connection.sendall(GET)
        response = b""
        while not response.endswith(b"END\r\n"):
            response += (received := connection.recv(65536))
            if not received:
                return "the connection was closed"
    except OSError as error:
        return str(error)
    return ""


def wait_for_size(namespace: str, low: int, high: int) -> int:
    """Wait until the autoscaler has set a size within these limits, and as many pods are ready; return the size."""

    def scaled() -> int:
        size: int = must_get("memcacheds", namespace, "cache")["spec"]["size"]
        status = must_get("horizontalpodautoscalers", namespace, "cache").get("status")
        assert low <= size <= high, f"size {size}; the autoscaler's status: {status}"
        ready = sum(map(kube.ready, pods_of(namespace)))
        assert ready == size, f"{ready} of {size} pods are ready"
        return size

    return eventually(scaled, ROLLOUT, f"the autoscaler scales to {low} to {high}")


def seconds(since: Audit) -> str:
    """The time since the start of the audit."""
    return f"{time.monotonic() - since.started:.0f} s"


def writes(audit: Audit, namespace: str) -> list[Write]:
    """The writes of objects with a size and all writes of the operator, in order, without statuses and Events."""
    found: list[Write] = []
    for request in audit.requests(namespace.encode()):
        target, user = request.get("objectRef", {}), request["user"]["username"]
        resource, part = target.get("resource"), target.get("subresource", "")
        relevant = resource != "events" if user == OPERATOR else resource in SIZED
        if request["verb"] in WRITES and target.get("namespace") == namespace and relevant and part != "status":
            what = f"{request['verb']} {resource}{'/' if part else ''}{part}"
            found.append(Write(request["requestReceivedTimestamp"], user, what))
    return sorted(found)


@pytest.mark.nightly
@pytest.mark.long(90)
@pytest.mark.usefixtures("metrics")
def test_autoscaler_scales_with_the_load_and_the_operator_writes_nothing_against_it(
    namespace: str, audit: Audit, record_property: Record
) -> None:
    kube.apply(memcached(namespace, size=MINIMUM, resources=RESOURCES))
    wait_until_ready(namespace)
    audit.wait_until_quiet(namespace=namespace)
    since = Audit(audit.path)
    with (
        kube.watched("memcacheds", namespace, "cache", ".spec.size") as sizes,
        kube.watched("deployments", namespace, "cache", ".spec.replicas") as replicas,
    ):
        kube.apply(autoscaler(namespace))
        with load(pods_of(namespace)):
            size = wait_for_size(namespace, LOADED, MAXIMUM)
        record_property(f"from {MINIMUM} to {size} pods", seconds(since))
        wait_for_size(namespace, MINIMUM, MINIMUM)
        record_property(f"and back to {MINIMUM} pods", seconds(since))
        wait_until_ready(namespace)
        since.wait_until_quiet(namespace=namespace)
        changed = sizes()
        assert replicas() == changed
    assert (changed[0], changed[-1]) == (str(MINIMUM), str(MINIMUM))
    assert max(map(int, changed)) >= LOADED
    own, *found = [(write.user, write.what) for write in writes(since, namespace)]
    assert own[1] == "create horizontalpodautoscalers"
    # Each write of the operator follows one of the autoscaler. A write by anyone else would be an additional element.
    pair = [(AUTOSCALER, "update memcacheds/scale"), (OPERATOR, "patch deployments")]
    assert found == pair * (len(changed) - 1)
