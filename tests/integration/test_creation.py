"""Pods that cannot be created, with the controllers of Kubernetes: each message, and its remedy as it is written."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.findings import creation
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from support.draining import condition

QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
LIMITS = Resource("", "v1", "LimitRange", "limitranges")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
PRIORITIES = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses")
ADMISSION = ("admissionregistration.k8s.io", "v1")
POLICIES = Resource(*ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
BINDINGS = Resource(*ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
RUNTIMES = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
KINDS = (memcached(Images("example.com/memcached:1")), appservice())
SMALL: Object = {"resources": {"requests": {"memory": "128Mi"}, "limits": {"memory": "128Mi"}}}
LARGE: Object = {"resources": {"requests": {"memory": "512Mi"}, "limits": {"memory": "512Mi"}}}

Remedy = Callable[[ApiClient, str], Awaitable[Any]]


def obj(resource: Resource, name: str, namespace: str = "", **content: Any) -> Object:
    """An object."""
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **content}


async def make(client: ApiClient, resource: Resource, found: Object) -> None:
    """Create an object."""
    await client.request("POST", resource.path(found["metadata"].get("namespace")), found)


async def remove(client: ApiClient, key: Key) -> None:
    """Delete an object at once."""
    await client.request("DELETE", key.resource.path(key.namespace, key.name), {"gracePeriodSeconds": 0})


def with_pod(**spec: Any) -> Object:
    """The part of a spec with these fields of the pod template."""
    return {"podTemplate": {"spec": spec}}


async def change(client: ApiClient, namespace: str, *, resource: Resource, name: str, spec: Object) -> None:
    """Change the spec of an object."""
    await patch(client, Key(resource, namespace, name), {"spec": spec})


@dataclass(frozen=True)
class Case:
    """A spec whose pods cannot be created, what the status reports, and the remedy in the message."""

    spec: Object
    text: str
    remedy: Remedy
    reason: str = "ApplyFailed"
    identity: str = "Stable"


CASES: dict[str, Case] = {
    "account": Case(
        with_pod(serviceAccountName="nope"),
        'serviceaccount "nope" not found; create ServiceAccount nope in this namespace',
        lambda client, namespace: make(client, ACCOUNTS, obj(ACCOUNTS, "nope", namespace)),
    ),
    "priority": Case(
        with_pod(priorityClassName="nope"),
        "no PriorityClass with name nope was found; create PriorityClass nope, "
        "or correct spec.podTemplate.spec.priorityClassName",
        partial(change, resource=MEMCACHEDS, name="priority", spec=with_pod(priorityClassName=None)),
    ),
    "runtime": Case(
        with_pod(runtimeClassName="nope"),
        'RuntimeClass "nope" not found; create RuntimeClass nope',
        lambda client, _: make(client, RUNTIMES, obj(RUNTIMES, "nope", handler="runc")),
    ),
    "quota": Case(
        with_pod(priorityClassName="system-node-critical"),
        "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0; raise ResourceQuota none",
        partial(change, resource=QUOTAS, name="none", spec={"hard": {"pods": "9"}}),
    ),
    "limit": Case(
        with_pod(priorityClassName="system-cluster-critical"),
        "failed quota: cpu: must specify limits.cpu for: memcached; set what it names in spec.resources",
        partial(change, resource=MEMCACHEDS, name="limit", spec={"resources": {"limits": {"cpu": "1"}}}),
    ),
    "range": Case(
        LARGE,
        "maximum memory usage per Container is 256Mi, but limit is 512Mi; change the LimitRange",
        partial(
            change, resource=LIMITS, name="small", spec={"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}
        ),
    ),
    "default": Case(
        {"resources": {"requests": {"memory": "128Mi", "ephemeral-storage": "3Mi"}, "limits": {"memory": "128Mi"}}},
        "must be less than or equal to ephemeral-storage limit of 2Mi; a LimitRange of this namespace sets a default "
        "limit below the request: set spec.resources.limits",
        partial(
            change, resource=MEMCACHEDS, name="default", spec={"resources": {"limits": {"ephemeral-storage": "3Mi"}}}
        ),
    ),
    "label": Case(
        with_pod(priorityClassName="labeled"),
        "denied request: missing required label team; add what it requires to spec.podTemplate.metadata, or change the",
        partial(
            change, resource=MEMCACHEDS, name="label", spec={"podTemplate": {"metadata": {"labels": {"team": "a"}}}}
        ),
    ),
    "pooled": Case(
        LARGE,
        "maximum memory usage per Container is 256Mi, but limit is 512Mi; change the LimitRange",
        partial(change, resource=MEMCACHEDS, name="pooled", spec=SMALL),
        identity="Pooled",
    ),
    "taken": Case(
        {},
        "Pod taken-0 has the name of a slot, and is not managed by this operator. The pod is not modified. Delete it: "
        "kubectl delete pod --wait=false -n {} taken-0",
        lambda client, namespace: remove(client, Key(PODS, namespace, "taken-0")),
        reason="Conflict",
    ),
}


async def deny(client: ApiClient, namespace: str, verb: str, condition: str, message: str) -> None:
    """Create a policy with the name of the namespace, which rejects pods of the namespace. Wait until it does."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": [verb], "resources": ["pods"]}]
    validation = {"expression": f"!(request.dryRun || {condition})", "message": message}
    policy = {"matchConstraints": {"resourceRules": rules}, "validations": [validation]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here}
    await make(client, POLICIES, obj(POLICIES, namespace, spec=policy))
    await make(client, BINDINGS, obj(BINDINGS, namespace, spec=binding))
    probe = obj(PODS, "probe", namespace, spec={"containers": [{"name": "c", "image": "example.com/other:1"}]})
    if verb == "DELETE":
        await make(client, PODS, probe)

    async def denied() -> bool:
        path = PODS.path(namespace) if verb == "CREATE" else PODS.path(namespace, "probe")
        try:
            if verb == "CREATE":
                await client.request("POST", path, probe, params={"dryRun": "All"})
            else:
                await client.request("DELETE", path, {"dryRun": ["All"]})
        except ApiError as error:
            return message in error.message
        return False

    await eventually(denied)
    if verb == "DELETE":
        await remove(client, Key(PODS, namespace, "probe"))


