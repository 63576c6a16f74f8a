"""A service account with all permissions that RBAC can grant, restricted only by the admission policies."""

import copy
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from integration.control_plane import NAMESPACES, ControlPlane, until
from memcached_operator.certificates.issuer import VALIDATING_WEBHOOKS
from memcached_operator.engine.writes.ownership import preparation_patch
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import JSON, JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object, Resource
from support import policies

Work = Callable[[ApiClient], Awaitable[object]]

ACCOUNT_NAMESPACE = "accounts"
"""The namespace of the service accounts."""
ACCOUNT = "operator"
"""The account that the policies are bound to."""
FOREIGN = "kube-system"
"""A namespace of Kubernetes."""
DRY_RUN = {"dryRun": "All"}
LAST_POLICY: Object = {
    "metadata": {"name": "last"},
    "spec": {
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ACCOUNT_NAMESPACE}},
            "resourceRules": [
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "apiVersions": ["v1"],
                    "resources": ["leases"],
                    "operations": ["CREATE"],
                }
            ],
        },
        "validations": [{"expression": "false"}],
    },
}
"""A policy that rejects Leases in ACCOUNT_NAMESPACE, which no other policy matches."""
LAST_BINDING: Object = {"metadata": {"name": "last"}, "spec": {"policyName": "last", "validationActions": ["Deny"]}}


@dataclass(frozen=True)
class Account(ControlPlane):
    """The control plane, accessed with the token of a ServiceAccount."""

    def denial(self, work: Work) -> str:
        """Send a request; return the message of the rule that denies it, or an empty string if it is allowed."""
        error = self._error(work)
        assert error is None or (error.code == 403 and "ValidatingAdmissionPolicy" in error.message), error
        return "" if error is None else error.message.partition(" denied request: ")[2]

    def _error(self, work: Work) -> ApiError | None:
        try:
            self.call(work)
        except ApiError as error:
            return error
        return None


