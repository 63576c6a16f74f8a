"""The interface between a kind and the engine: a snapshot goes in; a plan and a status come out."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from memcached_api import conditions as c
from memcached_api.kind import Checked
from memcached_api.validation.field_errors import FieldError, summary
from memcached_operator.kube.knowledge import LISTED, Knowledge, State
from memcached_operator.kube.resource import Key, Object, Resource, key_of

Spec = TypeVar("Spec", bound=msgspec.Struct)
Part = TypeVar("Part")
Item = TypeVar("Item", bound=Hashable)
Check = Callable[[Object], Checked[Spec]]
"""Checks the spec of a stored object. Without a spec, its children stay as they are."""

MAX_ERRORS_LENGTH, MAX_KEPT_LENGTH = 4096, 1000
"""Maximum characters of the errors in a problem, which has the whole message of Degraded, and in a notice."""

CHECKED_SPECS, CHECKED_BYTES = 1024, 2**20
"""Maximum number, and bytes as JSON, of the specs of one kind whose result is kept. A result of small values takes up
to 13 times as much again."""


def once_per_spec(check: Check[Spec]) -> Check[Spec]:
    """The same check, which keeps the results of the last specs: a reconcile needs it twice, and most reconciles of an
    object find its spec unchanged. `check` must depend only on the name and the spec of an object.
    """
    results: OrderedDict[bytes, Checked[Spec]] = OrderedDict()
    size = 0

    def checked(cr: Object) -> Checked[Spec]:
        nonlocal size
        # Not a dict as the key: 1, 1.0 and true are equal in Python.
        encoded = msgspec.json.encode((cr["metadata"]["name"], cr.get("spec")))
        if encoded not in results:
            name, spec = msgspec.json.decode(encoded)
            results[encoded] = check({"metadata": {"name": name}, "spec": spec})
            size += len(encoded)
        results.move_to_end(encoded)
        result = results[encoded]
        while len(results) > CHECKED_SPECS or size > CHECKED_BYTES:
            size -= len(results.popitem(last=False)[0])
        return result

    return checked


@dataclass(frozen=True)
class Problem:
    """A problem that the status reports."""

    reason: str
    """The reason of a condition, such as Degraded."""
    message: str
    """The sentence for the condition, with the remedy."""
    blocks: bool = True
    """It prevents a rollout."""
    objects: tuple[Key, ...] = ()
    """The objects of others, in the place of children, that it is about."""


class Intervention(NamedTuple):
    """What another client did to a child, with the remedy. The status mentions it, and an Event reports it once."""

    reason: str
    """The reason of the Event."""
    message: str
    """A sentence with the remedy. It must stay the same while the cause does, so that it causes no writes."""
    is_conflict: bool = False
    """The client goes on until a user ends it: two owners of one field."""


class Resize(IntEnum):
    """The changes of requests and limits of running pods that the cluster supports."""

    NONE = 0
    RAISE = 1
    """All but lower a memory limit, or add one."""
    ANY = 2


class Stray(NamedTuple):
    """The owner of pods that have the labels of an object, but do not belong to it."""

    kind: str
    name: str
    is_deleted: bool = False
    """It is being deleted."""
    blocked_by: str = ""
    """What blocks its deletion, as a clause."""


@dataclass(frozen=True)
class Strays:
    """What has the labels of an object and affects its clients or its pods, but does not belong to it."""

    workloads: tuple[Key, ...] = ()
    """The workloads that an earlier object of this name has left. The Service sends clients to their pods."""
    beside: tuple[Key, ...] = ()
    """What that object has left besides, without the policies: the first ones."""
    policies: tuple[Key, ...] = ()
    """The NetworkPolicy and the PodDisruptionBudget that it has left."""
    owners: tuple[Stray, ...] = ()
    """The owners of other pods to which the Service sends clients."""
    pods: tuple[str, ...] = ()
    """The names of such pods without an owner."""

    @property
    def is_transitional(self) -> bool:
        """Whether some of them can be those of a transition, for example while pods wait for the garbage collector."""
        return bool(self.owners or self.pods)


@dataclass(frozen=True)
class Snapshot:
    """One custom resource and the observed state around it. Each object was decoded once; do not modify them."""

    cr: Object
    """The custom resource."""
    children: Mapping[Key, Object] = field(default_factory=dict[Key, Object])
    """The objects that it controls."""
    pods: tuple[Object, ...] = ()
    """The pods of its workload, without those that have ended."""
    knowledge: Mapping[Resource, Knowledge] = field(default_factory=dict[Resource, Knowledge])
    """What is known of the optional and the referenced resources, and of the objects of others, in its namespace."""
    naming: Mapping[Resource, Knowledge] = field(default_factory=dict[Resource, Knowledge])
    """What is known of the resources whose objects can name it. While one is not listed, any object may."""
    foreign: Mapping[Resource, tuple[Any, ...]] = field(default_factory=dict[Resource, tuple[Any, ...]])
    """The views of the objects of others in its namespace, of the resources that its kind observes."""
    orphans: Mapping[Key, Object] = field(default_factory=dict[Key, Object])
    """The workloads that lost their owner reference, which it will adopt."""
    events: tuple[Object, ...] = ()
    """Events about failed mounts and pulls of some of the pods, if they were needed."""
    creation: tuple[Object, ...] = ()
    """What explains why pods are missing: Events about failed creations, and pods of others with the names of slots.
    `workloads.problems.creation` reduces both."""
    resize: Resize | None = None
    """None until the API server has reported it."""
    referenced: Mapping[Key, Any] = field(default_factory=dict[Key, Any])
    """What plans read of the existing objects that it names (`ReconciledKind.references`)."""
    referrers: Mapping[Key, Any] = field(default_factory=dict[Key, Any])
    """What plans read of the objects that name it."""
    ended: tuple[Object, ...] = ()
    """The pods of its workload that have ended, as far as they are kept: those that finalizers hold, and the last one
    that was evicted, or rejected by its node."""
    disruptions: tuple[Any, ...] = ()
    """The pods that Kubernetes itself has stopped lately (`workloads.problems.disruptions`)."""
    listed: frozenset[Any] | None = None
    """What its status reads of pods, if it needed a list of them (`ReconciledKind.listed`)."""
    strays: Strays = Strays()
    """What does not belong to it, but affects its clients or its pods, for its status."""

    @property
    def namespace(self) -> str:
        """The namespace of the custom resource."""
        return self.cr["metadata"]["namespace"]

    def known(self, resource: Resource) -> Knowledge:
        """What is known of a resource that a plan reads in its namespace."""
        return self.knowledge.get(resource, LISTED)

    def is_listed(self, resource: Resource) -> bool:
        """Whether the objects of a resource that a plan reads are known, and it is served."""
        return self.known(resource).state is State.LISTED

    def named(self, reference: "Reference[Part]", name: str) -> Part | None:
        """What plans read of the object with this name in the namespace; None if it does not exist."""
        return self.referenced.get(Key(reference.resource, self.cr["metadata"]["namespace"], name))

    def read_by(self, listed: "Listed[Item]") -> frozenset[Item] | None:  # noqa: ARG002 - for the type
        """What the status reads of a list of the pods; None without one. `listed`: that of the kind."""
        return self.listed

    def workload(self, resource: Resource) -> Object | None:
        """The live workload to which a plan is applied: the child, or the orphan that will be adopted; or None."""
        meta = self.cr["metadata"]
        return self.child(resource) or self.orphans.get(Key(resource, meta["namespace"], meta["name"]))

    def child(self, resource: Resource, name: str | None = None) -> Object | None:
        """The child with this name, by default that of the custom resource; None if it does not exist."""
        meta = self.cr["metadata"]
        return self.children.get(Key(resource, meta["namespace"], name or meta["name"]))


@dataclass(frozen=True)
class PodStep:
    """One write to a pod, only to this version of it."""

    pod: Object
    """The pod as the plan has seen it."""
    patch: Object | None = None
    """A strategic merge patch; None deletes the pod."""
    subresource: str = ""
    """The subresource that the patch is for, such as `resize`; empty for the pod itself."""
    remedy: str = ""
    """What a user can do if the API server rejects the write."""
    denied_remedy: str = ""
    """What a user can do if admission denies the write."""
    capacity_remedy: str = ""
    """What a user can do if admission denies it because the node of the pod is too small."""

    @property
    def verb(self) -> str:
        """The effect on the pod, for messages: `Pod a-0 cannot be deleted`."""
        return "deleted" if self.patch is None else "resized" if self.subresource else "updated"


@dataclass(frozen=True)
class PodUpdate:
    """The state of an update of pods that the operator makes itself."""

    complete: bool
    """All pods are updated."""
    step: PodStep | None = None
    """The next write, made when the children have been applied."""
    doing: Mapping[str, str] = field(default_factory=dict[str, str])
    """What happens to pods now, such as `is being resized`, by their names."""
    replaces: bool = False
    """The end of a pause replaces pods, and what they keep in memory is lost. False without a pause."""


class Observed(Protocol):
    """What a plan has compared with the objects of others."""

    @property
    def weight(self) -> int:
        """The strings that it keeps in memory."""
        ...

    def comparisons(self, resource: Resource) -> int:
        """The comparisons that `dependency` needs at most for an object of this resource."""
        ...

    def dependency(self, resource: Resource, view: Any) -> Hashable:
        """What the plan depends on of an object. If it is the same after a change, so is the plan.

        None if it does not depend on the object, as if that did not exist.
        """
        ...


@dataclass(frozen=True)
class Plan:
    """The desired children, and the problems that are known before they are applied."""

    children: tuple[Object, ...] | None
    """The desired children; None leaves all existing ones unchanged."""
    problems: tuple[Problem, ...] = ()
    """The problems that are known before the children are applied."""
    notices: tuple[str, ...] = ()
    """Sentences for the status that are not problems."""
    requeue_after: float | None = None
    """Seconds until the plan may change without an event; None if it cannot."""
    requeue_if_applied: float | None = None
    """The same, unless a child cannot be applied: then the back-off decides when it is tried again."""
    update: PodUpdate | None = None
    """The update of the pods; None if their workload updates them, or nothing does now."""
    interventions: tuple[Intervention, ...] = ()
    """What other clients did to children."""
    observed: Observed | None = None
    """What the plan has compared with the objects of others; None if it depends on each of their changes."""
    removes_named: bool = False
    """The plan removes what pods that name the object may use. They are listed before it is applied."""


def invalid(errors: Sequence[FieldError]) -> Plan:
    """The plan for a spec from which no sound children can be built."""
    return Plan(None, (Problem(c.INVALID_SPEC, summary(errors, MAX_ERRORS_LENGTH)),))


def kept_violations(errors: Sequence[FieldError]) -> tuple[str, ...]:
    """The notice about the violations with which an object is reconciled: it was stored before these rules existed."""
    if not errors:
        return ()
    return (f"The spec is applied, although it violates a newer rule: {summary(errors, MAX_KEPT_LENGTH)}",)


@dataclass(frozen=True)
class Outcome:
    """The result of a plan."""

    problems: tuple[Problem, ...] = ()
    """The problems of the plan, and those of applying it."""
    notices: tuple[str, ...] = ()
    """The notices of the plan."""
    update: PodUpdate | None = None
    """The update of the plan."""
    interventions: tuple[Intervention, ...] = ()
    """The last interventions of other clients."""


@dataclass(frozen=True)
class DesiredStatus:
    """The desired status of a custom resource."""

    status: dict[str, Any]
    """The complete status, without the times of its conditions."""
    requeue_after: float | None = None
    """Seconds until the status may change without an event; None if it cannot."""


class WorkloadType(Protocol):
    """The type of workload that runs the pods of a kind, such as Deployment."""

    @property
    def resource(self) -> Resource:
        """The resource of the workload."""
        ...

    def owns(self, pod: Object, workload: Object) -> bool:
        """True if the pod belongs to this workload. Labels alone, as on a copied pod, are not enough."""
        ...


@dataclass(frozen=True)
class Foreign:
    """The objects of others that plans read, in the namespace of the custom resource."""

    resources: tuple[Resource, ...] = ()
    """The resources of these objects."""
    reads: Callable[[Object], Object] = lambda obj: {"spec": obj.get("spec")}
    """The fields that are read of the other objects, besides their identity."""
    view: Callable[[Resource, Object], Any] = lambda _, obj: obj
    """The form in which a plan reads these fields, made once per change."""


@dataclass(frozen=True)
class Reference(Generic[Part]):
    """The objects of a kind of this operator that an object of another kind, or of the same one, names.

    They are in the namespace of the object. Each function is pure, and accepts an object without a valid spec.
    """

    resource: Resource
    """The resource of the objects that are named."""
    names: Callable[[Object], Iterable[str]]
    """The names in an object."""
    reads: Callable[[Object], Part] | None
    """What the plans of the object read of an object that it names. They get it from `Snapshot.named`. None if it has
    no plan, as a pod."""
    shows: Callable[[Object], Any] = lambda _: None
    """What the plans of a named object read of the object; the same value for all objects if they read nothing."""
    unknown: Callable[[Object], str] = lambda _: ""
    """Why it is not known which objects an object names, as a sentence; empty if it is. Of pods only."""


@dataclass(frozen=True)
class Listed(Generic[Item]):
    """What a status must know of all pods of the workload, although no event may have reported them yet."""

    needed: Callable[[Snapshot], bool]
    """Whether the status of a snapshot needs them. They are then listed before it is written."""
    reads: Callable[[Object], Item]
    """What it reads of a pod. It gets that from `Snapshot.read_by`."""


@dataclass(frozen=True)
class ReconciledKind:
    """The description of one kind of custom resource, from which the engine reconciles its objects."""

    resource: Resource
    """The resource of the custom resources."""
    app_name: str
    """The value of the label `app.kubernetes.io/name` on its children."""
    owns: tuple[Resource, ...]
    """The resources of its children."""
    workloads: tuple[WorkloadType, ...]
    """The types of workload that run its pods; an object has one of them."""
    plan: Callable[[Snapshot, datetime], Plan]
    """Compute the plan from a snapshot and the current time. A pure function."""
    status: Callable[[Snapshot, Outcome, datetime], DesiredStatus]
    """Compute the status from the same snapshot, the result of the plan and the current time. A pure function."""
    optional: tuple[Resource, ...] = ()
    """Those of `owns` whose API a cluster may lack. A plan must not contain children of one that is not listed."""
    foreign: Foreign = Foreign()
    """What a plan reads of the objects of others, which are not of a kind of this operator."""
    references: tuple[Reference[Any], ...] = ()
    """The objects of kinds of this operator that an object names."""
    pod_references: tuple[Reference[Any], ...] = ()
    """Those that its pods name, also after their owner was deleted."""
    owners: Callable[[Resource, str], Iterable[tuple[str, int]]] = lambda _, name: [(name, 0)]
    """The names of the objects that can have a child of this resource and name, and the least size of each."""
    loss: str = ""
    """What is lost with a pod, as a clause; empty if nothing is."""
    updates_pods: bool = False
    """Its plans contain steps that change and delete pods."""
    listed: Listed[Any] | None = None
    """The pods that its status must know."""
    restart: Callable[[Object], str] | None = None
    """The remedy for users who want to replace the pods of an object with `spec.rollout.restartedAt`, and what that
    costs. None if the kind has no such field."""
    template_remedy: Callable[[Object], str] | None = None
    """The remedy if a policy requires a label or an annotation of the pod template, and what that costs, as a clause.
    None if the spec has no field for it."""

    def workload_keys(self, key: Key) -> list[Key]:
        """The keys that the workload of an object can have."""
        return [Key(each.resource, key.namespace, key.name) for each in self.workloads]

    def key_of(self, child: Object) -> Key:
        """The key of a desired child."""
        type_ = (child["apiVersion"], child["kind"])
        return key_of(next(owned for owned in self.owns if (owned.api_version, owned.kind) == type_), child)
