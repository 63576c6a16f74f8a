"""T7: somebody else changes, loses or takes a child."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from faults.case import Case, References
from faults.esr import VICTIM, Reference, calm, quiet, reached
from faults.faulty import Refuse
from faults.rules import Rule
from faults.stage import NORMAL, Stage, until
from faults.state import state_of
from faults.workloads import PORTS, Workload, cache
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import JSON_PATCH
from memcached_operator.kube.labels import INSTANCE
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

RECOVERY = 30.0
"""Seconds until it is as it was. What stands in the way is looked at again every 10."""
SELDOM = 600.0
"""Seconds between readings of everything, where one would mend what a case is about."""
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
FINALIZER = "example.com/held"
NOTE = "example.com/note"


@dataclass(frozen=True)
class Child:
    """A child: of which kind of object; and a field of ours with another value."""

    owner: Resource
    resource: Resource
    other: Object

    @property
    def name(self) -> str:
        """As in the names of cases."""
        return f"{self.owner.plural}-{self.resource.plural}"

    @property
    def workload(self) -> Workload:
        """How its owner comes to be."""
        return Workload(f"drift-{self.owner.plural}", self.owner, None, cache(size=2, **PORTS_OF[self.owner.kind]), ())


PORTS_OF: dict[str, Object] = {"Memcached": {}, "AppService": PORTS}
STRAY: Object = {"spec": {"selector": {INSTANCE: "somebody-else"}}}
TEMPLATE: Object = {"spec": {"template": {"spec": {"automountServiceAccountToken": True}}}}
KINDS = (
    Child(MEMCACHEDS, DEPLOYMENTS, TEMPLATE),
    Child(MEMCACHEDS, SERVICES, STRAY),
    Child(APPSERVICES, DEPLOYMENTS, TEMPLATE),
    Child(APPSERVICES, SERVICES, STRAY),
)


async def made(stage: Stage, references: References, child: Child) -> tuple[Reference, Object]:
    """The object is there; what it should be like, and its child."""
    expected = await references.of(child.workload)
    stage.operator.start()
    await stage.watching()
    await stage.create(child.owner, VICTIM, child.workload.then or {})
    await stage.settled(child.owner, VICTIM)
    found = await stage.get(child.resource, VICTIM)
    return expected, found or {}


async def mended(stage: Stage, child: Child, expected: Reference, times: int = 1) -> None:
    """All is as it was, the child having been made so many times."""
    await reached(stage, child.owner, expected, RECOVERY + stage.settings.relist, loose=True)
    await quiet(stage)
    counted = stage.proxy.journal.counts("create", VICTIM)[child.resource.plural]
    stage.holds(counted == times, f"the child was made {counted} times, not {times}")
    calm(stage)


def key(stage: Stage, child: Child) -> Key:
    """The child's."""
    return Key(child.resource, stage.namespace, VICTIM)


async def _lost(stage: Stage, child: Child, expected: Reference, found: Object) -> None:
    """The child is deleted, another one takes its place, and all is as it was."""
    await stage.delete(child.resource, VICTIM)
    await _another(stage, child, found)
    await mended(stage, child, expected, 2)


async def deleted(stage: Stage, references: References, child: Child) -> None:
    """The child is deleted."""
    expected, found = await made(stage, references, child)
    await _lost(stage, child, expected, found)


async def deleted_while_reads_fail(stage: Stage, references: References, child: Child) -> None:
    """The child is deleted, and objects cannot be read one by one for a while."""
    expected, found = await made(stage, references, child)
    refusal = Refuse(500, "InternalError")
    stage.proxy.arm(Rule(f"get {child.owner.plural}", refusal, times=2), Rule("get *", refusal, times=2))
    await _lost(stage, child, expected, found)


async def deleted_while_writes_fail(stage: Stage, references: References, child: Child) -> None:
    """The child is deleted, and cannot be made again for a while; nothing else happens that would cause a try."""
    expected, found = await made(stage, references, child)
    refusal = Refuse(503, "ServiceUnavailable")
    stage.proxy.arm(Rule(f"create {child.resource.plural}", refusal, times=4))
    await _lost(stage, child, expected, found)


