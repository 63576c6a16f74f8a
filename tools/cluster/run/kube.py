"""A minimal client of the API server, for `up`."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from cluster.errors import ClusterError
from cluster.plan import Plan

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


def simulated_node(plan: Plan) -> dict[str, Any]:
    """The node of control-plane mode, with resources for more than a thousand pods; kwok keeps it Ready."""
    resources = {"cpu": "64", "memory": "256Gi", "pods": "2000", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": plan.node_name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": plan.node_name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"allocatable": resources, "capacity": resources},
    }


def ensure_node(kube: Kube, plan: Plan) -> bool:
    """Create the simulated node if it does not exist; returns whether it exists."""
    if kube.request("GET", f"/api/v1/nodes/{plan.node_name}"):
        return True
    return kube.request("POST", "/api/v1/nodes", simulated_node(plan)) is not None


def wait(what: str, check: Callable[[], bool], seconds: float) -> None:
    """Poll until the check succeeds; raises ClusterError after `seconds`."""
    deadline = monotonic() + seconds
    while not check():
        if monotonic() > deadline:
            raise ClusterError(f"{what}: not true after {seconds:.0f} s; see `python3 -m cluster status` and `logs`")
        sleep(POLL_SECONDS)
