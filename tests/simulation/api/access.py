"""Permissions: Roles and ClusterRoles, and the admission plugin OwnerReferencesPermissionEnforcement."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memcached_operator.kube.resource import Object, Resource, nested_list
from simulation.api.errors import forbidden
from simulation.api.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, KINDS, ROLE_BINDINGS, ROLES
from simulation.api.storage import Storage

ACCOUNT = "system:serviceaccount:"


class Attributes(NamedTuple):
    """What a user wants to do."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def full_resource(self) -> str:
        """The resource with its subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Access:
    """Decides what users may do."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def check(self, user: str, wanted: Attributes) -> None:
        """Raise StatusError unless a user may do this."""
        if user and not self.allows(user, wanted):
            resource = Resource(wanted.group, "", "", wanted.resource)
            raise forbidden(resource, wanted.name, _problem(user, wanted))

    def allows(self, user: str, wanted: Attributes) -> bool:
        """Whether a rule permits a request."""
        return any(_permits(rule, wanted) for rule in self._rules(user, wanted.namespace))

    def _rules(self, user: str, namespace: str) -> Iterator[Object]:
        for binding in self._storage.of(CLUSTER_ROLE_BINDINGS).values():
            yield from self._bound(binding, user, "")
        if namespace:
            for key, binding in self._storage.of(ROLE_BINDINGS).items():
                if key.namespace == namespace:
                    yield from self._bound(binding, user, namespace)

    def _bound(self, binding: Object, user: str, namespace: str) -> Iterator[Object]:
        if not any(_is_subject(subject, user) for subject in nested_list(binding, "subjects")):
            return
        reference = binding["roleRef"]
        in_namespace = reference["kind"] == ROLES.kind
        roles = self._storage.of(ROLES if in_namespace else CLUSTER_ROLES)
        for key, role in roles.items():
            if key.name == reference["name"] and key.namespace == (namespace if in_namespace else ""):
                yield from role.get("rules") or ()

    def check_owners(self, user: str, wanted: Attributes, new: Object, old: Object | None) -> None:
        """Raise StatusError if a user adds owner references without the permissions that they need."""
        added, before = (
            nested_list(new, "metadata", "ownerReferences"),
            nested_list(old or {}, "metadata", "ownerReferences"),
        )
        if not user or added == before or (wanted.resource, wanted.subresource) == ("pods", "status"):
            return
        wanted = wanted._replace(name=new["metadata"]["name"])
        resource = Resource(wanted.group, "", "", wanted.resource)
        if old is not None and not self.allows(user, wanted._replace(verb="delete")):
            problem = "cannot set an ownerRef on a resource you can't delete: , <nil>"
            raise forbidden(resource, wanted.name, problem)
        blocking = {each["uid"] for each in before if each.get("blockOwnerDeletion")}
        for each in added:
            if each.get("blockOwnerDeletion") and each["uid"] not in blocking:
                self._check_owner(user, wanted, resource, each["apiVersion"], each["kind"], each["name"])

    def _check_owner(
        self, user: str, wanted: Attributes, resource: Resource, version: str, kind: str, name: str
    ) -> None:
        group = version.rpartition("/")[0]
        plural = next((each.plural for each in KINDS if (each.group, each.kind) == (group, kind)), "")
        namespaced = next((each.namespaced for each in KINDS.values() if each.resource.plural == plural), True)
        place = wanted.namespace if namespaced else ""
        if not self.allows(user, Attributes("update", group, plural, "finalizers", place, name)):
            problem = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
                ", <nil>"
            )
            raise forbidden(resource, wanted.name, problem)


def _is_subject(found: Mapping[str, Any], user: str) -> bool:
    namespace, _, name = user.removeprefix(ACCOUNT).partition(":")
    match found["kind"]:
        case "ServiceAccount":
            return user.startswith(ACCOUNT) and (found.get("namespace"), found["name"]) == (namespace, name)
        case "User":
            return found["name"] == user
        case _:
            groups = ["system:authenticated"]
            if user.startswith(ACCOUNT):
                groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
            return found["name"] in groups


def _permits(rule: Object, wanted: Attributes) -> bool:
    names = rule.get("resourceNames")
    resources = rule.get("resources", ())
    return (
        _has(rule.get("verbs", ()), wanted.verb)
        and _has(rule.get("apiGroups", ()), wanted.group)
        and (_has(resources, wanted.full_resource) or f"*/{wanted.subresource}" in resources)
        and (not names or wanted.name in names)
    )


def _has(values: Sequence[str], wanted: str) -> bool:
    return wanted in values or "*" in values


def _problem(user: str, wanted: Attributes) -> str:
    place = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    return f'User "{user}" cannot {wanted.verb} resource "{wanted.full_resource}" in API group "{wanted.group}" {place}'
