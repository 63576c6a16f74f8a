"""One custom resource and the observed state around it."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.world.kind import Reference
from memcached_operator.world.knowledge import LISTED, Knowledge, State
from memcached_operator.world.other_budgets import NO_BUDGETS, OtherBudgets
from memcached_operator.world.pod import Pod

Part = TypeVar("Part")
Item = TypeVar("Item", bound=Hashable)


class Resize(IntEnum):
    """The changes of requests and limits of running pods that the cluster supports."""

    NONE = 0
    RAISE = 1
    """All but lower a memory limit, or add one."""
    ANY = 2


class Message(NamedTuple):
    """The message of an Event."""

    seen: datetime
    """The time of its last occurrence."""
    text: str


Messages = Mapping[str, tuple[Message, ...]]
"""The messages about objects, by uid."""

NO_MESSAGES: Final[Messages] = MappingProxyType({})


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
    pods: tuple[Pod, ...] = ()
    """The pods of its workload, without those that have ended."""
    knowledge: Mapping[Resource, Knowledge] = field(default_factory=dict[Resource, Knowledge])
    """What is known of the optional and the referenced resources in its namespace."""
    naming: Mapping[Resource, Knowledge] = field(default_factory=dict[Resource, Knowledge])
    """What is known of the resources whose objects can name it. While one is not listed, any object may."""
    other_budgets: OtherBudgets = NO_BUDGETS
    """What is known of the PodDisruptionBudgets of other owners in its namespace, if its plan needs it."""
    orphans: Mapping[Key, Object] = field(default_factory=dict[Key, Object])
    """The workloads that lost their owner reference, which it will adopt."""
    messages: Messages = field(default_factory=dict[str, tuple[Message, ...]])
    """What Events say about pods and the workload that are late (`findings.event_reads`)."""
    taken: tuple[Object, ...] = ()
    """The pods of others with the names of missing slots. `findings.creation` reduces them."""
    resize: Resize | None = None
    """None until the API server has reported it."""
    referenced: Mapping[Key, Any] = field(default_factory=dict[Key, Any])
    """What plans read of the existing objects that it names (`ReconciledKind.references`)."""
    referrers: Mapping[Key, Any] = field(default_factory=dict[Key, Any])
    """What plans read of the objects that name it."""
    ended: tuple[Pod, ...] = ()
    """The pods of its workload that have ended, as far as they are kept: those that finalizers hold, and the last one
    that was evicted, or rejected by its node."""
    disruptions: tuple[Any, ...] = ()
    """The pods that Kubernetes itself has stopped lately (`findings.disruptions`)."""
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

    def named(self, reference: Reference[Part], name: str) -> Part | None:
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
class Listed(Generic[Item]):
    """What a status must know of all pods of the workload, although no event may have reported them yet."""

    needed: Callable[[Snapshot], bool]
    """Whether the status of a snapshot needs them. They are then listed before it is written."""
    reads: Callable[[Pod], Item]
    """What it reads of a pod. It gets that from `Snapshot.read_by`."""
