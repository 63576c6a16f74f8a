"""What the controller may do is what it does: the whole run by the API server's audit log. It must come last."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import installed, kube, rights
from support.audit import Audit
from support.kube import Object
from support.memcached import SMALL, memcached, settled
from support.rights import Grant, Run

ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
USER = f"system:serviceaccount:{installed.NAMESPACE}:{ACCOUNT}"
RBAC = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


def granted() -> Iterator[Grant]:
    """All rules of all roles that config/ binds to the controller."""
    roles = {(obj["kind"], obj["metadata"]["name"]): obj for obj in installed.rendered() if "rules" in obj}
    for binding in installed.rendered():
        if any(subject["name"] == ACCOUNT for subject in binding.get("subjects", [])):
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            yield from rights.grants_of(role["rules"], role["metadata"].get("namespace", ""))


class Roles:
    """Which of our roles and bindings do not exist, by the requests so far: a test may deploy and undeploy."""

    def __init__(self) -> None:
        self._away = set[str]()

    def in_force(self, request: Object) -> bool:
        """Take note of a request; whether all of them exist after it."""
        target = request.get("objectRef", {})
        name, succeeded = target.get("name", ""), request["responseStatus"].get("code", 0) < 300
        is_role = target.get("resource") in RBAC and name.startswith("memcached-operator-")
        is_home = target.get("resource") == "namespaces" and name == installed.NAMESPACE
        if succeeded and (is_role or (is_home and not target.get("subresource"))):
            if request["verb"] == "delete":
                self._away.add(f"{target['resource']} {name}")
            elif request["verb"] in ("create", "patch", "update"):
                self._away.discard(f"{target['resource']} {name}")
        return not self._away


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, cluster: dict[str, Any]) -> Run:
    """The whole run, from the start of the cluster; nothing can be said about a part of it."""
    if len({item.path for item in request.session.items}) == 1:
        pytest.skip("speaks of a whole run: these tests alone are none")
    rights.use_seldom_used()
    return rights.told_by(Audit(Path(cluster["audit_log"]), whole=True), USER, Roles().in_force)


def test_all_that_is_asked_for_is_granted(run: Run) -> None:
    assert run.not_granted(granted()) == set()
    assert run.denied == set()


def test_all_that_is_granted_is_asked_for(run: Run) -> None:
    assert run.never_asked(granted()) == rights.UNASKED


def test_what_is_granted_without_being_asked_for_is_needed(run: Run, namespace: str) -> None:
    """The API server of the test cluster has the admission plug-in that asks for it, and children block deletion."""
    kube.apply(memcached(namespace, resources=SMALL))
    settled(namespace)
    for plural in ("deployments", "services"):
        (owner,) = kube.must_get(plural, namespace, "cache")["metadata"]["ownerReferences"]
        assert owner["blockOwnerDeletion"] is True
