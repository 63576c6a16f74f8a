"""Problems of a cluster: quotas, limits, Pod Security, policies, namespaces and CRDs."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import yaml

from faults.campaigns.permissions import RECOVERY, check_rejection_rate, in_some_condition
from faults.case import Case, References, in_gate
from faults.esr import VICTIM, check_operator, check_quiet, wait_for_state
from faults.process import ROOT, supervised
from faults.sandbox import RBAC, READY_TIMEOUT, ROLES, Sandbox, wait_until
from faults.workloads import BY_NAME, OTHER_IMAGE, PORTS, cache
from integration.control_plane import CRDS, NAMESPACES
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.kube.client import MERGE_PATCH, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, Key, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support.lists import listed

REPORT_TIMEOUT = 30.0
"""Seconds until a problem is reported, on a busy machine."""
DURATION = 5.0
"""Seconds for which the restriction stays after that."""
REPLICASET_RETRY = 60.0
"""Seconds until the ReplicaSet controller retries, which doubles its delays."""
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
LIMITS = Resource("", "v1", "LimitRange", "limitranges")
POLICIES = Resource("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
)
ENFORCE = "pod-security.kubernetes.io/enforce"
MESSAGE = "caches are not allowed in this namespace"
"""Message of the admission policy."""
HOLD = "example.com/held"
RestrictionContext = Callable[[Sandbox], Any]
"""Creates a restriction as an asynchronous context manager."""


@dataclass(frozen=True)
class Restriction:
    """A restriction: the message that reports it, the kind and first spec of the object, the seconds to recover."""

    apply: RestrictionContext
    message: str
    resource: Resource = MEMCACHEDS
    first: Mapping[str, Any] | None = None
    recovery: float = RECOVERY


@asynccontextmanager
async def quota(sandbox: Sandbox, **hard: str) -> AsyncGenerator[None]:
    """A ResourceQuota. In the names of the limits, `_` stands for `.` and `__` for `/`."""
    named = {name.replace("__", "/").replace("_", "."): amount for name, amount in hard.items()}
    body = {"metadata": {"name": "quota"}, "spec": {"hard": named}}
    await sandbox.client.request("POST", QUOTAS.path(sandbox.namespace), body)

    async def poll() -> bool:
        live = await sandbox.get(QUOTAS, "quota") or {}
        return live.get("status", {}).get("hard") == live["spec"]["hard"]

    await wait_until(poll, READY_TIMEOUT, "the quota is in effect")
    yield
    await sandbox.delete(QUOTAS, "quota")


@asynccontextmanager
async def limits(sandbox: Sandbox, **of: Mapping[str, str]) -> AsyncGenerator[None]:
    """A LimitRange for containers."""
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", **of}]}}
    await sandbox.client.request("POST", LIMITS.path(sandbox.namespace), body)
    await asyncio.sleep(1)
    yield
    await sandbox.delete(LIMITS, "limits")


@asynccontextmanager
async def pod_security(sandbox: Sandbox, level: str) -> AsyncGenerator[None]:
    """The namespace enforces a level of Pod Security."""
    await _label(sandbox, {ENFORCE: level})
    yield
    await _label(sandbox, {ENFORCE: None})


async def _label(sandbox: Sandbox, labels: Mapping[str, str | None]) -> None:
    patch = {"metadata": {"labels": labels}}
    await sandbox.client.request("PATCH", NAMESPACES.path(None, sandbox.namespace), patch, MERGE_PATCH)


@asynccontextmanager
async def policy(sandbox: Sandbox, group: str, resource: str, operations: Sequence[str]) -> AsyncGenerator[None]:
    """A policy that denies these operations in the namespace, and ConfigMaps, to detect that it is in effect."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": list(operations)},
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]},
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": sandbox.namespace}}
    meta = {"name": f"{sandbox.namespace}.example.com"}
    validation = {"expression": "false", "message": MESSAGE}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"namespaceSelector": here, "resourceRules": rules},
        "validations": [validation],
    }
    binding = {"policyName": meta["name"], "validationActions": ["Deny"]}
    await sandbox.client.request("POST", POLICIES.path(), {"metadata": meta, "spec": spec})
    await sandbox.client.request("POST", BINDINGS.path(), {"metadata": meta, "spec": binding})
    try:
        await wait_until(partial(_is_denied, sandbox, wanted=True), READY_TIMEOUT, "the policy is in effect")
        yield
    finally:
        for kind in (BINDINGS, POLICIES):
            await sandbox.client.request("DELETE", kind.path(None, meta["name"]))
    await wait_until(partial(_is_denied, sandbox, wanted=False), READY_TIMEOUT, "the policy is deleted")


