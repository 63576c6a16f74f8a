"""Another client changes, deletes or adopts a child."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from faults.case import Case, References, in_gate, prepare
from faults.esr import VICTIM, Reference, check_operator, check_quiet, wait_for_state
from faults.faulty import Exchange, Reject
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, READY_TIMEOUT, Sandbox, wait_until, wait_until_injected
from faults.state import state_of
from faults.workloads import GUARDS, MONITORED, OTHER_IMAGE, PORTS, PROXY, SLOTS, Workload, cache, slots
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import JSON_PATCH
from memcached_operator.kube.labels import INSTANCE
from memcached_operator.kube.resource import Key, Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

WORKLOADS = (kinds.DEPLOYMENTS, kinds.STATEFULSETS)
RECOVERY = 30.0
"""Seconds until the child is restored. A blocked child is checked again every 10 s."""
FINALIZER = "example.com/held"
NOTE = "example.com/note"


@dataclass(frozen=True)
class Child:
    """A child of a kind of object, and a patch that changes one of our fields.

    `fields`: those with which the object has the child. `suffix`: what follows the object's name in the child's.
    """

    owner: Resource
    resource: Resource
    patch: Object
    fields: str = ""
    suffix: str = ""

    @property
    def name(self) -> str:
        """As in the names of cases."""
        return f"{self.owner.plural}-{self.resource.plural}{self.suffix}"

    @property
    def own_name(self) -> str:
        """The name of the child."""
        return f"{VICTIM}{self.suffix}"

    @property
    def workload(self) -> Workload:
        """The creation of its owner."""
        fields = self.fields or self.owner.kind
        beside = slots(2) if self.owner == MEMCACHEDPROXIES else None
        return Workload(f"drift-{fields}", self.owner, None, cache(size=2, **FIELDS[fields]), (), beside=beside)


STABLE = "Stable"
FIELDS: dict[str, Object] = {
    "Memcached": GUARDS,
    "AppService": PORTS,
    STABLE: {**GUARDS, **SLOTS},
    "Monitored": MONITORED,
    "MemcachedProxy": PROXY,
}
"""The fields with which an object has all children."""
OTHER_SELECTOR: Object = {"spec": {"selector": {INSTANCE: "another"}}}
OTHER_TEMPLATE: Object = {"spec": {"template": {"spec": {"automountServiceAccountToken": True}}}}
OTHER_BUDGET: Object = {"spec": {"maxUnavailable": 2}}
OTHER_STRATEGY: Object = {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}}
OTHER_SERVERS: Object = {"data": {"servers": "elsewhere:11211"}}
OTHER_CLIENTS: Object = {"spec": {"ingress": [{}]}}
OTHER_PORT: Object = {"spec": {"podMetricsEndpoints": [{"port": "other"}]}}
OTHER_RULES: Object = {"spec": {"groups": [{"name": "theirs", "rules": []}]}}
CHILDREN = (
    Child(MEMCACHEDS, kinds.DEPLOYMENTS, OTHER_TEMPLATE),
    Child(MEMCACHEDS, kinds.SERVICES, OTHER_SELECTOR),
    Child(MEMCACHEDS, kinds.POD_DISRUPTION_BUDGETS, OTHER_BUDGET),
    Child(MEMCACHEDS, kinds.NETWORK_POLICIES, OTHER_CLIENTS),
    Child(MEMCACHEDS, kinds.POD_MONITORS, OTHER_PORT, "Monitored"),
    Child(MEMCACHEDS, kinds.PROMETHEUS_RULES, OTHER_RULES, "Monitored"),
    Child(MEMCACHEDS, kinds.STATEFULSETS, OTHER_STRATEGY, STABLE),
    Child(MEMCACHEDS, kinds.CONFIG_MAPS, OTHER_SERVERS, STABLE, "-connection"),
    Child(MEMCACHEDS, kinds.SERVICES, OTHER_SELECTOR, STABLE, "-0"),
    Child(APPSERVICES, kinds.DEPLOYMENTS, OTHER_TEMPLATE),
    Child(APPSERVICES, kinds.SERVICES, OTHER_SELECTOR),
)


async def create_owner(sandbox: Sandbox, references: References, child: Child) -> tuple[Reference, Object]:
    """Create the object; returns its reference and the child."""
    expected = await references.of(child.workload)
    await sandbox.start()
    await prepare(sandbox, child.workload)
    await sandbox.create_ready(child.owner, VICTIM, child.workload.then or {})
    found = await sandbox.get(child.resource, child.own_name)
    return expected, found or {}


async def check_restored(sandbox: Sandbox, child: Child, expected: Reference, times: int = 1) -> None:
    """Check that the state is as before, and that the child was created this many times."""
    await wait_for_state(sandbox, child.owner, expected, RECOVERY + sandbox.settings.sync_time, loose=True)
    await check_quiet(sandbox)
    counted = sandbox.proxy.requests.counts("create", child.own_name)[child.resource.plural]
    sandbox.check(counted == times, f"the child was created {counted} times, want {times}")
    check_operator(sandbox)


def key(sandbox: Sandbox, child: Child) -> Key:
    """Key of the child."""
    return Key(child.resource, sandbox.namespace, child.own_name)


async def _delete_and_check(sandbox: Sandbox, child: Child, expected: Reference, found: Object) -> None:
    """Delete the child, and wait until another one replaces it and the state is as before."""
    await sandbox.delete(child.resource, child.own_name)
    await _wait_replaced(sandbox, child, found)
    await check_restored(sandbox, child, expected, 2)


async def deleted(sandbox: Sandbox, references: References, child: Child) -> None:
    """The child is deleted."""
    expected, found = await create_owner(sandbox, references, child)
    await _delete_and_check(sandbox, child, expected, found)


async def deleted_while_reads_fail(sandbox: Sandbox, references: References, child: Child) -> None:
    """The child is deleted, and reads of single objects fail for a while."""
    expected, found = await create_owner(sandbox, references, child)
    rejection = Reject(500, "InternalError")
    sandbox.proxy.inject(Rule(f"get {child.owner.plural}", rejection, times=2), Rule("get *", rejection, times=2))
    await _delete_and_check(sandbox, child, expected, found)


async def deleted_while_writes_fail(sandbox: Sandbox, references: References, child: Child) -> None:
    """The child is deleted and cannot be created for a while; no other event causes a retry."""
    expected, found = await create_owner(sandbox, references, child)
    rejection = Reject(503, "ServiceUnavailable")
    sandbox.proxy.inject(Rule(f"create {child.resource.plural}", rejection, times=4))
    await _delete_and_check(sandbox, child, expected, found)


async def orphaned(sandbox: Sandbox, references: References, child: Child) -> None:
    """The owner is deleted without its children and created again: it adopts them."""
    expected, found = await create_owner(sandbox, references, child)
    await sandbox.delete(child.owner, VICTIM, "Orphan")
    await sandbox.wait_deleted(child.owner, VICTIM)
    await sandbox.create(child.owner, VICTIM, child.workload.then or {})
    await check_restored(sandbox, child, expected)
    live = await sandbox.get(child.resource, child.own_name)
    sandbox.check(live and live["metadata"]["uid"] == found["metadata"]["uid"], "the child was replaced")


async def reference_removed(sandbox: Sandbox, references: References, child: Child) -> None:
    """The child's owner reference is removed."""
    expected, _ = await create_owner(sandbox, references, child)
    await sandbox.merge(key(sandbox, child), {"metadata": {"ownerReferences": None}})
    await check_restored(sandbox, child, expected)


