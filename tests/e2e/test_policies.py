"""Requests that the admission policies deny to the controller's account although RBAC allows them."""

import json
import uuid
from collections.abc import Iterator

import pytest

from support import installed, kube
from support.kube import Object, kubectl
from support.memcached import SMALL, memcached, wait_until_ready
from support.permissions import denied, token_of

ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
FOREIGN = "kube-system"

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def token() -> str:
    """A token of the controller's account."""
    return token_of(ACCOUNT, installed.NAMESPACE)


@pytest.fixture
def foreign() -> Iterator[Object]:
    """A Deployment in kube-system."""
    name = f"foreign-{uuid.uuid4().hex[:8]}"
    kubectl("create", "deployment", name, "-n", FOREIGN, "--image=localhost/foreign:1", "--replicas=0")
    yield kube.must_get("deployments", FOREIGN, name)
    kubectl("delete", "deployment", name, "-n", FOREIGN)


def test_foreign_deployment_cannot_be_changed_or_deleted(token: str, foreign: Object) -> None:
    name = foreign["metadata"]["name"]
    labels = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "memcached-operator"}}}
    for patch in ({"spec": {"replicas": 1}}, labels):
        assert denied(token, "patch", "deployment", name, "-n", FOREIGN, "--type=merge", "-p", json.dumps(patch))
    assert denied(token, "delete", "deployment", name, "-n", FOREIGN)
    assert kube.must_get("deployments", FOREIGN, name)["spec"] == foreign["spec"]


def test_webhook_cannot_be_redirected(token: str) -> None:
    for kind, name in installed.CONFIGURATIONS.items():
        before = installed.configuration(kind, name)["webhooks"]
        for path, value in (
            ("clientConfig/service/name", "evil"),
            ("failurePolicy", "Ignore"),
            ("name", "evil.example.com"),
        ):
            patch = [{"op": "replace", "path": f"/webhooks/0/{path}", "value": value}]
            assert denied(token, "patch", kind, name, "--type=json", "-p", json.dumps(patch))
        assert installed.configuration(kind, name)["webhooks"] == before


def test_child_can_be_scaled_but_not_made_privileged(token: str, namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    patch = ("patch", "deployment", "cache", "-n", namespace, "--dry-run=server", "--type=json", "-p")
    context = "/spec/template/spec/containers/0/securityContext"
    add = {"op": "replace", "path": context, "value": {"privileged": True}}
    scale = {"op": "replace", "path": "/spec/replicas", "value": 2}
    assert not denied(token, *patch, json.dumps([scale]))
    assert denied(token, *patch, json.dumps([scale, add]))


def test_only_the_certificate_secret_can_be_created(token: str) -> None:
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}
    meta = {"name": "token", "annotations": {"kubernetes.io/service-account.name": ACCOUNT}}
    secret |= {"metadata": meta}
    assert denied(token, "create", "-n", installed.NAMESPACE, "-f", "-", stdin=secret)
