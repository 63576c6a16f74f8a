"""T12, second part: what surrounds the objects is refused, limited, ends and comes back."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import yaml

from faults.campaigns.permissions import RECOVERY, refused_in_rate, told
from faults.case import Case, References
from faults.esr import VICTIM, calm, quiet, reached
from faults.process import ROOT, kept
from faults.stage import NORMAL, RBAC, ROLES, Stage, until
from faults.workloads import BY_NAME, OTHER_IMAGE, PORTS, cache
from integration.control_plane import CRDS, NAMESPACES
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import MERGE_PATCH, ApiError
from memcached_operator.kube.resource import Key, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.status.conditions import PROGRESS_PERIOD

TELLING = 30.0
"""Seconds until a user is told, on a busy machine."""
LASTS = 5.0
"""Seconds that something stands in the way after that."""
BACKING_OFF = 60.0
"""Seconds until the controller of ReplicaSets tries again what was refused for so long: it doubles its pauses."""
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
LIMITS = Resource("", "v1", "LimitRange", "limitranges")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
POLICIES = Resource("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
)
ENFORCE = "pod-security.kubernetes.io/enforce"
NO = "this company keeps its caches elsewhere"
"""What a policy says."""
HOLD = "example.com/held"
Around = Callable[[Stage], Any]
"""Puts something around the objects, as an asynchronous context manager."""


@dataclass(frozen=True)
class Obstacle:
    """Something that stands in the way; of what, what is told of it, and how long it takes to heal, in seconds."""

    around: Around
    says: str
    resource: Resource = MEMCACHEDS
    first: Mapping[str, Any] | None = None
    heals: float = RECOVERY


@asynccontextmanager
async def quota(stage: Stage, **hard: str) -> AsyncGenerator[None]:
    """No more than this in the namespace; `_` in the names stands for what Python does not take."""
    named = {name.replace("__", "/").replace("_", "."): amount for name, amount in hard.items()}
    body = {"metadata": {"name": "quota"}, "spec": {"hard": named}}
    await stage.client.request("POST", QUOTAS.path(stage.namespace), body)

    async def look() -> bool:
        live = await stage.get(QUOTAS, "quota") or {}
        return live.get("status", {}).get("hard") == live["spec"]["hard"]

    await until(look, NORMAL, "the quota is in effect")
    yield
    await stage.delete(QUOTAS, "quota")


@asynccontextmanager
async def limits(stage: Stage, **of: Mapping[str, str]) -> AsyncGenerator[None]:
    """A LimitRange for containers."""
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", **of}]}}
    await stage.client.request("POST", LIMITS.path(stage.namespace), body)
    await asyncio.sleep(1)
    yield
    await stage.delete(LIMITS, "limits")


@asynccontextmanager
async def pod_security(stage: Stage, level: str) -> AsyncGenerator[None]:
    """The namespace asks for a level of Pod Security."""
    await _label(stage, {ENFORCE: level})
    yield
    await _label(stage, {ENFORCE: None})


async def _label(stage: Stage, labels: Mapping[str, str | None]) -> None:
    patch = {"metadata": {"labels": labels}}
    await stage.client.request("PATCH", NAMESPACES.path(None, stage.namespace), patch, MERGE_PATCH)


@asynccontextmanager
async def policy(stage: Stage, group: str, resource: str, operations: Sequence[str]) -> AsyncGenerator[None]:
    """An admission policy that refuses this in the namespace; and ConfigMaps, by which one sees that it is there."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": list(operations)},
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]},
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    meta = {"name": f"{stage.namespace}.example.com"}
    validation = {"expression": "false", "message": NO}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"namespaceSelector": here, "resourceRules": rules},
        "validations": [validation],
    }
    binding = {"policyName": meta["name"], "validationActions": ["Deny"]}
    await stage.client.request("POST", POLICIES.path(), {"metadata": meta, "spec": spec})
    await stage.client.request("POST", BINDINGS.path(), {"metadata": meta, "spec": binding})
    try:
        await until(partial(_is_refused, stage, wanted=True), NORMAL, "the policy is in effect")
        yield
    finally:
        for kind in (BINDINGS, POLICIES):
            await stage.client.request("DELETE", kind.path(None, meta["name"]))
    await until(partial(_is_refused, stage, wanted=False), NORMAL, "the policy is gone")


