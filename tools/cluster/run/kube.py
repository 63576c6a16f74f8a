"""A minimal client of the API server, for `up`."""

import base64
import json
import socket
import ssl
import struct
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from cluster.errors import ClusterError

SECONDS = 5.0
POLL_SECONDS = 0.1


class Kube:
    """A client for a kubeconfig that this package wrote."""

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        self.server: str = content["clusters"][0]["cluster"]["server"]
        self.token: str = content["users"][0]["user"]["token"]
        authority: str = content["clusters"][0]["cluster"]["certificate-authority-data"]
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        # The API server's self-signed certificates lack a key identifier that newer Pythons insist on.
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The response, or None for any failure: `up` retries."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)  # noqa: S310
        try:
            with self.opener.open(request, timeout=SECONDS) as response:
                return json.loads(response.read())
        except (OSError, urllib.error.URLError, ValueError):
            return None


def node_ready(kube: Kube, name: str) -> bool:
    """Tell whether the node's condition Ready is True."""
    node = kube.request("GET", f"/api/v1/nodes/{name}") or {}
    conditions: list[dict[str, str]] = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def can_create_pods(kube: Kube) -> bool:
    """Tell whether the default ServiceAccount exists; pods are rejected until the controller manager creates it."""
    path = "/api/v1/namespaces/default/"
    return all(kube.request("GET", path + each) for each in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"))


def dns_query(name: str) -> bytes:
    """A DNS question for the IPv4 address of a name."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 0x4D43, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def dns_answers(server: str, name: str = "kubernetes.default.svc.cluster.local") -> bool:
    """Tell whether cluster DNS resolves a name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        try:
            client.sendto(dns_query(name), (server, 53))
            answer = client.recv(512)
        except OSError:
            return False
    flags, _, answers = struct.unpack(">3H", answer[2:8])
    return flags & 0xF == 0 and answers > 0


def wait(what: str, check: Callable[[], bool], seconds: float) -> None:
    """Poll until the check succeeds; raises ClusterError after `seconds`."""
    deadline = monotonic() + seconds
    while not check():
        if monotonic() > deadline:
            raise ClusterError(f"{what}: not true after {seconds:.0f} s; see `python3 -m cluster status` and `logs`")
        sleep(POLL_SECONDS)
