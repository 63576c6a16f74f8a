"""Memcached objects in tests: make them, wait for them, talk to them."""

import socket
from contextlib import suppress
from typing import Any

from support import kube
from support.kube import Object, eventually

IMAGE = "docker.io/library/memcached:1.6.38"
OTHER_IMAGE = "docker.io/library/memcached:1.6.39"
"""Present in the local cluster as stand-ins (tools/cluster/images)."""


def memcached(namespace: str, name: str = "cache", version: str = "v1", **spec: Any) -> Object:
    """A Memcached object; nothing is filled in."""
    return {
        "apiVersion": f"cache.example.com/{version}",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def conditions(namespace: str, name: str = "cache", plural: str = "memcacheds") -> dict[str, Object]:
    """The conditions of an object by type; empty while there is no status."""
    obj = kube.must_get(plural, namespace, name)
    return {condition["type"]: condition for condition in obj.get("status", {}).get("conditions", [])}


def states(namespace: str, name: str = "cache", plural: str = "memcacheds") -> dict[str, str]:
    """Type → status of all conditions that tell of the current generation."""
    obj = kube.must_get(plural, namespace, name)
    current = obj["metadata"]["generation"]
    found = obj.get("status", {}).get("conditions", [])
    return {condition["type"]: condition["status"] for condition in found if condition["observedGeneration"] == current}


SETTLED = {"Available": "True", "Progressing": "False", "Degraded": "False"}


def settled(namespace: str, name: str = "cache", timeout: float = 60, plural: str = "memcacheds") -> Object:
    """Wait until an object is available, done and well, in its current generation; return it."""

    def look() -> bool:
        found = states(namespace, name, plural)
        assert found == SETTLED, conditions(namespace, name, plural)
        return True

    eventually(look, timeout, f"{plural} {namespace}/{name} settles")
    return kube.must_get(plural, namespace, name)


def degraded(
    namespace: str, reason: str, name: str = "cache", timeout: float = 30, plural: str = "memcacheds"
) -> Object:
    """Wait until an object is Degraded for a reason; return the condition."""

    def look() -> Object | None:
        found = conditions(namespace, name, plural)
        condition = found.get("Degraded", {})
        assert (condition.get("status"), condition.get("reason")) == ("True", reason), found
        return condition

    found = eventually(look, timeout, f"{plural} {namespace}/{name} is Degraded {reason}")
    assert found is not None
    return found


def pods_of(namespace: str, name: str = "cache") -> list[Object]:
    """The pods of an object that are not being deleted."""
    selector = f"app.kubernetes.io/instance={name},app.kubernetes.io/managed-by=memcached-operator"
    pods = kube.items("pods", namespace, selector)
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def children(namespace: str) -> dict[str, Any]:
    """All that the operator has made in a namespace by uid: with generations, pods with their restarts."""
    selector = "app.kubernetes.io/managed-by=memcached-operator"
    found = {plural: kube.items(plural, namespace, selector) for plural in ("deployments", "services", "pods")}
    pods = kube.identities(found.pop("pods"))
    made = {each["metadata"]["uid"]: each["metadata"].get("generation") for items in found.values() for each in items}
    return {"made": made, "pods": pods}


def talk(address: str, port: int, *lines: bytes, timeout: float = 5) -> bytes:
    """Send lines of memcached's text protocol, then `quit`; the whole answer."""
    with socket.create_connection((address, port), timeout=timeout) as connection:
        connection.sendall(b"\r\n".join([*lines, b"quit", b""]))
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


SMALL = {"requests": {"cpu": "10m", "memory": "16Mi"}}
"""Resources with which many pods fit on a small node, for tests that are not about resources."""


def addresses(pods: list[Object]) -> set[str]:
    """The IP addresses of pods."""
    return {pod["status"]["podIP"] for pod in pods}


def ready_addresses(namespace: str, name: str = "cache") -> set[str]:
    """The IP addresses of the ready endpoints behind a Service."""
    slices = kube.items("endpointslices", namespace, f"kubernetes.io/service-name={name}")
    endpoints: list[Object] = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    return {address for endpoint in endpoints if endpoint["conditions"]["ready"] for address in endpoint["addresses"]}


def run_out_of_memory(pod: Object, mebibytes: int, port: int = 11211) -> None:
    """Have memcached need so much memory at once that it is killed, by one request of one client.

    For every key of a `get` that is a hit memcached holds a response of over 1 KiB until all of them are sent; nothing
    bounds their number by default.
    """
    with socket.create_connection((pod["status"]["podIP"], port), timeout=30) as connection:
        connection.sendall(b"set k 0 0 1\r\nx\r\n")
        assert connection.recv(64) == b"STORED\r\n"
        with suppress(ConnectionError):
            connection.sendall(b"get" + b" k" * (mebibytes * 1024) + b"\r\n")
            while connection.recv(65536):
                pass