async def orphaned(stage: Stage, references: References, child: Child) -> None:
    """The owner is deleted without its children, and made again: they are taken back."""
    expected, found = await made(stage, references, child)
    await stage.delete(child.owner, VICTIM, "Orphan")
    await stage.gone(child.owner, VICTIM)
    await stage.create(child.owner, VICTIM, child.workload.then or {})
    await mended(stage, child, expected)
    live = await stage.get(child.resource, VICTIM)
    stage.holds(live and live["metadata"]["uid"] == found["metadata"]["uid"], "it is another one")


async def reference_removed(stage: Stage, references: References, child: Child) -> None:
    """The child's owner reference is removed."""
    expected, _ = await made(stage, references, child)
    await stage.merge(key(stage, child), {"metadata": {"ownerReferences": None}})
    await mended(stage, child, expected)


async def stolen(stage: Stage, references: References, child: Child) -> None:
    """Somebody else takes the child over: it is left alone and told of, until it is free again."""
    expected, found = await made(stage, references, child)
    thief = await stage.client.request(
        "POST", CONFIG_MAPS.path(stage.namespace), {"metadata": {"name": "thief"}, "data": {}}
    )
    owner = {**found["metadata"]["ownerReferences"][0], "apiVersion": "v1", "kind": "ConfigMap", "name": "thief"}
    owner["uid"] = thief["metadata"]["uid"]
    await stage.merge(key(stage, child), {"metadata": {"ownerReferences": [owner]}})
    await told(stage, child.owner, c.CONFLICT)
    await stage.merge(key(stage, child), {"metadata": {"ownerReferences": found["metadata"]["ownerReferences"]}})
    await mended(stage, child, expected)


async def changed(stage: Stage, references: References, child: Child) -> None:
    """A field of ours is changed."""
    expected, _ = await made(stage, references, child)
    await stage.merge(key(stage, child), child.other)
    await mended(stage, child, expected)


async def annotated(stage: Stage, references: References, child: Child) -> None:
    """A field that is not ours is added: it stays."""
    expected, _ = await made(stage, references, child)
    await stage.merge(key(stage, child), {"metadata": {"annotations": {NOTE: "theirs"}}})
    await quiet(stage)
    live = await stage.get(child.resource, VICTIM)
    stage.holds(live and live["metadata"]["annotations"].get(NOTE) == "theirs", "the foreign field is gone")
    await stage.merge(key(stage, child), {"metadata": {"annotations": {NOTE: None}}})
    await mended(stage, child, expected)


async def relabelled(stage: Stage, references: References, child: Child, label: str) -> None:
    """A label is changed, perhaps the very one by which the child is watched."""
    expected, _ = await made(stage, references, child)
    await stage.merge(key(stage, child), {"metadata": {"labels": {label: "changed"}}})
    await mended(stage, child, expected)


async def scaled(stage: Stage, references: References, child: Child) -> None:
    """The Deployment is scaled by hand."""
    expected, _ = await made(stage, references, child)
    for replicas in (5, 0):
        await stage.merge(key(stage, child), {"spec": {"replicas": replicas}})
        await reached(stage, child.owner, expected, RECOVERY, loose=True)
    await mended(stage, child, expected)


async def finalized(stage: Stage, references: References, child: Child) -> None:
    """The child is deleted, and somebody's finalizer holds it for a while."""
    expected, found = await made(stage, references, child)
    await stage.merge(key(stage, child), {"metadata": {"finalizers": [FINALIZER]}})
    await stage.delete(child.resource, VICTIM)
    await told(stage, child.owner, c.WAITING_FOR_DELETION)
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    path = child.resource.path(stage.namespace, VICTIM)
    await stage.client.request("PATCH", path, patch, JSON_PATCH)
    await _another(stage, child, found)
    await mended(stage, child, expected, 2)