async def _is_refused(stage: Stage, wanted: bool) -> bool:
    body = {"metadata": {"name": "asked"}}
    try:
        await stage.client.request("POST", CONFIG_MAPS.path(stage.namespace), body, params={"dryRun": "All"})
    except ApiError as error:
        return (NO in error.message) is wanted
    return not wanted


async def hindered(stage: Stage, references: References, obstacle: Obstacle) -> None:
    """It stands in the way when an object is made, or changed if it was there before; it is told of; and goes."""
    expected = await references.of(BY_NAME["create"])
    since = time.monotonic()
    stage.operator.start()
    await stage.watching()
    if obstacle.first is not None:
        await stage.create(obstacle.resource, VICTIM, obstacle.first)
        await stage.settled(obstacle.resource, VICTIM)
    last = cache(size=2, **(PORTS if obstacle.resource == APPSERVICES else {}))
    async with obstacle.around(stage):
        if obstacle.first is not None:
            await stage.change(obstacle.resource, VICTIM, obstacle.first, last)
        else:
            await stage.create(obstacle.resource, VICTIM, last)
        await until(partial(_told, stage, obstacle), TELLING, f"somebody is told {obstacle.says!r}")
        await asyncio.sleep(LASTS)
        refused_in_rate(stage, since)
    await stage.settled(obstacle.resource, VICTIM, obstacle.heals + stage.settings.relist)
    if obstacle.resource == MEMCACHEDS:
        await reached(stage, MEMCACHEDS, expected, RECOVERY, loose=True)
    else:
        await asyncio.sleep(PROGRESS_PERIOD)
    await quiet(stage)
    calm(stage)


async def _told(stage: Stage, obstacle: Obstacle) -> bool:
    if obstacle.around in OF_STATUS:
        return obstacle.says in stage.operator.text()
    return await told(stage, obstacle.says)


async def unhindered(stage: Stage, references: References, around: Around, resource: Resource) -> None:
    """It stands in nobody's way: an object is made and changed as ever, and nothing is written again and again."""
    stage.operator.start()
    await stage.watching()
    async with around(stage):
        await stage.create(resource, VICTIM, cache(size=1))
        await stage.settled(resource, VICTIM)
        await stage.change(resource, VICTIM, {}, {"size": 2, "image": OTHER_IMAGE})
        await stage.settled(resource, VICTIM)
        await quiet(stage)
    await quiet(stage)
    calm(stage)


STATUS_POLICY = partial(policy, group="cache.example.com", resource="memcacheds/status", operations=("UPDATE",))
OF_STATUS = (STATUS_POLICY,)
"""What no status can tell of, because it is the status that cannot be written: the log does."""
SMALL = {"memory": "16Mi"}
OBSTACLES: dict[str, Obstacle] = {
    "quota/deployments": Obstacle(partial(quota, count__deployments_apps="0"), "exceeded quota: quota"),
    "quota/services": Obstacle(partial(quota, services="0"), "exceeded quota: quota"),
    "quota/node-ports": Obstacle(partial(quota, services_nodeports="0"), "exceeded quota: quota", APPSERVICES),
    "quota/pods": Obstacle(partial(quota, pods="0"), "exceeded quota: quota", heals=BACKING_OFF),
    "quota/memory": Obstacle(partial(quota, requests_memory="10Mi"), "exceeded quota: quota", heals=BACKING_OFF),
    "quota/cpu-unsaid": Obstacle(partial(quota, limits_cpu="9"), "must specify limits.cpu", heals=BACKING_OFF),
    "quota/scale-up": Obstacle(
        partial(quota, pods="1"), "exceeded quota: quota", first=cache(size=1), heals=BACKING_OFF
    ),
    "limits/max": Obstacle(partial(limits, max=SMALL), "maximum memory usage per Container", heals=BACKING_OFF),
    "limits/min": Obstacle(
        partial(limits, min={"memory": "8Gi"}), "minimum memory usage per Container", heals=BACKING_OFF
    ),
    "pod-security/restricted": Obstacle(
        partial(pod_security, level="restricted"), "violates PodSecurity", APPSERVICES, heals=BACKING_OFF
    ),
    "pod-security/restricted-later": Obstacle(
        partial(pod_security, level="restricted"),
        "violates PodSecurity",
        APPSERVICES,
        {"image": OTHER_IMAGE, "size": 2, **PORTS},
        heals=BACKING_OFF,
    ),
    "policy/deployments-create": Obstacle(
        partial(policy, group="apps", resource="deployments", operations=("CREATE",)), NO
    ),
    "policy/deployments-update": Obstacle(
        partial(policy, group="apps", resource="deployments", operations=("UPDATE",)), NO, first=cache(size=1)
    ),
    "policy/services-create": Obstacle(partial(policy, group="", resource="services", operations=("CREATE",)), NO),
    "policy/pods-create": Obstacle(
        partial(policy, group="", resource="pods", operations=("CREATE",)), NO, heals=BACKING_OFF
    ),
    "policy/status": Obstacle(STATUS_POLICY, NO),
}
HARMLESS: dict[str, tuple[Around, Resource]] = {
    "limits/defaults": (partial(limits, default={"cpu": "1", "memory": "1Gi"}), APPSERVICES),
    "limits/defaults-memcached": (partial(limits, default={"cpu": "1", "memory": "1Gi"}), MEMCACHEDS),
    "pod-security/restricted-memcached": (partial(pod_security, level="restricted"), MEMCACHEDS),
    "pod-security/baseline": (partial(pod_security, level="baseline"), APPSERVICES),
    "policy/events": (partial(policy, group="", resource="events", operations=("CREATE",)), MEMCACHEDS),
}