async def adopted(sandbox: Sandbox, references: References, child: Child) -> None:
    """Another owner adopts the child: it is not modified, and the conflict is reported until it is free again."""
    expected, found = await create_owner(sandbox, references, child)
    await adopt(sandbox, child, found)
    await wait_for_reason(sandbox, child.owner, c.CONFLICT)
    await sandbox.merge(key(sandbox, child), {"metadata": {"ownerReferences": found["metadata"]["ownerReferences"]}})
    await check_restored(sandbox, child, expected)


async def adopted_unseen(sandbox: Sandbox, _: References, child: Child, spec: Mapping[str, Any]) -> None:
    """Another owner adopts the child while its events are late, and then the spec changes: it is not modified."""
    first = child.workload.then or {}
    await sandbox.start()
    await sandbox.create_ready(child.owner, VICTIM, first)
    found = await sandbox.get(child.resource, child.own_name) or {}
    sandbox.proxy.hold(child.resource.plural)
    await adopt(sandbox, child, found)
    adopted = await sandbox.get(child.resource, child.own_name) or {}
    await sandbox.change(child.owner, VICTIM, first, {**first, **spec})
    await wait_for_reason(sandbox, child.owner, c.CONFLICT)
    live = await sandbox.get(child.resource, child.own_name) or {}
    sandbox.check(_written(live) == _written(adopted), "another owner's object was changed")


def _written(obj: Object) -> list[Any]:
    """The parts of an object that clients write."""
    return [obj["spec"], *(obj["metadata"].get(name) for name in ("labels", "annotations", "ownerReferences"))]


