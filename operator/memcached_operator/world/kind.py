"""What is watched for a kind: its objects, their children, and the objects that they name."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memcached_operator.kube.resource import Key, Object, Resource, key_of
from memcached_operator.world.pod import Head

Part_co = TypeVar("Part_co", covariant=True)


@dataclass(frozen=True)
class Reference(Generic[Part_co]):
    """The objects of a kind of this operator that an object of another kind, or of the same one, names.

    They are in the namespace of the object. Each function is pure, and accepts an object without a valid spec.
    """

    resource: Resource
    """The resource of the objects that are named."""
    names: Callable[[Object], Iterable[str]]
    """The names in an object."""
    reads: Callable[[Object], Part_co] | None
    """What the plans of the object read of an object that it names. They get it from `Snapshot.named`. None if it has
    no plan, as a pod."""
    shows: Callable[[Object], object] = lambda _: None
    """What the plans of a named object read of the object; the same value for all objects if they read nothing."""
    unknown: Callable[[Object], str] = lambda _: ""
    """Why it is not known which objects an object names, as a sentence; empty if it is. Of pods only."""


class WorkloadType(Protocol):
    """The type of workload that runs the pods of a kind, such as Deployment."""

    @property
    def resource(self) -> Resource:
        """The resource of the workload."""
        ...

    def owns(self, pod: Head, workload: Object) -> bool:
        """True if the pod belongs to this workload. Labels alone, as on a copied pod, are not enough."""
        ...


@dataclass(frozen=True, kw_only=True)
class WatchedKind:
    """One kind of custom resource, as far as the world around its objects is concerned."""

    resource: Resource
    """The resource of the custom resources."""
    app_name: str
    """The value of the label `app.kubernetes.io/name` on its children."""
    owns: tuple[Resource, ...]
    """The resources of its children."""
    workloads: tuple[WorkloadType, ...]
    """The types of workload that run its pods; an object has one of them."""
    optional: tuple[Resource, ...] = ()
    """Those of `owns` whose API a cluster may lack. A plan must not contain children of one that is not listed."""
    references: tuple[Reference[object], ...] = ()
    """The objects of kinds of this operator that an object names."""
    pod_references: tuple[Reference[object], ...] = ()
    """Those that its pods name, also after their owner was deleted."""
    owners: Callable[[Resource, str], Iterable[tuple[str, int]]] = lambda _, name: [(name, 0)]
    """The names of the objects that can have a child of this resource and name, and the least size of each."""

    def workload_keys(self, key: Key) -> list[Key]:
        """The keys that the workload of an object can have."""
        return [Key(each.resource, key.namespace, key.name) for each in self.workloads]

    def key_of(self, child: Object) -> Key:
        """The key of a desired child."""
        type_ = (child["apiVersion"], child["kind"])
        return key_of(next(owned for owned in self.owns if (owned.api_version, owned.kind) == type_), child)