async def _is_denied(sandbox: Sandbox, wanted: bool) -> bool:
    body = {"metadata": {"name": "dry-run"}}
    try:
        await sandbox.client.request("POST", CONFIG_MAPS.path(sandbox.namespace), body, params={"dryRun": "All"})
    except ApiError as error:
        return (MESSAGE in error.message) is wanted
    return not wanted


async def restricted(sandbox: Sandbox, references: References, restriction: Restriction) -> None:
    """A restriction exists when an object is created (or changed, with a first spec); it is reported, then removed."""
    expected = await references.of(BY_NAME["create"])
    since = time.monotonic()
    await sandbox.start()
    if restriction.first is not None:
        await sandbox.create_ready(restriction.resource, VICTIM, restriction.first)
    last = cache(size=2, **(PORTS if restriction.resource == APPSERVICES else {}))
    async with restriction.apply(sandbox):
        if restriction.first is not None:
            await sandbox.change(restriction.resource, VICTIM, restriction.first, last)
        else:
            await sandbox.create(restriction.resource, VICTIM, last)
        await wait_until(
            partial(_is_reported, sandbox, restriction), REPORT_TIMEOUT, f"{restriction.message!r} is reported"
        )
        await asyncio.sleep(DURATION)
        check_rejection_rate(sandbox, since)
    await sandbox.wait_ready(restriction.resource, VICTIM, restriction.recovery + sandbox.settings.sync_period)
    if restriction.resource == MEMCACHEDS:
        await wait_for_state(sandbox, MEMCACHEDS, expected, RECOVERY, loose=True)
    else:
        await asyncio.sleep(PROGRESS_PERIOD)
    await check_quiet(sandbox)
    check_operator(sandbox)


async def _is_reported(sandbox: Sandbox, restriction: Restriction) -> bool:
    if restriction.apply in OF_STATUS:
        return restriction.message in sandbox.operator.log_text()
    return await in_some_condition(sandbox, restriction.message)


async def unaffected(sandbox: Sandbox, references: References, apply: RestrictionContext, resource: Resource) -> None:
    """A restriction does not affect an object: it is created and changed normally, without repeated writes."""
    await sandbox.start()
    async with apply(sandbox):
        await sandbox.create_ready(resource, VICTIM, cache(size=1))
        await sandbox.change(resource, VICTIM, {}, {"size": 2, "image": OTHER_IMAGE})
        await sandbox.wait_ready(resource, VICTIM)
        await check_quiet(sandbox)
    await check_quiet(sandbox)
    check_operator(sandbox)


STATUS_POLICY = partial(policy, group="cache.example.com", resource="memcacheds/status", operations=("UPDATE",))
OF_STATUS = (STATUS_POLICY,)
"""Restrictions that no status can report, because the status cannot be written: the log reports them."""
LITTLE_MEMORY = {"memory": "16Mi"}
RESTRICTIONS: dict[str, Restriction] = {
    "quota/deployments": Restriction(partial(quota, count__deployments_apps="0"), "exceeded quota: quota"),
    "quota/services": Restriction(partial(quota, services="0"), "exceeded quota: quota"),
    "quota/node-ports": Restriction(partial(quota, services_nodeports="0"), "exceeded quota: quota", APPSERVICES),
    "quota/pods": Restriction(partial(quota, pods="0"), "exceeded quota: quota", recovery=REPLICASET_RETRY),
    "quota/memory": Restriction(
        partial(quota, requests_memory="10Mi"), "exceeded quota: quota", recovery=REPLICASET_RETRY
    ),
    "quota/cpu-not-set": Restriction(
        partial(quota, limits_cpu="9"), "must specify limits.cpu", recovery=REPLICASET_RETRY
    ),
    "quota/scale-up": Restriction(
        partial(quota, pods="1"), "exceeded quota: quota", first=cache(size=1), recovery=REPLICASET_RETRY
    ),
    "limits/max": Restriction(
        partial(limits, max=LITTLE_MEMORY), "maximum memory usage per Container", recovery=REPLICASET_RETRY
    ),
    "limits/min": Restriction(
        partial(limits, min={"memory": "8Gi"}), "minimum memory usage per Container", recovery=REPLICASET_RETRY
    ),
    "pod-security/restricted": Restriction(
        partial(pod_security, level="restricted"), "violates PodSecurity", APPSERVICES, recovery=REPLICASET_RETRY
    ),
    "pod-security/restricted-later": Restriction(
        partial(pod_security, level="restricted"),
        "violates PodSecurity",
        APPSERVICES,
        {"image": OTHER_IMAGE, "size": 2, **PORTS},
        recovery=REPLICASET_RETRY,
    ),
    "policy/deployments-create": Restriction(
        partial(policy, group="apps", resource="deployments", operations=("CREATE",)), MESSAGE
    ),
    "policy/deployments-update": Restriction(
        partial(policy, group="apps", resource="deployments", operations=("UPDATE",)), MESSAGE, first=cache(size=1)
    ),
    "policy/services-create": Restriction(
        partial(policy, group="", resource="services", operations=("CREATE",)), MESSAGE
    ),
    "policy/pods-create": Restriction(
        partial(policy, group="", resource="pods", operations=("CREATE",)), MESSAGE, recovery=REPLICASET_RETRY
    ),
    "policy/status": Restriction(STATUS_POLICY, MESSAGE),
}
UNAFFECTED: dict[str, tuple[RestrictionContext, Resource]] = {
    "limits/defaults": (partial(limits, default={"cpu": "1", "memory": "1Gi"}), APPSERVICES),
    "limits/defaults-memcached": (partial(limits, default={"cpu": "1", "memory": "1Gi"}), MEMCACHEDS),
    "pod-security/restricted-memcached": (partial(pod_security, level="restricted"), MEMCACHEDS),
    "pod-security/baseline": (partial(pod_security, level="baseline"), APPSERVICES),
    "policy/events": (partial(policy, group="", resource="events", operations=("CREATE",)), MEMCACHEDS),
}