async def changed_while_scaled(sandbox: Sandbox, references: References, child: Child) -> None:
    """Another client changes a field between the operator's decision to scale the child and its patch."""
    expected, _ = await create_owner(sandbox, references, child)

    async def change_first(exchange: Exchange) -> web.StreamResponse:
        await sandbox.merge(key(sandbox, child), {"metadata": {"labels": {INSTANCE: "changed"}}})
        return await exchange.forward()

    rule = Rule(f"patch {child.resource.plural}", change_first, times=1, name=child.own_name)
    active, *_ = sandbox.proxy.inject(rule)
    await sandbox.merge(key(sandbox, child), {"spec": {"replicas": 5}})
    await wait_until_injected(active, RECOVERY)
    await check_restored(sandbox, child, expected)


async def adopt(sandbox: Sandbox, child: Child, found: Object) -> None:
    """Make a ConfigMap the owner of the child."""
    other_owner = await sandbox.client.request(
        "POST", kinds.CONFIG_MAPS.path(sandbox.namespace), {"metadata": {"name": "other-owner"}, "data": {}}
    )
    owner = {**found["metadata"]["ownerReferences"][0], "apiVersion": "v1", "kind": "ConfigMap", "name": "other-owner"}
    owner["uid"] = other_owner["metadata"]["uid"]
    await sandbox.merge(key(sandbox, child), {"metadata": {"ownerReferences": [owner]}})


async def changed(sandbox: Sandbox, references: References, child: Child) -> None:
    """One of our fields is changed."""
    expected, _ = await create_owner(sandbox, references, child)
    await sandbox.merge(key(sandbox, child), child.patch)
    await check_restored(sandbox, child, expected)


async def annotated(sandbox: Sandbox, references: References, child: Child) -> None:
    """Another client adds a field: it stays."""
    expected, _ = await create_owner(sandbox, references, child)
    await sandbox.merge(key(sandbox, child), {"metadata": {"annotations": {NOTE: "foreign"}}})
    await check_quiet(sandbox)
    live = await sandbox.get(child.resource, child.own_name)
    sandbox.check(live and live["metadata"]["annotations"].get(NOTE) == "foreign", "the foreign field was removed")
    await sandbox.merge(key(sandbox, child), {"metadata": {"annotations": {NOTE: None}}})
    await check_restored(sandbox, child, expected)


async def relabelled(sandbox: Sandbox, references: References, child: Child, label: str) -> None:
    """A label is changed: possibly the one of the watches' selector."""
    expected, _ = await create_owner(sandbox, references, child)
    await sandbox.merge(key(sandbox, child), {"metadata": {"labels": {label: "changed"}}})
    await check_restored(sandbox, child, expected)


async def scaled(sandbox: Sandbox, references: References, child: Child, replicas: int) -> None:
    """The workload is scaled manually, once: a second time would be reported."""
    expected, _ = await create_owner(sandbox, references, child)
    await sandbox.merge(key(sandbox, child), {"spec": {"replicas": replicas}})
    await check_restored(sandbox, child, expected)


async def finalized(sandbox: Sandbox, references: References, child: Child) -> None:
    """The child is deleted, and another client's finalizer blocks the deletion for a while."""
    expected, found = await create_owner(sandbox, references, child)
    await sandbox.merge(key(sandbox, child), {"metadata": {"finalizers": [FINALIZER]}})
    await sandbox.delete(child.resource, child.own_name)
    await wait_for_reason(sandbox, child.owner, c.WAITING_FOR_DELETION)
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    path = child.resource.path(sandbox.namespace, child.own_name)
    await sandbox.client.request("PATCH", path, patch, JSON_PATCH)
    await _wait_replaced(sandbox, child, found)
    await check_restored(sandbox, child, expected, 2)


async def foreign(sandbox: Sandbox, references: References, child: Child) -> None:
    """Another owner's object has the name: it is not modified, and the conflict is reported until it is deleted."""
    expected = await references.of(child.workload)
    path = child.resource.path(sandbox.namespace)
    body = {**FOREIGN[child.resource.kind], "metadata": {"name": child.own_name}}
    original = await sandbox.client.request("POST", path, body)
    await sandbox.start()
    await sandbox.create(child.owner, VICTIM, child.workload.then or {})
    await wait_for_reason(sandbox, child.owner, c.CONFLICT)
    if child.resource not in WORKLOADS:
        await wait_rolled_out(sandbox, child.owner, kinds.STATEFULSETS if child.fields == STABLE else kinds.DEPLOYMENTS)
        await wait_for_reason(sandbox, child.owner, c.MINIMUM_REPLICAS_AVAILABLE)
    await check_quiet(sandbox)
    live = await sandbox.get(child.resource, child.own_name)
    sandbox.check(live and without_metadata(live) == without_metadata(original), "another owner's object was changed")
    await sandbox.delete(child.resource, child.own_name)
    await check_restored(sandbox, child, expected)