async def allow(client: ApiClient, namespace: str) -> None:
    """Delete the policy of the namespace."""
    for resource in (BINDINGS, POLICIES):
        if await client.get(Key(resource, "", namespace)):
            await client.request("DELETE", resource.path(None, namespace))


async def prepare(client: ApiClient, namespace: str) -> None:
    """Create what makes the API server reject pods. The quotas count only the pods of one case."""
    for name, hard, scope in (
        ("none", {"pods": "0"}, "system-node-critical"),
        ("cpu", {"limits.cpu": "9"}, "system-cluster-critical"),
    ):
        selector = {"scopeName": "PriorityClass", "operator": "In", "values": [scope]}
        spec = {"hard": hard, "scopeSelector": {"matchExpressions": [selector]}}
        await make(client, QUOTAS, obj(QUOTAS, name, namespace, spec=spec))
    labels = (
        "object.spec.?priorityClassName.orValue('') == 'labeled' && !('team' in object.metadata.?labels.orValue({}))"
    )
    await deny(client, namespace, "CREATE", labels, "missing required label team")
    await make(client, PRIORITIES, obj(PRIORITIES, "labeled", value=1))
    limits = [{"type": "Container", "max": {"memory": "256Mi"}, "default": {"ephemeral-storage": "2Mi"}}]
    await make(client, LIMITS, obj(LIMITS, "small", namespace, spec={"limits": limits}))
    container = {"name": "c", "image": "example.com/other:1"}
    await make(client, PODS, obj(PODS, "taken-0", namespace, spec={"containers": [container]}))


async def reported(client: ApiClient, key: Key, reason: str, text: str) -> bool:
    """Whether Degraded has the reason and the text."""
    degraded = condition(await client.get(key) or {}, "Degraded")
    return degraded.get("reason") == reason and text in degraded.get("message", "")


