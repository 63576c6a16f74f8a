"""The deployed admission policies deny requests to the controller's account although RBAC allows them."""

import json
import uuid

import pytest

from support import installed, kube
from support.kube import Object, kubectl
from support.permissions import denied, token_of

ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
FOREIGN = "kube-system"

pytestmark = pytest.mark.usefixtures("cluster")


def test_stolen_token_cannot_change_what_is_not_its_own() -> None:
    """One request for each policy; tests/integration has the others."""
    token, name = token_of(ACCOUNT, installed.NAMESPACE), f"foreign-{uuid.uuid4().hex[:8]}"
    kubectl("create", "deployment", name, "-n", FOREIGN, "--image=localhost/foreign:1", "--replicas=0")
    try:
        patch = json.dumps({"metadata": {"labels": {"app.kubernetes.io/managed-by": "memcached-operator"}}})
        assert denied(token, "patch", "deployment", name, "-n", FOREIGN, "--type=merge", "-p", patch)
        assert denied(token, "delete", "deployment", name, "-n", FOREIGN)
        assert kube.get("deployments", FOREIGN, name)
    finally:
        kubectl("delete", "deployment", name, "-n", FOREIGN)
    for kind, configuration in installed.CONFIGURATIONS.items():
        redirect = [{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "evil"}]
        assert denied(token, "patch", kind, configuration, "--type=json", "-p", json.dumps(redirect))
    pod = installed.pods(installed.WEBHOOK)[0]["metadata"]["name"]
    assert denied(token, "delete", "pod", pod, "-n", installed.NAMESPACE, "--dry-run=server")
    meta = {"name": "token", "annotations": {"kubernetes.io/service-account.name": ACCOUNT}}
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}
    assert denied(token, "create", "-n", installed.NAMESPACE, "-f", "-", stdin={**secret, "metadata": meta})
