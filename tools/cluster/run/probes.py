"""Readiness probes of components, sent from the cluster's network namespace."""

import socket
import ssl
import urllib.error
import urllib.request
from typing import Literal, TypedDict

SECONDS = 1.0
"""Timeout of a probe; a component that takes longer is not ready."""


class Probe(TypedDict):
    """A TCP address, a socket file, or a URL that must return 200."""

    kind: Literal["tcp", "unix", "http"]
    target: str


def ready(probe: Probe) -> bool:
    """Send one probe; returns whether it succeeded."""
    try:
        return PROBES[probe["kind"]](probe["target"])
    except (OSError, urllib.error.URLError):
        return False


def connects(target: str) -> bool:
    """Connect to HOST:PORT."""
    host, port = target.rsplit(":", 1)
    with socket.create_connection((host, int(port)), SECONDS):
        return True


def listens(target: str) -> bool:
    """Connect to a socket file."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS)
        client.connect(target)
        return True


def answers(target: str) -> bool:
    """GET a URL of this cluster; certificates are self-signed and not verified."""
    context = ssl._create_unverified_context()  # noqa: S323 # pyright: ignore[reportPrivateUsage]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(target, timeout=SECONDS) as response:
        return response.status == 200


PROBES = {"tcp": connects, "unix": listens, "http": answers}
