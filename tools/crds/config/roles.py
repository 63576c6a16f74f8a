"""Registered kinds → the controller's role, and the roles for users."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from crds.registered import Registered, children
from memcached_api.kind import Kind
from memcached_operator.kube.resource import EVENTS, PODS

READ: Final = ("get", "list", "watch")
CHANGE: Final = ("patch", "update")
EDIT: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
USERS: Final = {
    "admin": ("admin", (*EDIT, "deletecollection"), ("get", *CHANGE)),
    "editor": ("edit", EDIT, ("get", *CHANGE)),
    "viewer": ("view", READ, ("get",)),
}
"""The roles for users: the cluster's role that each is aggregated into, and its verbs for objects and for `/scale`."""


def manager_role(registered: Sequence[Registered]) -> dict[str, Any]:
    """The controller's permissions in the namespaces that it watches: the minimum. An unused rule is a defect."""
    rules = [rule for each in registered for rule in _own(each.kind)]
    rules += [_rule(each.group, each.plural, "create", "delete", "patch", *READ) for each in children(registered)]
    rules += [*_pods(registered), _rule(EVENTS.group, EVENTS.plural, "create", "list")]
    return _role("manager-role", {}, rules)


def _own(kind: Kind[Any]) -> Iterator[dict[str, Any]]:
    yield _rule(kind.group, kind.plural, *READ)
    yield _rule(kind.group, f"{kind.plural}/status", "patch")
    # Never requested: the API server requires this permission to set an owner reference that blocks deletion.
    yield _rule(kind.group, f"{kind.plural}/finalizers", "update")


def _pods(registered: Sequence[Registered]) -> Iterator[dict[str, Any]]:
    if not any(each.updates_pods for each in registered):
        yield _rule(PODS.group, PODS.plural, "list", "watch")
        return
    yield _rule(PODS.group, PODS.plural, "delete", "list", "patch", "watch")
    yield _rule(PODS.group, f"{PODS.plural}/resize", "patch")


def user_roles(kind: Kind[Any]) -> Iterator[dict[str, Any]]:
    """The roles for users, aggregated into the cluster's roles. The operator itself does not use them."""
    for name, (cluster_role, verbs, scale) in USERS.items():
        yield _role(
            f"{kind.name.lower()}-{name}-role",
            {f"rbac.authorization.k8s.io/aggregate-to-{cluster_role}": "true"},
            [
                _rule(kind.group, kind.plural, *verbs),
                _rule(kind.group, f"{kind.plural}/status", "get"),
                _rule(kind.group, f"{kind.plural}/scale", *scale),
            ],
        )


def _role(name: str, labels: dict[str, str], rules: list[dict[str, Any]]) -> dict[str, Any]:
    own = {"app.kubernetes.io/name": "memcached-operator", "app.kubernetes.io/managed-by": "kustomize"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": own | labels},
        "rules": rules,
    }


def _rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": sorted(verbs)}
