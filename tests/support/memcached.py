"""Helpers for Memcached objects: create them, wait for their status, send commands to their pods."""

import socket
from contextlib import suppress
from typing import Any

from support import kube, waiting
from support.kube import Object, eventually

IMAGE = "docker.io/library/memcached:1.6.45"
OTHER_IMAGE = "docker.io/library/memcached:1.6.38"
"""The local cluster has stand-ins for these images (tools/cluster/images)."""


def memcached(namespace: str, name: str = "cache", version: str = "v1", **spec: Any) -> Object:
    """A Memcached object without defaults."""
    return {
        "apiVersion": f"cache.example.com/{version}",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def conditions(namespace: str, name: str = "cache", plural: str = "memcacheds") -> dict[str, Object]:
    """The conditions of an object by type; empty if it has no status."""
    obj = kube.must_get(plural, namespace, name)
    return {condition["type"]: condition for condition in obj.get("status", {}).get("conditions", [])}


def states(namespace: str, name: str = "cache", plural: str = "memcacheds") -> dict[str, str]:
    """Type → status of the conditions that are current (observedGeneration is the generation)."""
    obj = kube.must_get(plural, namespace, name)
    current = obj["metadata"]["generation"]
    found = obj.get("status", {}).get("conditions", [])
    return {condition["type"]: condition["status"] for condition in found if condition["observedGeneration"] == current}


READY = {"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True"}


def wait_until_ready(
    namespace: str, name: str = "cache", timeout: float = waiting.READY, plural: str = "memcacheds"
) -> Object:
    """Wait until an object is available, not progressing and not degraded in its current generation; return it."""

    def is_ready() -> bool:
        found = states(namespace, name, plural)
        assert found == READY, conditions(namespace, name, plural)
        return True

    eventually(is_ready, timeout, f"{plural} {namespace}/{name} is ready")
    return kube.must_get(plural, namespace, name)


def wait_until_degraded(
    namespace: str, reason: str, name: str = "cache", timeout: float = waiting.READY, plural: str = "memcacheds"
) -> Object:
    """Wait until an object is Degraded with this reason; return the condition."""

    def is_degraded() -> Object | None:
        found = conditions(namespace, name, plural)
        condition = found.get("Degraded", {})
        assert (condition.get("status"), condition.get("reason")) == ("True", reason), found
        return condition

    found = eventually(is_degraded, timeout, f"{plural} {namespace}/{name} is Degraded with reason {reason}")
    assert found is not None
    return found


def pods_of(namespace: str, name: str = "cache") -> list[Object]:
    """The pods of an object that are not being deleted."""
    selector = f"app.kubernetes.io/instance={name},app.kubernetes.io/managed-by=memcached-operator"
    pods = kube.items("pods", namespace, selector)
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def by_slot(namespace: str, name: str = "cache") -> list[Object]:
    """The pods of an object in the order of their names, which is that of the slots."""
    return sorted(pods_of(namespace, name), key=lambda pod: pod["metadata"]["name"])


def children(namespace: str) -> dict[str, Any]:
    """The operator's Deployments and Services with their generations and its pods with their restarts, all by uid."""
    selector = "app.kubernetes.io/managed-by=memcached-operator"
    found = {plural: kube.items(plural, namespace, selector) for plural in ("deployments", "services", "pods")}
    pods = kube.restart_counts(found.pop("pods"))
    created = {
        each["metadata"]["uid"]: each["metadata"].get("generation") for items in found.values() for each in items
    }
    return {"created": created, "pods": pods}


def send_commands(address: str, port: int, *lines: bytes, timeout: float = waiting.REQUEST) -> bytes:
    """Send lines of memcached's text protocol, then `quit`; return the whole response."""
    with socket.create_connection((address, port), timeout=timeout) as connection:
        connection.sendall(b"\r\n".join([*lines, b"quit", b""]))
        response = b""
        while chunk := connection.recv(65536):
            response += chunk
        return response


SMALL = {"requests": {"cpu": "10m", "memory": "16Mi"}}
"""Small requests, so that many pods fit on one node; for tests that are not about resources."""


def addresses(pods: list[Object]) -> set[str]:
    """The IP addresses of pods."""
    return {pod["status"]["podIP"] for pod in pods}


def ready_addresses(namespace: str, name: str = "cache") -> set[str]:
    """The IP addresses of the ready endpoints behind a Service."""
    slices = kube.items("endpointslices", namespace, f"kubernetes.io/service-name={name}")
    endpoints: list[Object] = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    return {address for endpoint in endpoints if endpoint["conditions"]["ready"] for address in endpoint["addresses"]}


def exhaust_memory(pod: Object, mebibytes: int) -> None:
    """Let memcached allocate so much memory for one request that the kernel kills it.

    For every hit of a `get`, memcached holds a response of more than 1 KiB until all are sent. By default, their number
    is not limited.
    """
    with socket.create_connection((pod["status"]["podIP"], 11211), waiting.REQUEST) as connection:
        connection.sendall(b"set k 0 0 1\r\nx\r\n")
        assert connection.recv(64) == b"STORED\r\n"
        with suppress(ConnectionError):
            connection.sendall(b"get" + b" k" * (mebibytes * 1024) + b"\r\n")
            while connection.recv(65536):
                pass