def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and try again every second."""
    for name in ("MAX_PERIOD", "RETRY_PERIOD"):
        monkeypatch.setattr(creation, name, 1.0)
    monkeypatch.setattr("memcached_operator.engine.events.reader.PAUSE", 1.0)


def test_each_cause_is_reported_until_its_remedy_is_applied(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasten(monkeypatch)

    async def scenario(client: ApiClient) -> None:
        await prepare(client, namespace)
        for name, case in CASES.items():
            await create(client, cache(namespace, name, size=1, identity=case.identity, **case.spec))
        for name, case in CASES.items():
            key = Key(MEMCACHEDS, namespace, name)
            await eventually(partial(reported, client, key, case.reason, case.text.format(namespace)))
        for case in CASES.values():
            await case.remedy(client, namespace)
        for name in CASES:
            found = await wait_until_ready(client, namespace, name)
            assert condition(found, "Degraded")["message"] == "All components are healthy"

    try:
        run_operator(plane, (namespace,), scenario)
    finally:
        plane.call(lambda client: allow(client, namespace))
        for resource, name in ((RUNTIMES, "nope"), (PRIORITIES, "labeled")):
            if plane.get(Key(resource, "", name)):
                plane.delete(Key(resource, "", name))


def test_pods_of_a_scale_down_that_may_not_be_deleted(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says so for each type of workload, and each remedy ends the problem."""
    hasten(monkeypatch)
    slots, pool, app = (
        Key(MEMCACHEDS, namespace, "slots"),
        Key(MEMCACHEDS, namespace, "pool"),
        Key(APPSERVICES, namespace, "app"),
    )

    async def scale(client: ApiClient, size: int) -> None:
        for key in (slots, pool, app):
            await patch(client, key, {"spec": {"size": size}})

    async def kept(client: ApiClient) -> None:
        await scale(client, 1)
        for key in (slots, pool, app):
            await eventually(partial(reported, client, key, "ApplyFailed", "Pods cannot be deleted: pods "))
            await eventually(
                partial(reported, client, key, "ApplyFailed", "denied request: pods are kept; correct the")
            )
            assert "2 of 1" not in str((await client.get(key) or {})["status"]["conditions"])

    async def ready(client: ApiClient) -> None:
        for key in (slots, pool, app):
            await eventually(partial(reported, client, key, "AsExpected", "All components are healthy"))

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, "slots", size=2, identity="Stable"))
        await create(client, cache(namespace, "pool", size=2))
        await make(
            client, APPSERVICES, obj(APPSERVICES, "app", namespace, spec={"size": 2, "image": "example.com/a:1"})
        )
        await ready(client)
        await deny(client, namespace, "DELETE", "request.userInfo.username.contains('controller')", "pods are kept")
        await kept(client)
        await scale(client, 2)
        await ready(client)
        await kept(client)
        await allow(client, namespace)
        await ready(client)

    try:
        run_operator(plane, (namespace,), scenario, kinds=KINDS)
    finally:
        plane.call(lambda client: allow(client, namespace))


def test_rollout_continues_without_the_additional_pod_that_a_quota_rejects(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fields of the remedy together, because admission has set `maxUnavailable` to 0."""
    hasten(monkeypatch)
    key = Key(MEMCACHEDS, namespace, "cache")

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=2, rollout={"maxSurge": 1, "maxUnavailable": 0}))
        await wait_until_ready(client, namespace)
        await make(client, QUOTAS, obj(QUOTAS, "q", namespace, spec={"hard": {"pods": "2"}}))
        await patch(client, key, {"spec": {"image": "example.com/memcached:2"}})
        text = "limited: pods=2; set spec.rollout.maxSurge to 0 and spec.rollout.maxUnavailable to 1, so that one pod"
        await eventually(partial(reported, client, key, "ApplyFailed", text))
        await patch(client, key, {"spec": {"rollout": {"maxSurge": 0, "maxUnavailable": 1}}})
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)


def test_paused_deployment_reports_the_cause_and_no_old_one(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its condition is not updated while it is paused."""
    hasten(monkeypatch)
    key, workload = Key(APPSERVICES, namespace, "app"), Key(DEPLOYMENTS, namespace, "app")

    async def scenario(client: ApiClient) -> None:
        await make(
            client, APPSERVICES, obj(APPSERVICES, "app", namespace, spec={"size": 1, "image": "example.com/app:1"})
        )
        await wait_until_ready(client, namespace, "app", APPSERVICES)
        await make(client, QUOTAS, obj(QUOTAS, "q", namespace, spec={"hard": {"pods": "1"}}))
        for size, paused_before in ((2, True), (3, False)):
            await patch(client, workload, {"spec": {"paused": paused_before}})
            await patch(client, key, {"spec": {"size": size}})
            await eventually(partial(reported, client, key, "ApplyFailed", f"limited: pods={size - 1}; raise"))
            await patch(client, workload, {"spec": {"paused": True}})
            await patch(client, Key(QUOTAS, namespace, "q"), {"spec": {"hard": {"pods": str(size)}}})
            await eventually(partial(reported, client, key, "AsExpected", "All components are healthy"))

    run_operator(plane, (namespace,), scenario, kinds=KINDS)