async def wait_for_reason(sandbox: Sandbox, owner: Resource, reason: str) -> None:
    """Wait until a condition of the object has this reason."""

    async def poll() -> bool:
        obj = await sandbox.get(owner, VICTIM) or {}
        return reason in [each["reason"] for each in obj.get("status", {}).get("conditions", [])]

    await wait_until(poll, RECOVERY, f"a condition has the reason {reason}")


def without_metadata(obj: Object) -> Object:
    """What a child contains: its spec, or its data."""
    return {name: obj.get(name) for name in ("spec", "data")}


async def wait_rolled_out(
    sandbox: Sandbox, owner: Resource, workload: Resource = kinds.DEPLOYMENTS, seconds: float = READY_TIMEOUT
) -> None:
    """Wait until all pods have the Deployment's current template and are available, and the status is current."""

    async def poll() -> bool:
        live = await sandbox.get(workload, VICTIM) or {}
        size, status = nested_map(live, "spec").get("replicas"), nested_map(live, "status")
        current = status.get("observedGeneration") == nested_map(live, "metadata").get("generation")
        counted = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
        state = await state_of(sandbox.client, owner, sandbox.namespace, VICTIM)
        ready = nested_map(state, owner.plural, "status").get("readyReplicas")
        return current and counted == {size, ready} and state["nodes are the pods"]

    await wait_until(poll, seconds, f"{workload.kind} {VICTIM} is rolled out")


async def _wait_replaced(sandbox: Sandbox, child: Child, found: Object) -> None:
    async def poll() -> bool:
        live = await sandbox.get(child.resource, child.own_name)
        return live is not None and live["metadata"]["uid"] != found["metadata"]["uid"]

    await wait_until(poll, RECOVERY, "the child is created again")


LABELS = {"app": "foreign"}
FOREIGN: dict[str, Object] = {
    "Deployment": {
        "metadata": {"name": VICTIM},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        },
    },
    "Service": {"metadata": {"name": VICTIM}, "spec": {"selector": LABELS, "ports": [{"name": "foreign", "port": 9}]}},
    "PodDisruptionBudget": {
        "metadata": {"name": VICTIM},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
    },
    "PodMonitor": {
        "apiVersion": kinds.POD_MONITORS.api_version,
        "kind": kinds.POD_MONITORS.kind,
        "metadata": {"name": VICTIM},
        "spec": {"podMetricsEndpoints": [{"port": "theirs"}]},
    },
    "PrometheusRule": {
        "apiVersion": kinds.PROMETHEUS_RULES.api_version,
        "kind": kinds.PROMETHEUS_RULES.kind,
        "metadata": {"name": VICTIM},
        **OTHER_RULES,
    },
    "ConfigMap": {"metadata": {"name": VICTIM}, "data": {"servers": "theirs:11211"}},
    "NetworkPolicy": {"metadata": {"name": VICTIM}, "spec": {"podSelector": {"matchLabels": LABELS}}},
}

FOREIGN["StatefulSet"] = {**FOREIGN["Deployment"], "spec": {**FOREIGN["Deployment"]["spec"], "serviceName": "theirs"}}

DRIFTS: dict[str, Callable[..., Awaitable[None]]] = {
    "deleted": deleted,
    "orphaned": orphaned,
    "reference-removed": reference_removed,
    "adopted": adopted,
    "field-changed": changed,
    "foreign-field": annotated,
    "label-changed": partial(relabelled, label=INSTANCE),
    "watched-label-changed": partial(relabelled, label="app.kubernetes.io/managed-by"),
    "finalizer": finalized,
    "same-name": foreign,
    "deleted-while-reads-fail": deleted_while_reads_fail,
    "deleted-while-writes-fail": deleted_while_writes_fail,
}
SCALED: dict[str, Callable[..., Awaitable[None]]] = {
    "scaled": partial(scaled, replicas=5),
    "scaled-to-zero": partial(scaled, replicas=0),
    "changed-while-scaled": changed_while_scaled,
    "adopted-unseen/size": partial(adopted_unseen, spec={"size": 3}),
    "adopted-unseen/image": partial(adopted_unseen, spec={"image": OTHER_IMAGE}),
}
"""Only for workloads."""


def cases() -> list[Case]:
    """Each kind of drift for each child. Events and retries must repair it: a sync would repair any of them."""
    found = [
        Case(f"drift/{child.name}/{name}", partial(run, child=child), sync_period=LONG_SYNC_PERIOD)
        for child in CHILDREN
        for name, run in (DRIFTS | (SCALED if child.resource in WORKLOADS else {})).items()
    ]
    return in_gate(found, "drift/appservices-services/field-changed")
