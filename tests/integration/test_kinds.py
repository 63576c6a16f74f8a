"""The controller for Memcached alone in one namespace, with the permissions of config/overlays and no other CRD."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crds.crd import definition
from integration.confined import Account, create_account
from integration.control_plane import CRDS, ControlPlane, is_served, until
from integration.test_manager import cache, wait_until_ready
from memcached_api.appservice.types import APPSERVICE
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from unit.config.rendered import render_directory

pytestmark = pytest.mark.server

OVERLAY = "config/overlays/memcached-only"
ADMISSION = ("admissionregistration.k8s.io", "v1")
RESOURCES = {
    found.kind: found
    for found in (
        Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
        Resource(*ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        Resource(*ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        Resource(*ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    )
}
CONTROLLER, ROLE = "memcached-operator-controller-manager", "memcached-operator-manager-role"
ROLES = RESOURCES["ClusterRole"]
WITHOUT_SERVERS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
EXIT_SECONDS = 20.0
"""Seconds until the process must have ended; on a busy machine."""


@pytest.fixture
def without_appservices(plane: ControlPlane) -> Iterator[None]:
    """The control plane without the CRD of the other kind."""
    crd = definition(APPSERVICE)
    key = Key(CRDS, "", crd["metadata"]["name"])

    def served() -> bool:
        return plane.call(lambda client: is_served(client, APPSERVICES.path()))

    plane.delete(key)
    until(lambda: plane.get(key) is None and not served())
    yield
    plane.create(CRDS, crd)
    until(served)


@pytest.fixture
def account(plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Account]:
    """An account with the permissions of the controller in this namespace only, as in config/overlays/namespaced."""
    role = render_directory(OVERLAY).one("ClusterRole", ROLE)
    plane.create(ROLES, {**role, "metadata": {"name": namespace}})
    yield create_account(plane, "controller", tmp_path, namespace, role=namespace, only_there=True)
    plane.delete(Key(ROLES, "", namespace))


@contextmanager
def controller(account: Account, namespace: str, log: Path) -> Generator[None]:
    """Run the process for a namespace with the arguments of the overlay about kinds; it must end without an error."""
    (container,) = render_directory(OVERLAY).one("Deployment", CONTROLLER)["spec"]["template"]["spec"]["containers"]
    kinds = [each for each in container["args"] if each.startswith("--kinds")]
    command = [sys.executable, "-m", "memcached_operator", *kinds, f"--watch-namespaces={namespace}", *WITHOUT_SERVERS]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "KUBECONFIG": str(account.kubeconfig)}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stderr=output, env={**os.environ, **environment}) as process,
    ):
        try:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(EXIT_SECONDS) == 0, log.read_text()
        finally:
            process.kill()


@pytest.mark.usefixtures("without_appservices")
def test_memcached_is_reconciled_without_permissions_on_other_kinds_and_namespaces(
    plane: ControlPlane, account: Account, namespace: str, tmp_path: Path
) -> None:
    audit, log = plane.audit(), tmp_path / "log"
    user = f"system:serviceaccount:{namespace}:controller"
    plane.create(MEMCACHEDS, cache(namespace, size=1))
    with controller(account, namespace, log):
        plane.call(lambda client: wait_until_ready(client, namespace))
        plane.change(Key(MEMCACHEDS, namespace, "cache"), {"spec": {"size": 2}})
        found = plane.call(lambda client: wait_until_ready(client, namespace))
        assert found["status"]["readyReplicas"] == 2
    requests = [each for each in audit.requests() if each["user"]["username"] == user]
    assert {each["objectRef"].get("namespace") for each in requests if "resource" in each.get("objectRef", {})} == {
        namespace
    }
    assert [each["requestURI"] for each in requests if "app.example.com" in each["requestURI"]] == []
    assert [each["requestURI"] for each in requests if not is_allowed(each)] == []
    assert [line for line in log.read_text().splitlines() if "appservice" in line.lower()] == []


def test_changed_objects_of_the_overlay_are_accepted(plane: ControlPlane) -> None:
    found = render_directory(OVERLAY).of(*RESOURCES)
    assert {each["kind"] for each in found} == set(RESOURCES)
    for each in found:
        meta = {name: value for name, value in each["metadata"].items() if name != "namespace"}  # kustomize adds one
        stored = plane.would_create(RESOURCES[each["kind"]], {**each, "metadata": meta})
        assert stored["metadata"]["name"] == each["metadata"]["name"]


def is_allowed(request: Object) -> bool:
    """Whether RBAC allowed a request."""
    return request["annotations"]["authorization.k8s.io/decision"] == "allow"
