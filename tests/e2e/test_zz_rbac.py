"""What the controller may do is what it does: the whole run by the API server's audit log. It must come last."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import installed, kube
from support.audit import Audit
from support.kube import Object, eventually
from support.memcached import SMALL, memcached, settled

ACCOUNT = f"memcached-operator-{installed.CONTROLLER}"
USER = f"system:serviceaccount:{installed.NAMESPACE}:{ACCOUNT}"
RBAC = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
UNASKED = {
    ("update", "app.example.com", "appservices/finalizers"),
    ("update", "cache.example.com", "memcacheds/finalizers"),
}
"""Granted but not called: the API server asks for it before a child may name us as an owner that blocks deletion."""

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


class Grant(NamedTuple):
    """One thing that the controller may do; without a name to objects of any, without a namespace everywhere."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def covers(self, asked: "Grant") -> bool:
        """Whether a request is allowed by this."""
        narrowed = self.name in ("", asked.name) and self.namespace in ("", asked.namespace)
        return self[:3] == asked[:3] and narrowed


def granted() -> Iterator[Grant]:
    """All rules of all roles that config/ binds to the controller."""
    roles = {(obj["kind"], obj["metadata"]["name"]): obj for obj in installed.rendered() if "rules" in obj}
    for binding in installed.rendered():
        if any(subject["name"] == ACCOUNT for subject in binding.get("subjects", [])):
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            yield from grants_of(role)


def grants_of(role: Object) -> Iterator[Grant]:
    """Each rule of a role, taken apart."""
    namespace = role["metadata"].get("namespace", "")
    for rule in role["rules"]:
        for verb in rule["verbs"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Grant(verb, group, resource, name, namespace)


def asked_for(request: Object) -> Grant:
    """A request in the form of the grant that it needs."""
    target = request["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return Grant(
        request["verb"], target.get("apiGroup", ""), resource, target.get("name", ""), target.get("namespace", "")
    )


class Run(NamedTuple):
    """What the controller asked for, from the start of the cluster."""

    allowed: set[Grant]
    denied: set[Grant]


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, cluster: dict[str, Any]) -> Run:
    """The whole run; nothing can be said about a part of it."""
    if len({item.path for item in request.session.items}) == 1:
        pytest.skip("speaks of a whole run: these tests alone are none")
    seldom_used_rights_are_used()
    return told_by(Audit(Path(cluster["audit_log"]), whole=True))


def told_by(audit: Audit) -> Run:
    """What was allowed, and what was denied while our roles were in force: not while a test deploys or undeploys."""
    found, away = Run(set(), set()), set[str]()
    for request in audit.requests(b"memcached-operator"):
        target = request.get("objectRef", {})
        note_roles(request, away)
        if request["user"]["username"] != USER or "resource" not in target:
            continue
        if request["annotations"]["authorization.k8s.io/decision"] == "allow":
            found.allowed.add(asked_for(request))
        elif not away:
            found.denied.add(asked_for(request))
    return found


def note_roles(request: Object, away: set[str]) -> None:
    """Keep note of which of our roles and bindings do not exist."""
    target = request.get("objectRef", {})
    name, succeeded = target.get("name", ""), request["responseStatus"].get("code", 0) < 300
    is_role = target.get("resource") in RBAC and name.startswith("memcached-operator-")
    is_home = target.get("resource") == "namespaces" and name == installed.NAMESPACE and not target.get("subresource")
    if not succeeded or not (is_role or is_home):
        return
    if request["verb"] == "delete":
        away.add(f"{target['resource']} {name}")
    elif request["verb"] in ("create", "patch", "update"):
        away.discard(f"{target['resource']} {name}")


def seldom_used_rights_are_used() -> None:
    """Children of other names, as another release may have made them, are deleted."""
    with kube.own_namespace() as namespace:
        kube.apply(memcached(namespace, resources=SMALL))
        owner = settled(namespace)
        for plural in ("deployments", "services"):
            child = kube.must_get(plural, namespace, "cache")
            meta = {key: child["metadata"][key] for key in ("labels", "ownerReferences")}
            spec = {key: value for key, value in child["spec"].items() if not key.startswith("clusterIP")}
            former: Object = {**child, "metadata": {**meta, "name": "former", "namespace": namespace}, "spec": spec}
            former.pop("status", None)
            assert meta["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
            kube.kubectl("create", "-f", "-", stdin=former)
        for plural in ("deployments", "services"):
            eventually(lambda p=plural: kube.get(p, namespace, "former") is None, 30, f"the former {plural} is gone")


def test_all_that_is_asked_for_is_granted(run: Run) -> None:
    may = list(granted())
    assert {asked for asked in run.allowed if not any(grant.covers(asked) for grant in may)} == set()
    assert run.denied == set()


def test_all_that_is_granted_is_asked_for(run: Run) -> None:
    never = {grant for grant in granted() if not any(grant.covers(asked) for asked in run.allowed)}
    assert {grant[:3] for grant in never} == UNASKED


def test_what_is_granted_without_being_asked_for_is_needed(run: Run, namespace: str) -> None:
    """The API server of the test cluster has the admission plug-in that asks for it, and children block deletion."""
    kube.apply(memcached(namespace, resources=SMALL))
    settled(namespace)
    for plural in ("deployments", "services"):
        (owner,) = kube.must_get(plural, namespace, "cache")["metadata"]["ownerReferences"]
        assert owner["blockOwnerDeletion"] is True