@asynccontextmanager
async def two_namespaces(sandbox: Sandbox, references: References) -> AsyncGenerator[str]:
    """The operator works in a second namespace too, with cluster-wide permissions. Returns the namespace's name."""
    second = f"{sandbox.namespace}-b"
    meta = {"name": f"{sandbox.namespace}-both"}
    account = {"kind": "ServiceAccount", "name": "operator", "namespace": sandbox.namespace}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": meta["name"]}
    base = f"/apis/{RBAC}/v1"
    await sandbox.client.request("POST", f"{base}/clusterroles", {"metadata": meta, "rules": ROLES["role"]})
    binding = {"metadata": meta, "roleRef": role, "subjects": [account]}
    await sandbox.client.request("POST", f"{base}/clusterrolebindings", binding)
    both = f"--watch-namespaces={sandbox.namespace},{second}"
    settings = replace(sandbox.settings, arguments=(*sandbox.settings.arguments, both))
    try:
        async with supervised(
            references.plane.operator(sandbox.namespace, sandbox.address, settings, "both")
        ) as operator:
            sandbox.operator, sandbox.proxy.kill = operator, operator.kill
            yield second
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            await sandbox.client.request("DELETE", f"{base}/{kind}/{meta['name']}")


async def namespace_deleted(sandbox: Sandbox, references: References, finalizer: bool) -> None:
    """A namespace is deleted with all objects and created again. `finalizer`: a finalizer delays the deletion."""
    expected = await references.of(BY_NAME["create"])
    async with two_namespaces(sandbox, references) as second:
        await _create_namespace(sandbox, second)
        await sandbox.start()
        await populate(sandbox, second)
        if finalizer:
            body = {"metadata": {"name": "holder", "finalizers": [HOLD]}}
            await sandbox.client.request("POST", CONFIG_MAPS.path(second), body)
        since = time.monotonic()
        await sandbox.client.request("DELETE", NAMESPACES.path(None, second))
        # The other namespace is not affected.
        await sandbox.create(MEMCACHEDS, VICTIM, cache(size=2))
        await wait_for_state(sandbox, MEMCACHEDS, expected, READY_TIMEOUT, loose=True)
        if finalizer:
            await asyncio.sleep(DURATION)
            await wait_until(
                partial(_empty, sandbox, second), READY_TIMEOUT, "the objects of the namespace are deleted"
            )
            patch = {"metadata": {"finalizers": None}}
            await sandbox.client.request("PATCH", CONFIG_MAPS.path(second, "holder"), patch, MERGE_PATCH)
        await wait_until(partial(_no_namespace, sandbox, second), 2 * READY_TIMEOUT, "the namespace is deleted")
        check_rejection_rate(sandbox, since)
        await check_quiet(sandbox)
        await _check_namespace(sandbox, second)


async def namespace_created_later(sandbox: Sandbox, references: References) -> None:
    """The operator watches a namespace that does not exist yet."""
    async with two_namespaces(sandbox, references) as second:
        await sandbox.start()
        await asyncio.sleep(DURATION)
        await _check_namespace(sandbox, second)


async def _check_namespace(sandbox: Sandbox, second: str) -> None:
    """Create the namespace, check that the operator works in it, and delete it."""
    await _create_namespace(sandbox, second)
    await populate(sandbox, second)
    await check_quiet(sandbox)
    check_operator(sandbox)
    await sandbox.client.request("DELETE", NAMESPACES.path(None, second))


async def _create_namespace(sandbox: Sandbox, namespace: str) -> None:
    await sandbox.client.request("POST", NAMESPACES.path(), {"metadata": {"name": namespace}})


