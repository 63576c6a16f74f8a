"""The controller uses exactly its permissions, according to the audit log since the start of the cluster.

The log spans all commands that ran tests on it, whichever pods of the operator; this module runs last. It lets the
controller use each permission, so it also passes alone, but then says that it judged only its own namespaces.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memcached_api.annotations import REVOKE_ANNOTATION
from support import installed, kube, permissions
from support.audit import Audit
from support.kube import Object, eventually, kubectl
from support.permissions import Grant, Usage
from support.probing import Record

ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
USER = f"system:serviceaccount:{installed.NAMESPACE}:{ACCOUNT}"
RBAC = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


def granted() -> Iterator[Grant]:
    """All permissions of all roles that config/ binds to the controller."""
    roles = {(obj["kind"], obj["metadata"]["name"]): obj for obj in installed.rendered() if "rules" in obj}
    for binding in installed.rendered():
        if any(subject["name"] == ACCOUNT for subject in binding.get("subjects", [])):
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            yield from permissions.grants_of(role["rules"], role["metadata"].get("namespace", ""))


class Roles:
    """Tracks which of our roles and bindings are deleted, from the requests so far: tests deploy and undeploy."""

    def __init__(self) -> None:
        self._deleted = set[str]()

    def in_force(self, request: Object) -> bool:
        """Process one request; return whether all roles and bindings exist after it."""
        target = request.get("objectRef", {})
        name, succeeded = target.get("name", ""), request["responseStatus"].get("code", 0) < 300
        is_role = target.get("resource") in RBAC and name.startswith("memcached-operator-")
        is_namespace = target.get("resource") == "namespaces" and name == installed.NAMESPACE
        if succeeded and (is_role or (is_namespace and not target.get("subresource"))):
            if request["verb"] == "delete":
                self._deleted.add(f"{target['resource']} {name}")
            elif request["verb"] in ("create", "patch", "update"):
                self._deleted.discard(f"{target['resource']} {name}")
        return not self._deleted


def revoke_other_authorities() -> None:
    """Let the controller write the Secret with the webhook's certificate: it removes the annotation."""
    secret = ("secrets", installed.NAMESPACE, installed.CERTIFICATE)
    kubectl("annotate", "secret", installed.CERTIFICATE, "-n", installed.NAMESPACE, f"{REVOKE_ANNOTATION}=true")
    eventually(lambda: not kube.must_get(*secret)["metadata"].get("annotations"), description="it is removed")


@pytest.fixture(scope="module")
def usage(cluster: dict[str, Any]) -> Usage:
    """The controller's requests since the start of the cluster."""
    revoke_other_authorities()
    permissions.exercise(installed.NAMESPACE)
    return permissions.requests_by(Audit(Path(cluster["audit_log"]), whole=True), USER, Roles().in_force)


def test_all_requests_are_granted(usage: Usage, record_property: Record) -> None:
    record_property("namespaces of tests whose requests were judged", len(usage.namespaces()))
    assert usage.exceeding(granted()) == set()
    assert usage.denied == set()


def test_all_permissions_are_used(usage: Usage) -> None:
    assert usage.unused(granted()) == permissions.NEVER_REQUESTED


def test_no_secret_of_users_is_requested(usage: Usage) -> None:
    """A Memcached with a missing Secret is one of the objects. Other tests use the account in its own namespace."""
    secrets = {each for each in usage.allowed | usage.denied if each.resource == "secrets"}
    assert {each.namespace for each in secrets} == {installed.NAMESPACE}
    assert {each.verb for each in secrets} <= {"get", "patch", "create"}
