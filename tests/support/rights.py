"""Permissions, taken apart: what roles grant, what a service account holds, and what it asked for by the audit log."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from support import kube
from support.audit import Audit
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, memcached, settled

API = "/apis/rbac.authorization.k8s.io/v1"
UNASKED = {
    ("update", "app.example.com", "appservices/finalizers"),
    ("update", "cache.example.com", "memcacheds/finalizers"),
}
"""Granted but not called: the API server asks for it before a child may name us as an owner that blocks deletion."""
FOR_FAULTS = {
    ("get", "apps", "deployments"),
    ("get", "", "services"),
    ("get", "cache.example.com", "memcacheds"),
    ("get", "app.example.com", "appservices"),
}
"""Called where a child cannot be created because something of its name is there already, or where one is missing that
was there, and never else."""


class Grant(NamedTuple):
    """One permission; without a name for objects of any name, without a namespace everywhere."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def covers(self, asked: "Grant") -> bool:
        """Whether a request is allowed by this."""
        narrowed = self.name in ("", asked.name) and self.namespace in ("", asked.namespace)
        return self[:3] == asked[:3] and narrowed


def grants_of(rules: Iterable[Object], namespace: str = "") -> Iterator[Grant]:
    """Each rule of a role, taken apart; rules about paths apart."""
    for rule in rules:
        for verb in rule["verbs"]:
            for group in rule.get("apiGroups", ()):
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Grant(verb, group, resource, name, namespace)


def held_by(account: str, home: str) -> set[Grant]:
    """Everything that the bindings of the cluster give to a service account of the namespace `home`."""
    found: set[Grant] = set()
    for plural in ("rolebindings", "clusterrolebindings"):
        for binding in _listed(f"{API}/{plural}"):
            namespace = binding["metadata"].get("namespace", "")
            who = [(each["name"], each.get("namespace", namespace)) for each in binding.get("subjects") or ()]
            if (account, home) in who:
                found.update(grants_of(_rules(binding["roleRef"], namespace), namespace))
    return found


def _listed(path: str) -> list[Object]:
    return (kube.read(path) or {}).get("items", [])


def _rules(reference: Object, namespace: str) -> list[Object]:
    place = f"/namespaces/{namespace}/roles" if reference["kind"] == "Role" else "/clusterroles"
    return (kube.read(f"{API}{place}/{reference['name']}") or {}).get("rules") or []


def asked_for(request: Object) -> Grant:
    """A request in the form of the grant that it needs."""
    target = request["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return Grant(
        request["verb"], target.get("apiGroup", ""), resource, target.get("name", ""), target.get("namespace", "")
    )


class Run(NamedTuple):
    """What a user asked for."""

    allowed: set[Grant]
    denied: set[Grant]

    def never_asked(self, granted: Iterable[Grant]) -> set[tuple[str, ...]]:
        """What is granted and was never asked for, as verb, group and resource."""
        return {grant[:3] for grant in granted if not any(grant.covers(asked) for asked in self.allowed)}

    def not_granted(self, granted: Iterable[Grant]) -> set[Grant]:
        """What was allowed by none of these, but by something else."""
        may = list(granted)
        return {asked for asked in self.allowed if not any(grant.covers(asked) for grant in may)}


def _always(_: Object) -> bool:
    return True


def told_by(audit: Audit, user: str, in_force: Callable[[Object], bool] = _always) -> Run:
    """What a user asked for. `in_force` sees each request of anybody and tells whether a denial counts from here on."""
    found, counts = Run(set(), set()), True
    for request in audit.requests(b"memcached-operator"):
        counts = in_force(request)
        if request["user"]["username"] != user or "resource" not in request.get("objectRef", {}):
            continue
        if request["annotations"]["authorization.k8s.io/decision"] == "allow":
            found.allowed.add(asked_for(request))
        elif counts:
            found.denied.add(asked_for(request))
    return found


def use_seldom_used() -> None:
    """Have the controller delete children of other names, as another release may have made them."""
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
            kubectl("create", "-f", "-", stdin=former)
        for plural in ("deployments", "services"):
            eventually(lambda p=plural: kube.get(p, namespace, "former") is None, 30, f"the former {plural} is gone")


def token_of(account: str, namespace: str) -> str:
    """A token for the account."""
    return kubectl("create", "token", account, "-n", namespace).stdout.strip()


def denied(token: str, *words: str, stdin: Object | None = None) -> bool:
    """Whether one of our policies is against a kubectl command with this token. RBAC must not be."""
    done = kubectl(f"--token={token}", *words, stdin=stdin, check=False)
    assert "cannot" not in done.stderr, done.stderr
    return done.returncode != 0 and "ValidatingAdmissionPolicy 'memcached-operator-" in done.stderr