async def populate(sandbox: Sandbox, namespace: str) -> None:
    """Create objects of both kinds in another namespace, and wait until they are ready."""
    there = replace(sandbox, namespace=namespace)
    for number in range(3):
        for resource in (MEMCACHEDS, APPSERVICES):
            name = f"{resource.kind.lower()}-{number}"
            await there.create(resource, name, cache(size=2))
    for number in range(3):
        for resource in (MEMCACHEDS, APPSERVICES):
            await there.wait_ready(resource, f"{resource.kind.lower()}-{number}")


async def _empty(sandbox: Sandbox, namespace: str) -> bool:
    lists = [await listed(sandbox.client, each, namespace) for each in (MEMCACHEDS, APPSERVICES)]
    return not any(list(items) for items, _ in lists)


async def _no_namespace(sandbox: Sandbox, namespace: str) -> bool:
    return await sandbox.client.get(Key(NAMESPACES, "", namespace)) is None


async def crds_deleted(sandbox: Sandbox, references: References, deleted: Sequence[Resource], absent: bool) -> None:
    """CustomResourceDefinitions are deleted with all objects, and created again. `absent`: already before the start."""
    del references
    remaining = [each for each in (MEMCACHEDS, APPSERVICES) if each not in deleted]
    if not absent:
        await _create_first(sandbox)
    since = time.monotonic()
    try:
        for resource in deleted:
            await _delete_crd(sandbox, resource)
        if absent:
            sandbox.operator.start()
            await wait_until(partial(_missing_crd_reported, sandbox), READY_TIMEOUT, "the log reports the missing CRD")
        for resource in remaining if not absent else ():
            await sandbox.change(resource, f"first-{resource.plural}", {}, {"size": 3})
            await sandbox.wait_ready(resource, f"first-{resource.plural}")
        await asyncio.sleep(DURATION)
        check_rejection_rate(sandbox, since)
    finally:
        for resource in deleted:
            await _install(sandbox, resource)
    for resource in deleted if not absent else (MEMCACHEDS, APPSERVICES):
        await sandbox.create_ready(resource, f"then-{resource.plural}", cache(size=2))
    await check_quiet(sandbox)
    check_operator(sandbox)


async def _create_first(sandbox: Sandbox) -> None:
    await sandbox.start()
    for resource in (MEMCACHEDS, APPSERVICES):
        await sandbox.create_ready(resource, f"first-{resource.plural}", cache(size=2))


async def _missing_crd_reported(sandbox: Sandbox) -> bool:
    return "the resource is not served; install the CRDs" in sandbox.operator.log_text()


async def _delete_crd(sandbox: Sandbox, resource: Resource) -> None:
    path = CRDS.path(None, f"{resource.plural}.{resource.group}")
    await sandbox.client.request("DELETE", path)

    async def poll() -> bool:
        try:
            await sandbox.client.request("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return True
        return False

    await wait_until(poll, 2 * READY_TIMEOUT, f"the CRD of {resource.plural} is deleted")


async def _install(sandbox: Sandbox, resource: Resource) -> None:
    crd = yaml.safe_load((ROOT / f"config/crd/bases/{resource.group}_{resource.plural}.yaml").read_text())
    await sandbox.client.request("POST", CRDS.path(), crd)

    async def poll() -> bool:
        with suppress(ApiError):
            await listed(sandbox.client, resource, sandbox.namespace)
            return True
        return False

    await wait_until(poll, READY_TIMEOUT, f"{resource.plural} are served")


KINDS: dict[str, tuple[Resource, ...]] = {
    "memcacheds": (MEMCACHEDS,),
    "appservices": (APPSERVICES,),
    "both": (MEMCACHEDS, APPSERVICES),
}


def cases() -> list[Case]:
    """All cases. Those that delete CRDs run alone, because the other cases have objects of these kinds."""
    runs: dict[str, Callable[..., Awaitable[None]]] = {
        name: partial(restricted, restriction=restriction) for name, restriction in RESTRICTIONS.items()
    }
    runs |= {
        name: partial(unaffected, apply=apply, resource=resource) for name, (apply, resource) in UNAFFECTED.items()
    }
    runs |= {
        "namespace/recreated": partial(namespace_deleted, finalizer=False),
        "namespace/terminating": partial(namespace_deleted, finalizer=True),
        "namespace/created-later": namespace_created_later,
    }
    found = [Case(f"cluster/{name}", run) for name, run in runs.items()]
    for name, deleted in KINDS.items():
        for way, absent in (("recreated", False), ("created-later", True)):
            run = partial(crds_deleted, deleted=deleted, absent=absent)
            found.append(Case(f"cluster/crd/{name}-{way}", run, alone=True))
    return in_gate(found, "cluster/quota/deployments", "cluster/policy/deployments-update")
