"""Installed for some namespaces only: it works in exactly these, with rights in exactly these."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import appservice, kube, olm, rights
from support.audit import Audit
from support.kube import kubectl, steadily
from support.memcached import SMALL, memcached, pods_of, settled
from support.olm import CONTROLLER, VERSION, WEBHOOK, Installation, Releases
from support.rights import Grant
from support.serving import SECRET

UNTOUCHED = 3
"""Seconds for which nothing must happen where the operator is not to be, after it has worked where it is to be."""
EXTENSION = {
    *(
        Grant("create", "authentication.k8s.io", "tokenreviews"),
        Grant("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    *(
        Grant(verb, "", "configmaps", "extension-apiserver-authentication", "kube-system")
        for verb in ("get", "list", "watch")
    ),
}
"""With which an extension API server asks who calls it: OLM gives it to whatever has a certificate of its."""


@dataclass(frozen=True)
class Mode:
    """An installation, the namespaces it is for, one that it is not for, and the audit log from before it."""

    installation: Installation
    watched: list[str]
    elsewhere: str
    audit: Audit

    @property
    def places(self) -> set[str]:
        """The namespaces in which the controller has anything to do: its own is for the lease."""
        return {*self.watched, self.installation.namespace}


@pytest.fixture(scope="module", params=["OwnNamespace", "SingleNamespace", "MultiNamespace"])
def mode(request: pytest.FixtureRequest, releases: Releases, first: Path, cluster: dict[str, Any]) -> Iterator[Mode]:
    """The operator, installed in each of the narrow modes; test_everywhere.py has the wide one."""
    others = {"OwnNamespace": 0, "SingleNamespace": 1, "MultiNamespace": 2}[request.param]
    releases.serve(first)
    audit = Audit(Path(cluster["audit_log"]))
    with ExitStack() as stack:
        targets = [stack.enter_context(kube.own_namespace()) for _ in range(others)]
        elsewhere = stack.enter_context(kube.own_namespace())
        installation = stack.enter_context(olm.subscribed(targets, own=not others))
        installation.succeeded(VERSION)
        yield Mode(installation, list(installation.targets), elsewhere, audit)


def may_list(mode: Mode, *where: str) -> bool:
    """Whether the controller may list Memcacheds, by the API server's own word."""
    words = ("auth", "can-i", "list", "memcacheds.cache.example.com", f"--as={mode.installation.account()}", *where)
    return kubectl(*words, check=False).stdout.strip() == "yes"


def test_it_works_in_its_namespaces_and_nowhere_else(mode: Mode) -> None:
    kube.apply(memcached(mode.elsewhere, resources=SMALL))
    kube.apply(appservice.appservice(mode.elsewhere))
    kube.apply(appservice.appservice(mode.watched[-1], resources=SMALL))
    for namespace in mode.watched:
        kube.apply(memcached(namespace, resources=SMALL))
        assert settled(namespace)["spec"]["image"], "admission has written the default"
    appservice.settled(mode.watched[-1])

    def untouched() -> bool:
        found = kube.must_get("memcacheds", mode.elsewhere, "cache")
        app = kube.must_get("appservices", mode.elsewhere, "app")
        worked_on = "image" in found["spec"] or "status" in found or "status" in app
        return not worked_on and not pods_of(mode.elsewhere) and not appservice.pods_of(mode.elsewhere)

    steadily(untouched, UNTOUCHED, "nothing is done elsewhere")
    assert not kube.items("deployments", mode.elsewhere)


def test_it_asks_for_nothing_elsewhere(mode: Mode) -> None:
    who = mode.installation.account()
    asked = [each for each in mode.audit.requests(who.encode()) if each["user"]["username"] == who]
    assert [each for each in asked if each["responseStatus"]["code"] == 403] == []
    about = [each["objectRef"] for each in asked if "resource" in each.get("objectRef", {})]
    assert {each.get("namespace", "everywhere") for each in about} == mode.places


def test_its_rights_are_those_of_the_bundle_in_its_namespaces(mode: Mode) -> None:
    home = mode.installation.namespace
    rules, condition = olm.permissions(mode.installation), olm.condition_rights(mode.installation)
    wanted = {grant for namespace in mode.places for grant in rights.grants_of(rules, namespace)}
    assert rights.held_by(CONTROLLER, home) == wanted | condition
    assert rights.held_by(WEBHOOK, home) == {Grant("get", "", "secrets", SECRET, home), *EXTENSION, *condition}
    assert all(may_list(mode, "-n", namespace) for namespace in mode.watched)
    assert not may_list(mode, "-n", mode.elsewhere)
    assert not may_list(mode, "-A")
