"""Installed for some namespaces: the controller works, and has permissions, in exactly these."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.engine.reporting.conditions import is_reported
from support import appservice, kube, olm, permissions
from support.audit import Audit
from support.kube import consistently, kubectl
from support.memcached import SMALL, memcached, pods_of, wait_until_ready
from support.olm import CONTROLLER, VERSION, WEBHOOK, Installation, Releases
from support.olm_certificates import SECRET
from support.permissions import Grant

pytestmark = pytest.mark.modes

UNCHANGED_SECONDS = 3
"""Seconds for which other namespaces must stay unchanged after the operator has worked in its own."""
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
"""The permissions of an extension API server to authenticate callers: OLM grants them with every certificate."""


@dataclass(frozen=True)
class Mode:
    """An installation, its target namespaces, another namespace, and the audit log since before the installation."""

    installation: Installation
    watched: list[str]
    other_namespace: str
    audit: Audit

    @property
    def used_namespaces(self) -> set[str]:
        """The namespaces that the controller uses: the targets, and its own for the lease."""
        return {*self.watched, self.installation.namespace}


@pytest.fixture(scope="module", params=["OwnNamespace", "SingleNamespace", "MultiNamespace"])
def mode(
    request: pytest.FixtureRequest, releases: Releases, current_bundle: Path, cluster: dict[str, Any]
) -> Iterator[Mode]:
    """The operator, installed in each mode except AllNamespaces (see test_cluster_wide.py)."""
    others = {"OwnNamespace": 0, "SingleNamespace": 1, "MultiNamespace": 2}[request.param]
    releases.serve(current_bundle)
    audit = Audit(Path(cluster["audit_log"]))
    with ExitStack() as stack:
        targets = [stack.enter_context(kube.temporary_namespace()) for _ in range(others)]
        other_namespace = stack.enter_context(kube.temporary_namespace())
        installation = stack.enter_context(olm.subscribed(targets, own=not others))
        installation.succeeded(VERSION)
        yield Mode(installation, list(installation.targets), other_namespace, audit)


def may_list(mode: Mode, *where: str) -> bool:
    """Whether the controller may list Memcacheds, according to the API server."""
    words = ("auth", "can-i", "list", "memcacheds.cache.example.com", f"--as={mode.installation.account()}", *where)
    return kubectl(*words, check=False).stdout.strip() == "yes"


def test_only_the_target_namespaces_are_reconciled(mode: Mode) -> None:
    kube.apply(memcached(mode.other_namespace, resources=SMALL))
    kube.apply(appservice.appservice(mode.other_namespace))
    kube.apply(appservice.appservice(mode.watched[-1], resources=SMALL))
    for namespace in mode.watched:
        kube.apply(memcached(namespace, resources=SMALL))
        assert wait_until_ready(namespace)["spec"]["image"], "admission has not set the default"
    appservice.wait_until_ready(mode.watched[-1])

    def unchanged() -> bool:
        found = kube.must_get("memcacheds", mode.other_namespace, "cache")
        app = kube.must_get("appservices", mode.other_namespace, "app")
        worked_on = "image" in found["spec"] or is_reported(found) or is_reported(app)
        return not worked_on and not pods_of(mode.other_namespace) and not appservice.pods_of(mode.other_namespace)

    consistently(unchanged, UNCHANGED_SECONDS, "the other namespace is unchanged")
    assert not kube.items("deployments", mode.other_namespace)


def test_no_request_concerns_another_namespace(mode: Mode) -> None:
    user = mode.installation.account()
    requests = [each for each in mode.audit.requests(user.encode()) if each["user"]["username"] == user]
    assert [each for each in requests if each["responseStatus"]["code"] == 403] == []
    targets = [each["objectRef"] for each in requests if "resource" in each.get("objectRef", {})]
    assert {each.get("namespace", "everywhere") for each in targets} == mode.used_namespaces


def test_permissions_equal_those_of_the_bundle(mode: Mode) -> None:
    own = mode.installation.namespace
    rules, condition = olm.permissions(mode.installation), olm.condition_permissions(mode.installation)
    wanted = {grant for namespace in mode.used_namespaces for grant in permissions.grants_of(rules, namespace)}
    assert permissions.granted_to(CONTROLLER, own) == wanted | condition
    assert permissions.granted_to(WEBHOOK, own) == {Grant("get", "", "secrets", SECRET, own), *EXTENSION, *condition}
    assert all(may_list(mode, "-n", namespace) for namespace in mode.watched)
    assert not may_list(mode, "-n", mode.other_namespace)
    assert not may_list(mode, "-A")
