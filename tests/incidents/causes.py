"""Makes each incident of docs/alerts.md happen to the cache `sessions` of a namespace."""

import itertools
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from support import installed, kube
from support.clients import in_threads
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, by_slot, exhaust_memory, memcached, send_commands, wait_until_ready
from support.pki import CA
from support.secrets import names_of, tls_secret
from support.waiting import READY, REQUEST

CACHE: Final = "sessions"
PORT: Final = 11211
KEY: Final = "user:7"
PERIOD: Final = 0.2
"""Seconds between two batches of items."""
BATCH: Final = 20
"""Items of 100 KB: the memory is full after some seconds."""
MONITORED: Final[dict[str, Any]] = {"identity": "Stable", "monitoring": {}, "resources": SMALL}
YESTERDAY: Final = datetime.now(UTC) - timedelta(days=1)


class Cause(NamedTuple):
    """What makes an incident happen during a block, and what the two commands of the page show then."""

    during: Callable[[str], AbstractContextManager[None]]
    first: str
    second: str


def create(namespace: str, **spec: Any) -> None:
    """Create the cache, with one pod and metrics unless `spec` says otherwise."""
    given: Object = {"size": 1, **MONITORED, **spec}
    kube.apply(memcached(namespace, CACHE, **given))


def pods(namespace: str) -> list[Object]:
    """The pods of the cache in the order of their names."""
    return by_slot(namespace, CACHE)


@contextmanager
def image_missing(namespace: str) -> Generator[None]:
    """No registry has the image."""
    create(namespace, image="localhost:1/no-such:image")
    yield


@contextmanager
def out_of_memory(namespace: str) -> Generator[None]:
    """One client reads more at once than the memory limit allows."""
    create(namespace)
    wait_until_ready(namespace, CACHE)
    exhaust_memory(pods(namespace)[0], mebibytes=300)
    yield


@contextmanager
def evictions(namespace: str) -> Generator[None]:
    """Clients store more than fits into the memory, during the whole block."""
    create(namespace, cache={"memory": "16Mi"})
    wait_until_ready(namespace, CACHE)
    address = pods(namespace)[0]["status"]["podIP"]
    value = b"x" * 100_000

    def store(stop: threading.Event) -> None:
        for batch in itertools.count():
            if stop.wait(PERIOD):
                break
            keys = [f"key:{batch}:{n}" for n in range(BATCH)]
            send_commands(address, PORT, *(line for key in keys for line in (f"set {key} 0 0 100000".encode(), value)))

    with in_threads(store):
        yield


@contextmanager
def connection_limit(namespace: str) -> Generator[None]:
    """Clients open all connections, and more."""
    create(namespace, cache={"maxConnections": 40, "threads": 1})
    wait_until_ready(namespace, CACHE)
    address = pods(namespace)[0]["status"]["podIP"]
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection((address, PORT), REQUEST))
        yield


@contextmanager
def secret_missing(namespace: str) -> Generator[None]:
    """The Secret with the certificate does not exist."""
    create(namespace, tls={"secretName": "sessions-tls"})
    yield


@contextmanager
def certificate_expired(namespace: str) -> Generator[None]:
    """The certificate expired yesterday."""
    ca = CA()
    old = ca.issue(names_of(namespace, CACHE), not_before=YESTERDAY - timedelta(days=90), not_after=YESTERDAY)
    kube.apply(tls_secret(namespace, "sessions-tls", old, ca))
    create(namespace, tls={"secretName": "sessions-tls"})
    eventually(lambda: [pod for pod in pods(namespace) if pod["status"].get("podIP")], READY, "the pod runs")
    yield


@contextmanager
def node_full(namespace: str) -> Generator[None]:
    """No node has as much CPU as the pod requests."""
    create(namespace, resources={"requests": {"cpu": "5000"}})
    yield


@contextmanager
def two_scalers(namespace: str) -> Generator[None]:
    """A HorizontalPodAutoscaler scales the Deployment of the cache instead of the Memcached."""
    create(namespace, identity="Pooled", size=2)
    wait_until_ready(namespace, CACHE)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": CACHE}
    scaler = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 1, "metrics": [CPU]}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    kube.apply({**kind, "metadata": {"name": CACHE, "namespace": namespace}, "spec": scaler})
    yield


CPU: Final[Object] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


@contextmanager
def webhook_down(namespace: str) -> Generator[None]:
    """No pod of the webhook runs."""
    create(namespace)
    wait_until_ready(namespace, CACHE)
    with installed.without_webhook():
        yield


@contextmanager
def old_list(namespace: str) -> Generator[None]:
    """Two clients store the same key in different slots: one still has the list from before a scaling."""
    create(namespace, size=2)
    wait_until_ready(namespace, CACHE)
    kubectl("patch", "memcached", CACHE, "-n", namespace, "--type=merge", '--patch={"spec": {"size": 3}}')
    wait_until_ready(namespace, CACHE)
    for pod in (pods(namespace)[0], pods(namespace)[2]):
        send_commands(pod["status"]["podIP"], PORT, f"set {KEY} 0 0 1".encode(), b"x")
    yield


CAUSES: Final = {
    "An image cannot be pulled": Cause(image_missing, "ImageUnavailable", "localhost:1/no-such:image"),
    "memcached runs out of memory": Cause(out_of_memory, "was out of memory and restarted", "OOMKilled"),
    "The memory is full": Cause(evictions, "were evicted before they expired", "EVICTED"),
    "The connection limit is reached": Cause(connection_limit, "connection limit", "40"),
    "A Secret is missing": Cause(secret_missing, "SecretUnavailable", 'secret "sessions-tls" not found'),
    "A certificate has expired": Cause(
        certificate_expired, "the certificate has expired", "certificate has expired; issue it"
    ),
    "No node has room": Cause(node_full, "cannot be scheduled", "Insufficient cpu"),
    "Another client scales the pods": Cause(two_scalers, "Conflict", f"Deployment/{CACHE}"),
    "The webhook does not run": Cause(webhook_down, "0/0", "Scaled down"),
    "A client has an old list of servers": Cause(old_list, "sessions-2", "sessions-2.sessions"),
}
"""By the name of the incident in docs/alerts.md."""
