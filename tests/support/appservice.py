"""Helpers for AppService objects: create them, wait for their status, request their pages."""

import urllib.request
from typing import Any
from urllib.error import URLError

from support import kube, memcached, waiting
from support.kube import Object

IMAGE = "docker.io/library/nginx:1.28"
OTHER_IMAGE = "docker.io/library/nginx:1.29"
"""The local cluster has stand-ins for these images; each serves a page with its name (tools/cluster/images)."""

PLURAL = "appservices"
PAGES = {IMAGE: "Stand-in for nginx 1.28", OTHER_IMAGE: "Stand-in for nginx 1.29"}


def appservice(namespace: str, name: str = "app", **spec: Any) -> Object:
    """An AppService object; only the image has a default here."""
    return {
        "apiVersion": "app.example.com/v1",
        "kind": "AppService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": IMAGE, **spec},
    }


def conditions(namespace: str, name: str = "app") -> dict[str, Object]:
    """The conditions of an AppService by type; empty if it has no status."""
    return memcached.conditions(namespace, name, PLURAL)


def wait_until_ready(namespace: str, name: str = "app", timeout: float = waiting.READY) -> Object:
    """Wait until an AppService is available, not progressing and not degraded in its current generation; return it."""
    return memcached.wait_until_ready(namespace, name, timeout, PLURAL)


def wait_until_degraded(namespace: str, reason: str, name: str = "app", timeout: float = waiting.READY) -> Object:
    """Wait until an AppService is Degraded with this reason; return the condition."""
    return memcached.wait_until_degraded(namespace, reason, name, timeout, PLURAL)


def pods_of(namespace: str, name: str = "app") -> list[Object]:
    """The pods of an AppService that are not being deleted."""
    return memcached.pods_of(namespace, name)


def node_address() -> str:
    """The internal IP address of a node."""
    nodes = kube.read("/api/v1/nodes")
    assert nodes is not None
    addresses = nodes["items"][0]["status"]["addresses"]
    return next(each["address"] for each in addresses if each["type"] == "InternalIP")


def page(port: int) -> str:
    """The page that a node serves on a port; empty if the request fails."""
    try:
        with urllib.request.urlopen(f"http://{node_address()}:{port}/", timeout=waiting.REQUEST) as response:
            return response.read().decode()
    except (URLError, OSError):
        return ""


def node_ports(obj: Object) -> dict[int, int]:
    """The node port of each port of the Service, from the status."""
    return {entry["port"]: entry["nodePort"] for entry in obj["status"]["nodePorts"]}
