"""Installed by kubectl for a list of namespaces: it works in exactly these, with rights in exactly these."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import appservice, installed, kube, rights
from support.audit import Audit
from support.install import left, make
from support.kube import kubectl, steadily
from support.memcached import SMALL, memcached, pods_of, settled

OVERLAY = installed.ROOT / "config/overlays/namespaced"
COPY = installed.ROOT / "build/namespaced"
ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
USER = f"system:serviceaccount:{installed.NAMESPACE}:{ACCOUNT}"
UNTOUCHED = 3
"""Seconds for which nothing must happen where the operator is not to be, after it has worked where it is to be."""

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@dataclass(frozen=True)
class Listed:
    """An installation for two namespaces, one that it is not for, and the audit log from before it."""

    watched: list[str]
    elsewhere: str
    audit: Audit


@pytest.fixture(scope="module")
def listed(cluster: dict[str, Any]) -> Iterator[Listed]:
    """The overlay, with two namespaces of the test's own in its list; afterwards the operator is as it was."""
    if left():
        make("undeploy")
    audit = Audit(Path(cluster["audit_log"]))
    with ExitStack() as stack:
        watched = [stack.enter_context(kube.own_namespace()) for _ in range(2)]
        elsewhere = stack.enter_context(kube.own_namespace())
        stack.callback(make, "deploy")
        overlay = f"OVERLAY={overlay_for(watched)}"
        stack.callback(removed, overlay)
        make("deploy", overlay)
        yield Listed(watched, elsewhere, audit)


def removed(overlay: str) -> None:
    """Remove the installation: its RoleBindings too, while their namespaces still exist."""
    make("undeploy", overlay)
    assert left() == []


def overlay_for(watched: list[str]) -> str:
    """A copy of the overlay with other namespaces in its list, as docs/install.md says."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(OVERLAY, COPY)
    words = {"team-a": watched[0], "team-b": watched[1], "../../default": "../../config/default"}
    for file in COPY.iterdir():
        text = file.read_text()
        for old, new in words.items():
            text = text.replace(old, new)
        file.write_text(text)
    return str(COPY.relative_to(installed.ROOT))


def may(verb: str, what: str, *where: str) -> bool:
    """Whether the controller may do something, by the API server's own word."""
    return kubectl("auth", "can-i", verb, what, f"--as={USER}", *where, check=False).stdout.strip() == "yes"


def test_it_works_in_its_namespaces_and_nowhere_else(listed: Listed) -> None:
    kube.apply(memcached(listed.elsewhere, resources=SMALL))
    kube.apply(appservice.appservice(listed.elsewhere))
    for namespace in listed.watched:
        kube.apply(memcached(namespace, resources=SMALL))
        kube.apply(appservice.appservice(namespace, resources=SMALL))
    for namespace in listed.watched:
        settled(namespace)
        appservice.settled(namespace)

    def untouched() -> bool:
        found = kube.must_get("memcacheds", listed.elsewhere, "cache")
        app = kube.must_get("appservices", listed.elsewhere, "app")
        worked_on = "status" in found or "status" in app
        return not worked_on and not pods_of(listed.elsewhere) and not appservice.pods_of(listed.elsewhere)

    steadily(untouched, UNTOUCHED, "nothing is done elsewhere")
    assert not kube.items("deployments", listed.elsewhere)
    assert not kube.items("services", listed.elsewhere)


def test_its_rights_are_those_of_its_roles_in_its_namespaces(listed: Listed) -> None:
    roles = {(each["kind"], each["metadata"]["name"]): each.get("rules", []) for each in installed.rendered()}
    wanted = set(rights.grants_of(roles["ClusterRole", "memcached-operator-certificates-role"]))
    for name in ("leader-election", "certificates"):
        wanted.update(rights.grants_of(roles["Role", f"memcached-operator-{name}-role"], installed.NAMESPACE))
    for namespace in listed.watched:
        wanted.update(rights.grants_of(roles["ClusterRole", "memcached-operator-manager-role"], namespace))
    assert rights.held_by(ACCOUNT, installed.NAMESPACE) == wanted
    assert {grant[:4] for grant in wanted if not grant.namespace} == {
        (verb, "admissionregistration.k8s.io", f"{kind.lower()}s", name)
        for kind, name in installed.CONFIGURATIONS.items()
        for verb in ("get", "patch")
    }


@pytest.mark.parametrize(
    ("verb", "what"),
    [
        ("list", "memcacheds.cache.example.com"),
        ("create", "deployments.apps"),
        ("delete", "deployments.apps"),
        ("patch", "services"),
        ("list", "pods"),
    ],
)
def test_the_api_server_allows_it_there_and_nowhere_else(listed: Listed, verb: str, what: str) -> None:
    assert all(may(verb, what, "-n", namespace) for namespace in listed.watched)
    assert not may(verb, what, "-n", listed.elsewhere)
    assert not may(verb, what, "-n", "kube-system")
    assert not may(verb, what, "-A")


def test_it_asks_for_nothing_elsewhere(listed: Listed) -> None:
    asked = [each for each in listed.audit.requests(USER.encode()) if each["user"]["username"] == USER]
    assert [each for each in asked if each["responseStatus"]["code"] == 403] == []
    about = [rights.asked_for(each) for each in asked if "resource" in each.get("objectRef", {})]
    places = {grant.namespace for grant in about if grant.group != "admissionregistration.k8s.io"}
    assert places == {*listed.watched, installed.NAMESPACE}


def test_the_policies_hold_here_too(listed: Listed) -> None:
    namespace = listed.watched[0]
    kubectl("create", "deployment", "foreign", "-n", namespace, "--image=localhost/foreign:1", "--replicas=0")
    done = kubectl("delete", "deployment", "foreign", "-n", namespace, f"--as={USER}", check=False)
    assert "ValidatingAdmissionPolicy 'memcached-operator-children'" in done.stderr