@asynccontextmanager
async def everywhere(stage: Stage, references: References) -> AsyncGenerator[str]:
    """The operator works in a second namespace as well, with rights that do not go with it; the name of that."""
    beside = f"{stage.namespace}-b"
    meta = {"name": f"{stage.namespace}-everywhere"}
    account = {"kind": "ServiceAccount", "name": "operator", "namespace": stage.namespace}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": meta["name"]}
    base = f"/apis/{RBAC}/v1"
    await stage.client.request("POST", f"{base}/clusterroles", {"metadata": meta, "rules": ROLES["role"]})
    binding = {"metadata": meta, "roleRef": role, "subjects": [account]}
    await stage.client.request("POST", f"{base}/clusterrolebindings", binding)
    both = f"--watch-namespaces={stage.namespace},{beside}"
    settings = replace(stage.settings, arguments=(*stage.settings.arguments, both))
    try:
        async with kept(references.plane.operator(stage.namespace, stage.address, settings, "both")) as operator:
            stage.operator, stage.proxy.kill = operator, operator.kill
            yield beside
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            await stage.client.request("DELETE", f"{base}/{kind}/{meta['name']}")


async def namespace_ends(stage: Stage, references: References, held: bool) -> None:
    """A namespace is deleted with all that is in it, and made again; `held`: somebody's finalizer delays it."""
    expected = await references.of(BY_NAME["create"])
    async with everywhere(stage, references) as beside:
        await _make(stage, beside)
        stage.operator.start()
        await stage.watching()
        await populate(stage, beside)
        if held:
            body = {"metadata": {"name": "holder", "finalizers": [HOLD]}}
            await stage.client.request("POST", CONFIG_MAPS.path(beside), body)
        since = time.monotonic()
        await stage.client.request("DELETE", NAMESPACES.path(None, beside))
        # Meanwhile all goes on elsewhere.
        await stage.create(MEMCACHEDS, VICTIM, cache(size=2))
        await reached(stage, MEMCACHEDS, expected, NORMAL, loose=True)
        if held:
            await asyncio.sleep(LASTS)
            await until(partial(_empty, stage, beside), NORMAL, "the objects of the namespace go")
            patch = {"metadata": {"finalizers": None}}
            await stage.client.request("PATCH", CONFIG_MAPS.path(beside, "holder"), patch, MERGE_PATCH)
        await until(partial(_no_namespace, stage, beside), 2 * NORMAL, "the namespace goes")
        refused_in_rate(stage, since)
        await quiet(stage)
        await _lives(stage, beside)


async def namespace_comes(stage: Stage, references: References) -> None:
    """The operator is told to work in a namespace that does not exist yet."""
    async with everywhere(stage, references) as beside:
        stage.operator.start()
        await stage.watching()
        await asyncio.sleep(LASTS)
        await _lives(stage, beside)


async def _lives(stage: Stage, beside: str) -> None:
    """The namespace is made, and the operator works in it as in any other; then it goes."""
    await _make(stage, beside)
    await populate(stage, beside)
    await quiet(stage)
    calm(stage)
    await stage.client.request("DELETE", NAMESPACES.path(None, beside))


async def _make(stage: Stage, namespace: str) -> None:
    await stage.client.request("POST", NAMESPACES.path(), {"metadata": {"name": namespace}})


