"""Pods with types: the fields that `kept_fields.pod` keeps.

A field that a pod does not have is empty. Anyone can write the texts, so they are checked where they are read.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final, TypeVar

import msgspec

from memcached_operator.kube.resource import Object, nested_map

T = TypeVar("T")

log = logging.getLogger(__name__)

Amounts = Mapping[str, Mapping[str, str]]
"""Quantities by name, such as `memory`, of `requests` and `limits`."""


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of a pod. No part refers to one that contains it, so there is nothing for the garbage collector."""


class OwnerReference(_Part, frozen=True):
    """A reference to an owner."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ManagedFields(_Part, frozen=True):
    """An entry of `metadata.managedFields`, without the fields."""

    manager: str = ""
    subresource: str = ""
    time: str | None = None


class Head(_Part, frozen=True):
    """The part of the metadata of an object that says to what it belongs."""

    uid: str = ""
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference with `controller: true`, or None."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Metadata(Head, frozen=True):
    """The metadata of a pod."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}
    managed_fields: tuple[ManagedFields, ...] = ()


class _Port(_Part, frozen=True):
    name: str = ""
    container_port: int = 0


class Resources(_Part, frozen=True):
    """Requests and limits, by name."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}

    @property
    def amounts(self) -> Amounts:
        """The same as a mapping, without an empty part, in the order of records of updates."""
        parts = {"limits": self.limits, "requests": self.requests}
        return {name: values for name, values in parts.items() if values}


class Container(_Part, frozen=True):
    """A container of a spec. `restart_policy`: of an init container."""

    name: str = ""
    image: str = ""
    ports: tuple[_Port, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""


class _KeyToPath(_Part, frozen=True):
    key: str = ""


class _ProjectedSecret(_Part, frozen=True):
    name: str = ""
    optional: bool = False
    items: tuple[_KeyToPath, ...] = ()


class _SecretVolume(_ProjectedSecret, frozen=True):
    name: str = msgspec.field(default="", name="secretName")


class _Projection(_Part, frozen=True):
    secret: _ProjectedSecret | None = None


class _Projected(_Part, frozen=True):
    sources: tuple[_Projection, ...] = ()


class _Volume(_Part, frozen=True):
    name: str = ""
    secret: _SecretVolume | None = None
    projected: _Projected | None = None
    ephemeral: _Part | None = None


class _Spec(_Part, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()
    readiness_gates: tuple[dict[str, str], ...] = ()
    scheduling_gates: tuple[dict[str, str], ...] = ()
    node_name: str = ""


class Explained(_Part, frozen=True):
    """A state with its cause. Each text may be empty."""

    reason: str = ""
    message: str = ""


class Condition(Explained, frozen=True):
    """A condition. `type`: empty if it is not reported."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None

    @property
    def is_true(self) -> bool:
        """Whether its status is True."""
        return self.status == "True"


class _Running(_Part, frozen=True):
    started_at: str | None = None


class Terminated(Explained, frozen=True):
    """The state of a container that has ended."""

    exit_code: int = 0
    finished_at: str | None = None
    container_id: str = msgspec.field(default="", name="containerID")


class _State(_Part, frozen=True):
    running: _Running | None = None
    waiting: Explained | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True):
    """The status of a container. `resources`, `allocated_resources`: None if its node does not report them."""

    name: str = ""
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State = _State()
    last_state: _State = _State()
    resources: Resources | None = None
    allocated_resources: dict[str, str] | None = None

    @property
    def waiting(self) -> Explained:
        """The cause for which it waits; empty if it does not wait."""
        return self.state.waiting or NOT_WAITING

    @property
    def has_run(self) -> bool:
        """Whether it has been started."""
        return bool(self.state.running or self.state.terminated or self.last_state.terminated)


class _Status(Explained, frozen=True):
    """The status of a pod. `observed_generation`: None before Kubernetes 1.34."""

    phase: str = ""
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


NO_SPEC: Final = Container()
NOT_WAITING: Final = Explained()
NOT_REPORTED: Final = Condition()
NO_STATE: Final = _State()
NO_STATUS: Final = ContainerStatus()
_ENDED: Final = ("Succeeded", "Failed")


