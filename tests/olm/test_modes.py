"""Installed for some namespaces only: it works in exactly these, with rights in exactly these."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import kube, olm
from support.audit import Audit
from support.kube import Object, kubectl, steadily
from support.memcached import SMALL, memcached, pods_of, settled
from support.olm import CONTROLLER, Installation, Releases

VERSION = "0.1.0"
UNTOUCHED = 3
"""Seconds for which nothing must happen where the operator is not to be, after it has worked where it is to be."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Mode:
    """An installation, the namespaces it is for, and one that it is not for."""

    installation: Installation
    watched: list[str]
    elsewhere: str


@pytest.fixture(scope="module", params=["OwnNamespace", "SingleNamespace", "MultiNamespace"])
def mode(request: pytest.FixtureRequest, releases: Releases, first: Path) -> Iterator[Mode]:
    """The operator, installed in each of the narrow modes."""
    others = {"OwnNamespace": 0, "SingleNamespace": 1, "MultiNamespace": 2}[request.param]
    releases.serve(first)
    with ExitStack() as stack:
        targets = [stack.enter_context(kube.own_namespace()) for _ in range(others)]
        elsewhere = stack.enter_context(kube.own_namespace())
        installation = stack.enter_context(olm.subscribed(targets, own=not others))
        installation.succeeded(VERSION)
        yield Mode(installation, list(installation.targets), elsewhere)


def account(mode: Mode) -> str:
    """Whom the controller runs as."""
    return f"system:serviceaccount:{mode.installation.namespace}:{CONTROLLER}"


def may_list(mode: Mode, *where: str) -> bool:
    """Whether the controller may list Memcacheds."""
    words = ("auth", "can-i", "list", "memcacheds.cache.example.com", f"--as={account(mode)}", *where)
    return kubectl(*words, check=False).stdout.strip() == "yes"


def bound(objects: list[Object], mode: Mode) -> list[Object]:
    """The bindings of the operator's accounts."""
    return [
        each
        for each in objects
        for who in each.get("subjects") or ()
        if who.get("namespace") == mode.installation.namespace and who["name"].startswith(olm.PACKAGE)
    ]


def test_it_works_in_its_namespaces_and_nowhere_else(mode: Mode, audit: Audit) -> None:
    kube.apply(memcached(mode.elsewhere, resources=SMALL))
    for namespace in mode.watched:
        kube.apply(memcached(namespace, resources=SMALL))
        assert settled(namespace)["spec"]["image"], "admission has written the default"

    def untouched() -> bool:
        found = kube.must_get("memcacheds", mode.elsewhere, "cache")
        return "status" not in found and "image" not in found["spec"] and not pods_of(mode.elsewhere)

    steadily(untouched, UNTOUCHED, "nothing is done elsewhere")
    assert not kube.items("deployments", mode.elsewhere)
    refused = [each for each in audit.requests(account(mode).encode()) if each["responseStatus"]["code"] == 403]
    assert refused == [], "it asks for nothing that it may not"


def test_its_rights_are_those_of_the_bundle_in_its_namespaces(mode: Mode) -> None:
    found = mode.installation.service_version(VERSION)
    assert found is not None
    install = found["spec"]["install"]["spec"]
    assert not install.get("clusterPermissions")
    wanted = [rule for each in install["permissions"] for rule in each["rules"]]
    for namespace in mode.watched:
        assert may_list(mode, "-n", namespace)
        found = kube.read(f"{RBAC}/namespaces/{namespace}/roles?labelSelector=olm.owner={olm.csv_name(VERSION)}") or {}
        rules = [rule for role in found["items"] if not own(role) for rule in role["rules"] or ()]
        assert all(rule in wanted for rule in rules)
        assert all(rule in rules for rule in wanted)
    assert not may_list(mode, "-n", mode.elsewhere)
    assert not may_list(mode, "-A")
    everywhere = bound((kube.read(f"{RBAC}/clusterrolebindings") or {})["items"], mode)
    # Which lets an extension API server ask who calls it: OLM gives it to whatever has a certificate of its.
    assert [each["roleRef"]["name"] for each in everywhere] == ["system:auth-delegator"]


def own(role: Object) -> bool:
    """Whether a role is one of OLM's, not of the bundle's: for the certificate, and for the OperatorCondition."""
    return role["metadata"]["name"] in (olm.csv_name(VERSION), f"{olm.WEBHOOK}-service-cert")