def create_account(
    plane: ControlPlane,
    name: str,
    directory: Path,
    namespace: str = ACCOUNT_NAMESPACE,
    role: str = "cluster-admin",
    *,
    only_there: bool = False,
) -> Account:
    """Create a ServiceAccount with a ClusterRole, in all namespaces or only in its own.

    By default, RBAC allows it everything, so that every denial comes from a policy.
    """
    base = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    bindings = f"{rbac}/namespaces/{namespace}/rolebindings" if only_there else f"{rbac}/clusterrolebindings"
    binding = {
        "metadata": {"name": f"{namespace}-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }

    async def create(client: ApiClient) -> Object:
        await client.request("POST", base, {"metadata": {"name": name}})
        await client.request("POST", bindings, binding)
        return await client.request("POST", f"{base}/{name}/token", {"spec": {}})

    kubeconfig = yaml.safe_load(plane.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": plane.call(create)["status"]["token"]}
    file = directory / f"{name}.kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    return Account(file, plane.audit_log)


@contextmanager
def bound_policies(plane: ControlPlane) -> Generator[None]:
    """Create the namespace of the accounts and the policies, bound to ACCOUNT, until the block ends.

    An API server before 1.36 can end with "concurrent map read and map write" if it compiles a policy while it
    evaluates another one (kubernetes/kubernetes#135757). It compiles a policy again when the controller manager has
    written its status. So no request may match a policy before all are compiled for the last time.
    """
    plane.create(NAMESPACES, {"metadata": {"name": ACCOUNT_NAMESPACE}})
    objects = [(policies.POLICIES, each) for each in policies.policies()]
    objects += [(policies.BINDINGS, each) for each in policies.bindings(ACCOUNT_NAMESPACE, ACCOUNT)]
    _post(plane, objects)
    until(lambda: all(_has_status(plane, each) for each in policies.policies()))
    last = [(policies.POLICIES, LAST_POLICY), (policies.BINDINGS, LAST_BINDING)]
    _post(plane, last)
    until(lambda: _last_policy_is_in_effect(plane))
    objects += last
    try:
        yield
    finally:
        for path, obj in objects:
            own = f"{path}/{obj['metadata']['name']}"
            plane.call(lambda client, own=own: client.request("DELETE", own))
        plane.delete(Key(NAMESPACES, "", ACCOUNT_NAMESPACE))


def _post(plane: ControlPlane, objects: Iterable[tuple[str, Object]]) -> None:
    """Create objects, each at its path."""
    for path, obj in objects:
        plane.call(lambda client, path=path, obj=obj: client.request("POST", path, obj))


def _has_status(plane: ControlPlane, policy: Object) -> bool:
    """Whether the controller manager has written the status of a policy; it does so once."""
    path = f"{policies.POLICIES}/{policy['metadata']['name']}"
    found = plane.call(lambda client: client.request("GET", path))
    return found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]


def _last_policy_is_in_effect(plane: ControlPlane) -> bool:
    """Whether LAST_POLICY is in effect. The API server reads policies in their order, so all before it are compiled."""
    lease = {"metadata": {"name": "last", "namespace": ACCOUNT_NAMESPACE}, "spec": {}}
    try:
        plane.call(dry_run("POST", kinds.LEASES, lease))
    except ApiError as error:
        return "'last'" in error.message
    return False


def wait_until_in_effect(stolen_token: Account) -> None:
    """Wait until every policy is in effect."""
    assert forbidden().keys() == {each["metadata"]["name"] for each in policies.policies()}
    for work in forbidden().values():
        until(lambda work=work: stolen_token.denial(work))


def forbidden() -> dict[str, Work]:
    """A request that each policy denies, and no other one, by the name of the policy."""
    webhooks = {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": {"name": "any"},
    }
    named = {"metadata": {"name": "any", "namespace": ACCOUNT_NAMESPACE}}
    pod = {"serviceAccountName": ACCOUNT, "containers": [{"name": "main", "image": "example.com/app:1"}]}
    return {
        "children": dry_run("POST", kinds.DEPLOYMENTS, child(kinds.DEPLOYMENTS, "any") | named),
        "webhook-configurations": dry_run("POST", VALIDATING_WEBHOOKS, webhooks),
        "monitoring": dry_run(
            "POST", kinds.POD_MONITORS, merged(child(kinds.POD_MONITORS, "any"), {"spec": {"other": 1}})
        ),
        "secrets": dry_run("POST", kinds.SECRETS, named),
        "pods": dry_run("POST", kinds.PODS, {**named, "spec": pod}),
    }


def dry_run(method: str, resource: Resource, obj: Object, content_type: str = JSON, subresource: str = "") -> Work:
    """A dry run of a request for one object. A child may have changed since, so its resourceVersion is removed."""
    meta = obj["metadata"]
    if resource in CHILDREN:
        meta = {name: each for name, each in meta.items() if name != "resourceVersion"}
    path = resource.path(meta.get("namespace"), None if method == "POST" else meta["name"], subresource)
    params, body = DRY_RUN | {"fieldManager": "stolen-token"}, obj | {"metadata": meta}

    async def request(client: ApiClient) -> Object:
        if method != "PUT" or resource not in (
            kinds.POD_DISRUPTION_BUDGETS,
            kinds.POD_MONITORS,
            kinds.PROMETHEUS_RULES,
        ):
            return await client.request(method, path, body, content_type, params)

        def update(live: Object) -> Awaitable[Object]:
            current = {**body, "metadata": {**meta, "resourceVersion": live["metadata"]["resourceVersion"]}}
            return client.request(method, path, current, content_type, params)

        # An update of these kinds requires the current resourceVersion, which each write of a status changes.
        return await write_newest(client, path, update, 409)

    return request


async def write_newest(
    client: ApiClient, path: str, write: Callable[[Object], Awaitable[Object]], rejection: int
) -> Object:
    """Write what depends on the stored object, again if it is rejected because another controller has changed it."""
    live = await client.request("GET", path)
    while True:
        try:
            return await write(live)
        except ApiError as error:
            if error.code != rejection:
                raise
            seen, live = live, await client.request("GET", path)
            if live["metadata"]["resourceVersion"] == seen["metadata"]["resourceVersion"]:
                raise


def prepare(key: Key) -> Work:
    """A dry run of the patch that the controller sends before its first apply.

    Another controller may write between read and patch. That can change the order of `managedFields`, which the patch
    tests. The object is then read again, as the controller does.
    """
    path = key.resource.path(key.namespace, key.name)

    async def request(client: ApiClient) -> Object:
        def patch(live: Object) -> Awaitable[Object]:
            return client.request("PATCH", path, preparation_patch(live, live), JSON_PATCH, DRY_RUN)

        return await write_newest(client, path, patch, 422)

    return request


LABELS = {
    "app.kubernetes.io/name": "memcached",
    "app.kubernetes.io/instance": "child",
    "app.kubernetes.io/managed-by": "memcached-operator",
}


def owner(kind: str = "Memcached", api_version: str = "cache.example.com/v1", uid: str = "of-no-object") -> Object:
    """A controller reference."""
    return {"apiVersion": api_version, "kind": kind, "name": "child", "uid": uid, "controller": True}


_TEMPLATE: Object = {
    "metadata": {"labels": LABELS},
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "image": "example.com/app:1"}],
    },
}
_SELECTOR: Object = {"matchLabels": LABELS}
_WORKLOAD: Object = {"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}
_CLIENTS: Object = {"from": [{"podSelector": {}}], "ports": [{"port": 80, "protocol": "TCP"}]}
CHILDREN: dict[Resource, Object] = {
    kinds.DEPLOYMENTS: {"spec": _WORKLOAD},
    kinds.STATEFULSETS: {"spec": {**_WORKLOAD, "serviceName": "child"}},
    kinds.SERVICES: {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    kinds.CONFIG_MAPS: {"data": {"servers": "a:1"}},
    kinds.POD_DISRUPTION_BUDGETS: {
        "spec": {"maxUnavailable": 1, "selector": _SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    },
    kinds.NETWORK_POLICIES: {"spec": {"podSelector": _SELECTOR, "policyTypes": ["Ingress"], "ingress": [_CLIENTS]}},
    kinds.POD_MONITORS: {"spec": {"selector": _SELECTOR, "podMetricsEndpoints": [{"port": "metrics"}]}},
    kinds.PROMETHEUS_RULES: {"spec": {"groups": []}},
}
"""What each kind of child contains at least. A test may not change it."""


def child(resource: Resource, name: str, *owners: Object) -> Object:
    """The minimal child that the policies let the controller create, by default with an owner that does not exist."""
    meta: Object = {"name": own_name(resource, name), "namespace": ACCOUNT_NAMESPACE, "labels": LABELS}
    meta["ownerReferences"] = list(owners or (owner(),))
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **CHILDREN[resource]}


def own_name(resource: Resource, name: str) -> str:
    """The name of the child of `name`."""
    return f"{name}-connection" if resource == kinds.CONFIG_MAPS else name


def nested(path: str, value: Any) -> Object:
    """A value at a path: `nested("a.b", 1)` is `{"a": {"b": 1}}`."""
    name, _, rest = path.partition(".")
    return {name: nested(rest, value) if rest else value}


def merged(obj: Any, patch: Mapping[str, Any]) -> Any:
    """Apply a merge patch to a copy of an object; its only container is merged too."""
    found = copy.deepcopy(obj)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif name == "containers":
            found[name] = [merged(found[name][0], value[0])]
        else:
            found[name] = merged(found.get(name, {}), cast("Object", value)) if isinstance(value, dict) else value
    return found


def pod(path: str, value: Any) -> Object:
    """A patch of the pod template's spec; with an empty path, of several fields."""
    return nested(f"spec.template.spec.{path}".rstrip("."), value)


def container(path: str, value: Any) -> Object:
    """A patch of the pod template's container."""
    return pod("containers", [nested(path, value)])
