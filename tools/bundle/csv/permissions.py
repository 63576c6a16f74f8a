"""Converts roles to the permissions of a ClusterServiceVersion.

Every rule that is bound to the ServiceAccount of a Deployment, by a Role or a ClusterRole, becomes one of its
`permissions`, never of its `clusterPermissions`. From `permissions` OLM creates Roles in the watched
namespaces, or ClusterRoles if all are watched; `clusterPermissions` are cluster-wide in every install mode.
"""

from typing import Any, Final

from bundle.errors import BundleError
from bundle.objects import Object, Rendered, name_of

BINDINGS: Final = {"RoleBinding": "Role", "ClusterRoleBinding": "ClusterRole"}


def accounts(rendered: Rendered) -> list[str]:
    """The ServiceAccounts of the Deployments."""
    return sorted({each["spec"]["template"]["spec"]["serviceAccountName"] for each in rendered.of("Deployment")})


def permissions(rendered: Rendered) -> list[dict[str, Any]]:
    """One entry for each ServiceAccount, even without rules: OLM creates only accounts with an entry."""
    return [{"serviceAccountName": account, "rules": _rules(rendered, account)} for account in accounts(rendered)]


def _rules(rendered: Rendered, account: str) -> list[dict[str, Any]]:
    return [rule for role in bound_roles(rendered, account) for rule in role["rules"]]


def bound_roles(rendered: Rendered, account: str) -> list[Object]:
    """The roles of a ServiceAccount, ClusterRoles first. Raises BundleError if a bound role does not exist."""
    bindings = [each for each in rendered.of(*BINDINGS) if account in {who["name"] for who in each["subjects"]}]
    wanted = [(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings]
    roles = {(role["kind"], name_of(role)): role for role in rendered.of(*BINDINGS.values())}
    for kind, name in wanted:
        if (kind, name) not in roles:
            raise BundleError(f"a binding of {account} names the {kind} {name}, which is not in config/rbac")
    return [roles[key] for key in sorted(wanted)]
