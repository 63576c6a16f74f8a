"""Single permissions: those of roles, of a service account, and those it used according to the audit log."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from memcached_operator.kube.resource import POD_MONITORS, PROMETHEUS_RULES
from support import appservice, kube
from support.audit import Audit
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, memcached, wait_until_degraded, wait_until_ready
from support.monitors import monitor_crd
from support.waiting import READY, ROLLOUT, SECRET_REPORTED

API = "/apis/rbac.authorization.k8s.io/v1"
NEVER_REQUESTED = {
    ("update", "app.example.com", "appservices/finalizers"),
    ("update", "cache.example.com", "memcacheds/finalizers"),
    ("update", "cache.example.com", "memcachedproxies/finalizers"),
}
"""Granted but never requested: the API server checks it before a child may have an owner that blocks deletion."""


class Grant(NamedTuple):
    """One permission; an empty name means all objects, an empty namespace all namespaces."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def covers(self, required: "Grant") -> bool:
        """Whether this permission allows a request."""
        matches = self.name in ("", required.name) and self.namespace in ("", required.namespace)
        return self[:3] == required[:3] and matches


def grants_of(rules: Iterable[Object], namespace: str = "") -> Iterator[Grant]:
    """The single permissions of a role's rules, without rules for non-resource URLs."""
    for rule in rules:
        for verb in rule["verbs"]:
            for group in rule.get("apiGroups", ()):
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Grant(verb, group, resource, name, namespace)


def granted_to(account: str, account_namespace: str) -> set[Grant]:
    """All permissions that the cluster's bindings grant to a service account."""
    found: set[Grant] = set()
    for plural in ("rolebindings", "clusterrolebindings"):
        for binding in _listed(f"{API}/{plural}"):
            namespace = binding["metadata"].get("namespace", "")
            subjects = [(each["name"], each.get("namespace", namespace)) for each in binding.get("subjects") or ()]
            if (account, account_namespace) in subjects:
                found.update(grants_of(_rules(binding["roleRef"], namespace), namespace))
    return found


def _listed(path: str) -> list[Object]:
    return (kube.read(path) or {}).get("items", [])


def _rules(reference: Object, namespace: str) -> list[Object]:
    path = f"/namespaces/{namespace}/roles" if reference["kind"] == "Role" else "/clusterroles"
    return (kube.read(f"{API}{path}/{reference['name']}") or {}).get("rules") or []


def required_grant(request: Object) -> Grant:
    """The permission that a request requires."""
    target = request["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return Grant(
        request["verb"], target.get("apiGroup", ""), resource, target.get("name", ""), target.get("namespace", "")
    )


class Usage(NamedTuple):
    """The permissions that a user's requests required: those allowed and those denied."""

    allowed: set[Grant]
    denied: set[Grant]

    def unused(self, granted: Iterable[Grant]) -> set[tuple[str, ...]]:
        """The granted permissions that no request used, as verb, group and resource."""
        return {grant[:3] for grant in granted if not any(grant.covers(used) for used in self.allowed)}

    def exceeding(self, granted: Iterable[Grant]) -> set[Grant]:
        """The allowed requests that none of these permissions covers."""
        grants = list(granted)
        return {used for used in self.allowed if not any(grant.covers(used) for grant in grants)}

    def namespaces(self) -> set[str]:
        """The namespaces of tests in which the user wrote."""
        return {used.namespace for used in self.allowed if used.verb == "create" and used.namespace.startswith("test-")}


def _always(_: Object) -> bool:
    return True


def requests_by(audit: Audit, user: str, in_force: Callable[[Object], bool] = _always) -> Usage:
    """The permissions that a user's requests required.

    `in_force` gets every request of every user; it returns whether denials count from then on.
    """
    found, counts = Usage(set(), set()), True
    for request in audit.requests(b"memcached-operator"):
        counts = in_force(request)
        if request["user"]["username"] != user or "resource" not in request.get("objectRef", {}):
            continue
        if request["annotations"]["authorization.k8s.io/decision"] == "allow":
            found.allowed.add(required_grant(request))
        elif counts:
            found.denied.add(required_grant(request))
    return found


CHILDREN = ("deployments", "services", "poddisruptionbudgets", "networkpolicies")
"""The children of a Memcached."""