class Pod(msgspec.Struct, frozen=True, dict=True):
    """A pod. What follows from its fields is computed once."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @cached_property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @cached_property
    def is_active(self) -> bool:
        """False if it has completed or is being deleted."""
        return not self.has_completed and not self.is_deleted

    @cached_property
    def is_deleted(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.metadata.deletion_timestamp)

    @cached_property
    def has_completed(self) -> bool:
        """Whether all of its containers have ended for good."""
        return self.status.phase in _ENDED

    @cached_property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        return self.condition("Ready").is_true

    @cached_property
    def is_unreported(self) -> bool:
        """Whether its node has stopped to report: then the node lifecycle controller changes only the status of the
        condition Ready. A kubelet writes the reason, too, such as ReadinessGatesNotReady.
        """
        ready = self.condition("Ready")
        return ready.status == "False" and not ready.reason and self.condition("ContainersReady").is_true

    @cached_property
    def containers(self) -> Sequence[tuple[Container, ContainerStatus]]:
        """The status of each container that has one, after its spec."""
        return [(self.container(each.name), each) for each in self.status.container_statuses]

    @cached_property
    def init_containers(self) -> Sequence[tuple[Container, ContainerStatus]]:
        """The same of the init containers."""
        specs = {each.name: each for each in self.spec.init_containers}
        return [(specs.get(each.name, NO_SPEC), each) for each in self.status.init_container_statuses]

    @cached_property
    def _specs(self) -> Mapping[str, Container]:
        return {each.name: each for each in self.spec.containers}

    @cached_property
    def _conditions(self) -> Mapping[str, Condition]:
        return {each.type: each for each in reversed(self.status.conditions)}

    @cached_property
    def _statuses(self) -> Mapping[str, ContainerStatus]:
        return {each.name: each for each in reversed(self.status.container_statuses)}

    def condition(self, name: str) -> Condition:
        """A condition; NOT_REPORTED without it."""
        return self._conditions.get(name, NOT_REPORTED)

    def container(self, name: str) -> Container:
        """The spec of a container; NO_SPEC without it."""
        return self._specs.get(name, NO_SPEC)

    def container_status(self, name: str) -> ContainerStatus:
        """The status of a container; NO_STATUS if it is not reported."""
        return self._statuses.get(name, NO_STATUS)

    def serves(self, container: str) -> bool:
        """Whether a container is ready, also if the pod is not."""
        return self.is_active and self.container_status(container).ready


_PODS: Final = msgspec.json.Decoder(Pod)


def decoded(json: bytes) -> Pod | None:
    """The pod in the JSON of a store; None as for `pod_of`."""
    return _valid(_PODS.decode, json)


def pod_of(obj: Object) -> Pod | None:
    """A pod as the API server returns it. None if a field has another type, which no API server stores: such a pod is
    ignored, with a line in the log, so that it does not stop its object.
    """
    return _valid(partial(msgspec.convert, type=Pod), obj)


def _valid(decode: Callable[[T], Pod], content: T) -> Pod | None:
    try:
        return decode(content)
    except msgspec.ValidationError as error:
        log.warning("a pod is ignored, because it is not valid: %s", error)
        return None


def has_completed(obj: Object) -> bool:
    """The same as of a Pod, of one that is not decoded."""
    return nested_map(obj, "status").get("phase") in _ENDED


def running_pod_names(pods: Iterable[Pod]) -> list[str]:
    """Sorted names of the running pods that are not being deleted."""
    return sorted(pod.name for pod in pods if pod.is_active and pod.status.phase == "Running")


def by_name(pods: Iterable[Pod]) -> list[Pod]:
    """The pods in the order of their names."""
    return sorted(pods, key=lambda pod: pod.name)


def times_of_conditions(pod: Pod) -> Iterator[str | None]:
    """The times at which the conditions of a pod have changed, and at which it was created."""
    yield from (each.last_transition_time for each in pod.status.conditions)
    yield pod.metadata.creation_timestamp
