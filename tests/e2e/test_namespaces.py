"""Installed with kubectl for a list of namespaces: the controller works, and has permissions, in exactly these."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.status.conditions import is_reported
from support import appservice, installed, kube, permissions
from support.audit import Audit
from support.install import make, remaining
from support.kube import consistently, kubectl
from support.memcached import SMALL, memcached, pods_of, wait_until_ready

OVERLAY = installed.ROOT / "config/overlays/namespaced"
COPY = installed.ROOT / "build/namespaced"
ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
USER = f"system:serviceaccount:{installed.NAMESPACE}:{ACCOUNT}"
UNCHANGED_SECONDS = 3
"""Seconds for which other namespaces must stay unchanged after the operator has worked in its own."""

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@dataclass(frozen=True)
class Listed:
    """An installation for two namespaces, another namespace, and the audit log since before the installation."""

    watched: list[str]
    other_namespace: str
    audit: Audit


@pytest.fixture(scope="module")
def listed(cluster: dict[str, Any]) -> Iterator[Listed]:
    """Deploy the overlay with two temporary namespaces in its list; restore the default deployment afterwards."""
    if remaining():
        make("undeploy")
    audit = Audit(Path(cluster["audit_log"]))
    with ExitStack() as stack:
        watched = [stack.enter_context(kube.temporary_namespace()) for _ in range(2)]
        other_namespace = stack.enter_context(kube.temporary_namespace())
        stack.callback(make, "deploy")
        overlay = f"OVERLAY={overlay_for(watched)}"
        stack.callback(undeploy, overlay)
        make("deploy", overlay)
        yield Listed(watched, other_namespace, audit)


def undeploy(overlay: str) -> None:
    """Remove the installation: its RoleBindings too, while their namespaces still exist."""
    make("undeploy", overlay)
    assert remaining() == []


def overlay_for(watched: list[str]) -> str:
    """A copy of the overlay with other namespaces in its list, as described in docs/install-kubectl.md."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(OVERLAY, COPY)
    replacements = {"team-a": watched[0], "team-b": watched[1], "../../default": "../../config/default"}
    for file in COPY.iterdir():
        text = file.read_text()
        for old, new in replacements.items():
            text = text.replace(old, new)
        file.write_text(text)
    return str(COPY.relative_to(installed.ROOT))


def test_only_the_listed_namespaces_are_reconciled(listed: Listed) -> None:
    kube.apply(memcached(listed.other_namespace, resources=SMALL))
    kube.apply(appservice.appservice(listed.other_namespace))
    for namespace in listed.watched:
        kube.apply(memcached(namespace, resources=SMALL))
        kube.apply(appservice.appservice(namespace, resources=SMALL))
    for namespace in listed.watched:
        wait_until_ready(namespace)
        appservice.wait_until_ready(namespace)

    def unchanged() -> bool:
        found = kube.must_get("memcacheds", listed.other_namespace, "cache")
        app = kube.must_get("appservices", listed.other_namespace, "app")
        worked_on = is_reported(found) or is_reported(app)
        return not worked_on and not pods_of(listed.other_namespace) and not appservice.pods_of(listed.other_namespace)

    consistently(unchanged, UNCHANGED_SECONDS, "the other namespace is unchanged")
    assert not kube.items("deployments", listed.other_namespace)
    assert not kube.items("services", listed.other_namespace)


def test_permissions_equal_those_of_the_roles(listed: Listed) -> None:
    roles = {(each["kind"], each["metadata"]["name"]): each.get("rules", []) for each in installed.rendered()}
    wanted = set(permissions.grants_of(roles["ClusterRole", "memcached-operator-certificates-role"]))
    for name in ("leader-election", "certificates"):
        wanted.update(permissions.grants_of(roles["Role", f"memcached-operator-{name}-role"], installed.NAMESPACE))
    for namespace in listed.watched:
        wanted.update(permissions.grants_of(roles["ClusterRole", "memcached-operator-manager-role"], namespace))
    assert permissions.granted_to(ACCOUNT, installed.NAMESPACE) == wanted
    assert {grant[:4] for grant in wanted if not grant.namespace} == {
        (verb, "admissionregistration.k8s.io", f"{kind.lower()}s", name)
        for kind, name in installed.CONFIGURATIONS.items()
        for verb in ("get", "patch")
    }


def test_no_request_concerns_another_namespace(listed: Listed) -> None:
    requests = [each for each in listed.audit.requests(USER.encode()) if each["user"]["username"] == USER]
    assert [each for each in requests if each["responseStatus"]["code"] == 403] == []
    grants = [permissions.required_grant(each) for each in requests if "resource" in each.get("objectRef", {})]
    namespaces = {grant.namespace for grant in grants if grant.group != "admissionregistration.k8s.io"}
    assert namespaces == {*listed.watched, installed.NAMESPACE}


def test_admission_policies_apply(listed: Listed) -> None:
    namespace = listed.watched[0]
    kubectl("create", "deployment", "foreign", "-n", namespace, "--image=localhost/foreign:1", "--replicas=0")
    done = kubectl("delete", "deployment", "foreign", "-n", namespace, f"--as={USER}", check=False)
    assert "ValidatingAdmissionPolicy 'memcached-operator-children'" in done.stderr
