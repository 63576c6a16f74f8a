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
from memcached_operator.kube.client import APPLY_PATCH, JSON, JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object, Resource
from support import policies

Work = Callable[[ApiClient], Awaitable[object]]

ACCOUNT_NAMESPACE = "accounts"
"""The namespace of the service accounts."""
ACCOUNT = "operator"
"""The account that the policies are bound to."""
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
        "children": dry_run("POST", kinds.DEPLOYMENTS, deployment("any") | named),
        "webhook-configurations": dry_run("POST", VALIDATING_WEBHOOKS, webhooks),
        "monitoring": dry_run(
            "POST", kinds.POD_MONITORS, pod_monitor("any") | {"spec": {"selector": {"matchLabels": LABELS}, "other": 1}}
        ),
        "secrets": dry_run("POST", kinds.SECRETS, named),
        "pods": dry_run("POST", kinds.PODS, {**named, "spec": pod}),
    }


def dry_run(method: str, resource: Resource, obj: Object, content_type: str = JSON, subresource: str = "") -> Work:
    """A dry run of a request for one object. A child may have changed since, so its resourceVersion is removed."""
    meta = obj["metadata"]
    if resource in MINIMAL:
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


def metadata(name: str, *owners: Object) -> Object:
    """The metadata of a child, by default with an owner that does not exist."""
    return {
        "name": name,
        "namespace": ACCOUNT_NAMESPACE,
        "labels": LABELS,
        "ownerReferences": list(owners or (owner(),)),
    }


def deployment(name: str, *owners: Object) -> Object:
    """The minimal Deployment that the policies let the controller create."""
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "image": "example.com/app:1"}],
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name, *owners), "spec": spec}


def statefulset(name: str, *owners: Object) -> Object:
    """The minimal StatefulSet that the policies let the controller create."""
    found = deployment(name, *owners)
    return {**found, "kind": "StatefulSet", "spec": {**found["spec"], "serviceName": "child"}}


def config_map(name: str, *owners: Object) -> Object:
    """The minimal ConfigMap that the policies let the controller create."""
    meta = metadata(own_name(kinds.CONFIG_MAPS, name), *owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"servers": "a:1"}}


def own_name(resource: Resource, name: str) -> str:
    """The name of the child of `name`."""
    return f"{name}-connection" if resource == kinds.CONFIG_MAPS else name


def service(name: str, *owners: Object) -> Object:
    """The minimal Service that the policies let the controller create."""
    spec: Object = {"selector": LABELS, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, *owners), "spec": spec}


def budget(name: str, *owners: Object) -> Object:
    """The minimal PodDisruptionBudget that the policies let the controller create."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(name, *owners), "spec": spec}


def network_policy(name: str, *owners: Object) -> Object:
    """The minimal NetworkPolicy that the policies let the controller create."""
    rule: Object = {"from": [{"podSelector": {}}], "ports": [{"port": 80, "protocol": "TCP"}]}
    spec: Object = {"podSelector": {"matchLabels": LABELS}, "policyTypes": ["Ingress"], "ingress": [rule]}
    return {
        "apiVersion": kinds.NETWORK_POLICIES.api_version,
        "kind": "NetworkPolicy",
        "metadata": metadata(name, *owners),
        "spec": spec,
    }


def pod_monitor(name: str, *owners: Object) -> Object:
    """The minimal PodMonitor that the policies let the controller create."""
    spec = {"selector": {"matchLabels": LABELS}, "podMetricsEndpoints": [{"port": "metrics"}]}
    kind = {"apiVersion": kinds.POD_MONITORS.api_version, "kind": kinds.POD_MONITORS.kind}
    return {**kind, "metadata": metadata(name, *owners), "spec": spec}


def prometheus_rule(name: str, *owners: Object) -> Object:
    """The minimal PrometheusRule that the policies let the controller create."""
    kind = {"apiVersion": kinds.PROMETHEUS_RULES.api_version, "kind": kinds.PROMETHEUS_RULES.kind}
    return {**kind, "metadata": metadata(name, *owners), "spec": {"groups": []}}


MINIMAL = {
    kinds.DEPLOYMENTS: deployment,
    kinds.STATEFULSETS: statefulset,
    kinds.SERVICES: service,
    kinds.CONFIG_MAPS: config_map,
    kinds.POD_DISRUPTION_BUDGETS: budget,
    kinds.NETWORK_POLICIES: network_policy,
    kinds.POD_MONITORS: pod_monitor,
    kinds.PROMETHEUS_RULES: prometheus_rule,
}
"""The minimal child of each kind."""


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


def denials(stolen_token: Account, resource: Resource, live: Object, change: Object) -> dict[str, str]:
    """The denial of writing a change into a new or the live child, per operation; empty if allowed."""
    new = merged(MINIMAL[resource]("new"), change)
    operations = {
        "create": dry_run("POST", resource, new),
        "apply": dry_run("PATCH", resource, new, APPLY_PATCH),
        "update": dry_run("PUT", resource, merged(live, change)),
    }
    return {operation: stolen_token.denial(work) for operation, work in operations.items()}