SLOT_CHILDREN = {"statefulsets": "slots", "configmaps": "slots-connection"}
"""The further children of the Memcached `slots`, and their names."""


def _proxy(namespace: str) -> Object:
    """A proxy of the Memcached `slots`, which is created later. It has a Service before."""
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "MemcachedProxy",
        "metadata": {"name": "front", "namespace": namespace},
        "spec": {"memcachedRef": {"name": "slots"}, "size": 1, "resources": SMALL},
    }


def exercise(controllers: str) -> None:
    """Let the controller use each of its permissions. `controllers`: the namespace of its pods.

    So the result does not depend on the other tests that have run on this cluster.
    """
    with kube.temporary_namespace() as namespace:
        kube.apply(memcached(namespace, size=1, resources=SMALL))
        kube.apply(appservice.appservice(namespace, ports=[{"port": 80}], resources=SMALL))
        kube.apply(_proxy(namespace))
        wait_until_ready(namespace)
        appservice.wait_until_ready(namespace)
        _exercise_monitors(namespace)
        _exercise_events(namespace)
        for limit, pods in ((1, "web"), (2, "worker")):
            clients = {"from": [{"podSelector": {"matchLabels": {"app": pods}}}]}
            budget = {"enabled": True, "maxUnavailable": limit}
            spec: Object = {"size": 2, "podDisruptionBudget": budget, "networkPolicy": clients, "resources": SMALL}
            kube.apply(memcached(namespace, containerPort=11211 + limit, **spec))
            eventually(lambda limit=limit: _budget(namespace) == limit, description="the budget is current")
            eventually(lambda clients=clients: _clients(namespace) == clients["from"], description="the policy is")
        _delete_former(namespace, "cache", dict.fromkeys(CHILDREN, "cache"))
        _restore(namespace, {"services": "app"})
        _restore(namespace, {"services": "front"})
        _exercise_slots(namespace)
        _exercise_updates(namespace)
        _exercise_conflicts(namespace)
    # The log has a watch when it ends.
    kubectl("delete", "pods", "-n", controllers, "-l", "app.kubernetes.io/component=controller-manager")


def _exercise_updates(namespace: str) -> None:
    """Let the controller resize, change and delete a pod."""
    slot: Object = {"size": 1, "identity": "Stable", "monitoring": {}}
    for memory, restarted in (("64Mi", 10), ("96Mi", 10), ("96Mi", 11)):
        rollout = {"restartedAt": f"2026-11-23T{restarted}:00:00Z"}
        kube.apply(memcached(namespace, "updated", cache={"memory": memory}, rollout=rollout, **slot))
        wait_until_ready(namespace, "updated", ROLLOUT)


def _exercise_events(namespace: str) -> None:
    """Let the controller find out that a Secret is missing."""
    kube.apply(memcached(namespace, "waiting", size=1, tls={"secretName": "missing"}, resources=SMALL))
    wait_until_degraded(namespace, "SecretUnavailable", "waiting", SECRET_REPORTED)
    kubectl("delete", "memcached", "waiting", "-n", namespace)


def _exercise_monitors(namespace: str) -> None:
    """Let the controller create, change, restore and delete both objects, while the cluster has their API."""
    crds = [monitor_crd(each) for each in (POD_MONITORS, PROMETHEUS_RULES)]
    for crd in crds:
        kube.apply(crd)
    try:
        for interval in ("1h", "2h"):
            monitoring = {"podMonitor": {"interval": interval}, "rules": {"labels": {"interval": interval}}}
            kube.apply(memcached(namespace, "monitored", size=1, monitoring=monitoring, resources=SMALL))
            eventually(lambda interval=interval: _interval(namespace) == interval, READY, "both objects are current")
        _restore(namespace, {each.plural: "monitored" for each in (POD_MONITORS, PROMETHEUS_RULES)})
        kube.apply(memcached(namespace, "monitored", size=1, monitoring={}, resources=SMALL))
        eventually(lambda: _interval(namespace) is None, description="both objects are deleted")
    finally:
        kubectl("delete", "crd", *(crd["metadata"]["name"] for crd in crds))


