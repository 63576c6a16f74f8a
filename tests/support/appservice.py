"""AppService objects in tests: make them, wait for them, talk to them."""

import urllib.request
from typing import Any
from urllib.error import URLError

from support import kube, memcached
from support.kube import Object

IMAGE = "docker.io/library/nginx:1.28"
OTHER_IMAGE = "docker.io/library/nginx:1.29"
"""Present in the local cluster as stand-ins whose pages name them (tools/cluster/images)."""

PLURAL = "appservices"
PAGES = {IMAGE: "Stand-in for nginx 1.28", OTHER_IMAGE: "Stand-in for nginx 1.29"}


def appservice(namespace: str, name: str = "app", **spec: Any) -> Object:
    """An AppService object; nothing is filled in but the image."""
    return {
        "apiVersion": "app.example.com/v1",
        "kind": "AppService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": IMAGE, **spec},
    }


def conditions(namespace: str, name: str = "app") -> dict[str, Object]:
    """The conditions of an AppService by type; empty while there is no status."""
    return memcached.conditions(namespace, name, PLURAL)


def settled(namespace: str, name: str = "app", timeout: float = 60) -> Object:
    """Wait until an AppService is available, done and well, in its current generation; return it."""
    return memcached.settled(namespace, name, timeout, PLURAL)


def degraded(namespace: str, reason: str, name: str = "app", timeout: float = 30) -> Object:
    """Wait until an AppService is Degraded for a reason; return the condition."""
    return memcached.degraded(namespace, reason, name, timeout, PLURAL)


def pods_of(namespace: str, name: str = "app") -> list[Object]:
    """The pods of an AppService that are not being deleted."""
    return memcached.pods_of(namespace, name)


def node_address() -> str:
    """The address of a node, as other nodes reach it."""
    nodes = kube.read("/api/v1/nodes")
    assert nodes is not None
    addresses = nodes["items"][0]["status"]["addresses"]
    return next(each["address"] for each in addresses if each["type"] == "InternalIP")


def page(port: int) -> str:
    """What a node answers on a port; empty while it does not."""
    try:
        with urllib.request.urlopen(f"http://{node_address()}:{port}/", timeout=5) as answer:
            return answer.read().decode()
    except (URLError, OSError):
        return ""


def node_ports(obj: Object) -> dict[int, int]:
    """Port of the Service → port on every node, as a status tells them."""
    return {entry["port"]: entry["nodePort"] for entry in obj["status"]["nodePorts"]}