async def foreign(stage: Stage, references: References, child: Child) -> None:
    """Somebody else's object of the name was there first: untouched and told of, until it goes."""
    expected = await references.of(child.workload)
    path = child.resource.path(stage.namespace)
    theirs = await stage.client.request("POST", path, FOREIGN[child.resource.kind])
    stage.operator.start()
    await stage.watching()
    await stage.create(child.owner, VICTIM, child.workload.then or {})
    await told(stage, child.owner, c.CONFLICT)
    if child.resource == SERVICES:
        await rolled_out(stage, child.owner)
        await told(stage, child.owner, c.MINIMUM_REPLICAS_AVAILABLE)
    await quiet(stage)
    live = await stage.get(child.resource, VICTIM)
    stage.holds(live and live["spec"] == theirs["spec"], "somebody else's object was changed")
    await stage.delete(child.resource, VICTIM)
    await mended(stage, child, expected)


async def told(stage: Stage, owner: Resource, reason: str) -> None:
    """Wait until a condition of an object gives a reason."""

    async def look() -> bool:
        obj = await stage.get(owner, VICTIM) or {}
        return reason in [each["reason"] for each in obj.get("status", {}).get("conditions", [])]

    await until(look, RECOVERY, f"a condition says {reason}")


async def rolled_out(stage: Stage, owner: Resource, seconds: float = NORMAL) -> None:
    """Wait until the pods are those of the Deployment as it is now, all serve, and the status says so."""

    async def look() -> bool:
        live = await stage.get(DEPLOYMENTS, VICTIM) or {}
        size, status = nested_map(live, "spec").get("replicas"), nested_map(live, "status")
        current = status.get("observedGeneration") == nested_map(live, "metadata").get("generation")
        counted = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
        state = await state_of(stage.client, owner, stage.namespace, VICTIM)
        ready = nested_map(state, owner.plural, "status").get("readyReplicas")
        return current and counted == {size, ready} and state["nodes are the pods"]

    await until(look, seconds, f"Deployment {VICTIM} is rolled out")


async def _another(stage: Stage, child: Child, found: Object) -> None:
    async def look() -> bool:
        live = await stage.get(child.resource, VICTIM)
        return live is not None and live["metadata"]["uid"] != found["metadata"]["uid"]

    await until(look, RECOVERY, "the child is made again")


LABELS = {"app": "theirs"}
FOREIGN: dict[str, Object] = {
    "Deployment": {
        "metadata": {"name": VICTIM},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        },
    },
    "Service": {"metadata": {"name": VICTIM}, "spec": {"selector": LABELS, "ports": [{"name": "theirs", "port": 9}]}},
}

DRIFTS: dict[str, Callable[..., Awaitable[None]]] = {
    "deleted": deleted,
    "orphaned": orphaned,
    "reference-removed": reference_removed,
    "stolen": stolen,
    "field-changed": changed,
    "foreign-field": annotated,
    "label-changed": partial(relabelled, label=INSTANCE),
    "watched-label-changed": partial(relabelled, label="app.kubernetes.io/managed-by"),
    "finalizer": finalized,
    "same-name": foreign,
}
GATE = {
    KINDS[0].name: {"deleted", "reference-removed", "label-changed", "same-name"},
    KINDS[3].name: {"deleted", "field-changed", "stolen"},
}


def cases() -> list[Case]:
    """Each drift of each child."""
    found = [
        Case(f"T7/{child.name}/{name}", partial(play, child=child), gate=name in GATE.get(child.name, ()))
        for child in KINDS
        for name, play in DRIFTS.items()
    ]
    deployments = [child for child in KINDS if child.resource == DEPLOYMENTS]
    for child in KINDS:
        for name, hard in (("reads", deleted_while_reads_fail), ("writes", deleted_while_writes_fail)):
            play = partial(hard, child=child)
            found.append(Case(f"T7/{child.name}/deleted-while-{name}-fail", play, child == KINDS[1], relist=SELDOM))
    return found + [Case(f"T7/{child.name}/scaled", partial(scaled, child=child)) for child in deployments]