def _interval(namespace: str) -> object:
    """The interval that both objects have; None if neither exists."""
    monitor, rules = (kube.get(each.plural, namespace, "monitored") for each in (POD_MONITORS, PROMETHEUS_RULES))
    if not monitor or not rules:
        return None if monitor is rules else "only one exists"
    interval = monitor["spec"]["podMetricsEndpoints"][0]["interval"]
    return interval if rules["metadata"]["labels"]["interval"] == interval else "they differ"


def _exercise_slots(namespace: str) -> None:
    """Let the controller change, restore and delete the children of a Memcached with slots."""
    for size in (1, 2):
        kube.apply(memcached(namespace, "slots", identity="Stable", size=size, resources=SMALL))
        wait_until_ready(namespace, "slots")
    _delete_former(namespace, "slots", SLOT_CHILDREN)
    _restore(namespace, SLOT_CHILDREN)


def _restore(namespace: str, children: Mapping[str, str]) -> None:
    """Delete children, by plural and name, and wait until the controller has created them again."""
    for plural, name in children.items():
        uid = kube.must_get(plural, namespace, name)["metadata"]["uid"]
        kubectl("delete", plural, name, "-n", namespace, "--wait=false")
        key = (namespace, plural, name, uid)
        eventually(lambda key=key: _is_replaced(*key), description=f"{plural} {name} is restored")


def _exercise_conflicts(namespace: str) -> None:
    """Let the controller find each child's name taken by an object of another owner."""
    for owner, children in {"cache": dict.fromkeys(CHILDREN, "cache"), "slots": SLOT_CHILDREN}.items():
        for plural, name in children.items():
            kubectl("create", "-f", "-", stdin=_copy(kube.must_get(plural, namespace, name), owner, "taken"))
    for identity, size in (("Pooled", 2), ("Stable", 2)):
        kube.apply(memcached(namespace, "taken", identity=identity, size=size, networkPolicy={}, resources=SMALL))
        wait_until_degraded(namespace, "Conflict", "taken")
        kubectl("delete", "memcached", "taken", "-n", namespace)


def _is_replaced(namespace: str, plural: str, name: str, uid: str) -> bool:
    found = kube.get(plural, namespace, name)
    return found is not None and found["metadata"]["uid"] != uid


def _delete_former(namespace: str, owner: str, children: Mapping[str, str]) -> None:
    """Create a copy of each child, by plural and name, with another name; wait until the controller has deleted it.

    Another release may have created these.
    """
    uid = kube.must_get("memcacheds", namespace, owner)["metadata"]["uid"]
    for plural, name in children.items():
        child = kube.must_get(plural, namespace, name)
        assert child["metadata"]["ownerReferences"][0]["uid"] == uid
        former = _copy(child, name, "former")
        former["metadata"] |= {key: child["metadata"][key] for key in ("labels", "ownerReferences")}
        kubectl("create", "-f", "-", stdin=former)
    for plural in children:
        eventually(lambda p=plural: kube.get(p, namespace, "former") is None, description=f"the former {plural} goes")


def _copy(obj: Object, name: str, new: str) -> Object:
    """An object without labels, owner, status and pods of its own, with `new` instead of a part of its name."""
    meta = {"name": obj["metadata"]["name"].replace(name, new), "namespace": obj["metadata"]["namespace"]}
    found: Object = {**obj, "metadata": meta}
    found.pop("status", None)
    if "spec" in obj:
        found["spec"] = {key: value for key, value in obj["spec"].items() if not key.startswith("clusterIP")}
    if "replicas" in found.get("spec", {}):
        found["spec"]["replicas"] = 0
    return found


def _budget(namespace: str) -> object:
    found = kube.get("poddisruptionbudgets", namespace, "cache")
    return found and found["spec"]["maxUnavailable"]


def _clients(namespace: str) -> object:
    found = kube.get("networkpolicies", namespace, "cache")
    return found and found["spec"]["ingress"][0]["from"]


def token_of(account: str, namespace: str) -> str:
    """A token for the account."""
    return kubectl("create", "token", account, "-n", namespace).stdout.strip()


def denied(token: str, *words: str, stdin: Object | None = None) -> bool:
    """Whether one of our policies denies a kubectl command with this token; fails if RBAC denies it."""
    done = kubectl(f"--token={token}", *words, stdin=stdin, check=False)
    assert "cannot" not in done.stderr, done.stderr
    return done.returncode != 0 and "ValidatingAdmissionPolicy 'memcached-operator-" in done.stderr