async def populate(stage: Stage, namespace: str) -> None:
    """Objects of both kinds in another namespace, and all of them settle."""
    there = replace(stage, namespace=namespace)
    for number in range(3):
        for resource in (MEMCACHEDS, APPSERVICES):
            name = f"{resource.kind.lower()}-{number}"
            await there.create(resource, name, cache(size=2))
    for number in range(3):
        for resource in (MEMCACHEDS, APPSERVICES):
            await there.settled(resource, f"{resource.kind.lower()}-{number}")


async def _empty(stage: Stage, namespace: str) -> bool:
    lists = [await stage.client.list(each, namespace) for each in (MEMCACHEDS, APPSERVICES)]
    return not any(list(items) for items, _ in lists)


async def _no_namespace(stage: Stage, namespace: str) -> bool:
    return await stage.client.get(Key(NAMESPACES, "", namespace)) is None


async def crds_end(stage: Stage, references: References, gone: Sequence[Resource], absent: bool) -> None:
    """CustomResourceDefinitions are deleted, with all objects, and made again; `absent`: already at the start."""
    del references
    left = [each for each in (MEMCACHEDS, APPSERVICES) if each not in gone]
    if not absent:
        await _begin(stage)
    since = time.monotonic()
    try:
        for resource in gone:
            await _delete_crd(stage, resource)
        if absent:
            stage.operator.start()
            await until(partial(_complains, stage), NORMAL, "the log tells of it")
        for resource in left if not absent else ():
            await stage.change(resource, f"first-{resource.plural}", {}, {"size": 3})
            await stage.settled(resource, f"first-{resource.plural}")
        await asyncio.sleep(LASTS)
        refused_in_rate(stage, since)
    finally:
        for resource in gone:
            await _install(stage, resource)
    for resource in gone if not absent else (MEMCACHEDS, APPSERVICES):
        await stage.create(resource, f"then-{resource.plural}", cache(size=2))
        await stage.settled(resource, f"then-{resource.plural}")
    await quiet(stage)
    calm(stage)


async def _begin(stage: Stage) -> None:
    stage.operator.start()
    await stage.watching()
    for resource in (MEMCACHEDS, APPSERVICES):
        await stage.create(resource, f"first-{resource.plural}", cache(size=2))
        await stage.settled(resource, f"first-{resource.plural}")


async def _complains(stage: Stage) -> bool:
    return "the resource is not served; install the CRDs" in stage.operator.text()


async def _delete_crd(stage: Stage, resource: Resource) -> None:
    path = CRDS.path(None, f"{resource.plural}.{resource.group}")
    await stage.client.request("DELETE", path)

    async def look() -> bool:
        with suppress(ApiError):
            await stage.client.request("GET", path)
            return False
        return True

    await until(look, 2 * NORMAL, f"the CRD of {resource.plural} goes")


async def _install(stage: Stage, resource: Resource) -> None:
    crd = yaml.safe_load((ROOT / f"config/crd/bases/{resource.group}_{resource.plural}.yaml").read_text())
    await stage.client.request("POST", CRDS.path(), crd)

    async def look() -> bool:
        with suppress(ApiError):
            await stage.client.list(resource, stage.namespace)
            return True
        return False

    await until(look, NORMAL, f"{resource.plural} are served")


KINDS: dict[str, tuple[Resource, ...]] = {
    "memcacheds": (MEMCACHEDS,),
    "appservices": (APPSERVICES,),
    "both": (MEMCACHEDS, APPSERVICES),
}
GATE = {"quota/deployments", "policy/deployments-update"}


def cases() -> list[Case]:
    """All of them. Those about CRDs must be alone: the others have objects of these kinds."""
    plays: dict[str, Callable[..., Awaitable[None]]] = {
        name: partial(hindered, obstacle=obstacle) for name, obstacle in OBSTACLES.items()
    }
    plays |= {
        name: partial(unhindered, around=around, resource=resource) for name, (around, resource) in HARMLESS.items()
    }
    plays |= {
        "namespace/recreated": partial(namespace_ends, held=False),
        "namespace/terminating": partial(namespace_ends, held=True),
        "namespace/not-there-yet": namespace_comes,
    }
    found = [Case(f"T12/{name}", play, gate=name in GATE) for name, play in plays.items()]
    for name, gone in KINDS.items():
        for way, absent in (("recreated", False), ("not-there-yet", True)):
            play = partial(crds_end, gone=gone, absent=absent)
            found.append(Case(f"T12/crd/{name}-{way}", play, alone=True))
    return found
