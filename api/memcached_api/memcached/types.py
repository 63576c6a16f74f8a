"""The kind Memcached of cache.example.com: its spec, status and defaults. The rules are in rules."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, field

from memcached_api.conditions import Condition
from memcached_api.effects import KEEPS, REPLACES, Effect, FieldEffect, Needs, Part
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.kind import PROBLEM_COLUMNS, STATE_COLUMNS, Checked, Column, Kind
from memcached_api.kubernetes import LIST_BY_NAME, LIST_BY_TYPE, LocalObjectReference, Quantity, Resources
from memcached_api.memcached.extstore import Extstore
from memcached_api.memcached.memory import (
    DEFAULT_CONNECTIONS,
    DEFAULT_ITEM_SIZE,
    DEFAULT_THREADS,
    MAX_CONNECTIONS,
    MAX_THREADS,
    MIN_CONNECTIONS,
)
from memcached_api.memcached.monitoring import Monitoring
from memcached_api.memcached.options import MAX_ITEM_LENGTH, MAX_ITEMS
from memcached_api.memcached.placing import RolloutSpec, Service
from memcached_api.memcached.rules.spec import RULES, STABLE, TRANSITIONS
from memcached_api.memcached.scaling import Scaling, ScalingStatus, Warm
from memcached_api.memcached.tls import TLS, Auth
from memcached_api.memcached.warm_up import WarmUp
from memcached_api.quantity import parse_quantity
from memcached_api.shared.agent import Agent
from memcached_api.shared.metadata import InheritedMetadata
from memcached_api.shared.monitoring import is_enabled
from memcached_api.shared.pod_template import NetworkPolicy, PodDisruptionBudget, PodTemplate
from memcached_api.shared.tls import MIN_PORT
from memcached_api.validation.common_rules import MAX_PORT, MAX_SIZE, MIN_SIZE

GROUP: Final = "cache.example.com"
VERSION: Final = "v1"  # the storage version
VERSIONS: Final = ("v1", "v1alpha1")  # one schema for both, so no conversion is needed
KIND: Final = "Memcached"
PLURAL: Final = "memcacheds"
SHORT_NAMES: Final = ("mc",)

DEFAULT_SIZE: Final = 1
DEFAULT_CONTAINER_PORT: Final = 11211  # memcached's own default
DEFAULT_VERBOSITY: Final = 1

_IMAGE: Final = FieldEffect(Effect.RESTART, Needs.WARM, Part.IMAGE)
_ARGUMENT: Final = FieldEffect(Effect.RESTART, Needs.WARM, Part.ARGUMENTS)
_SIZED_ARGUMENT: Final = _ARGUMENT._replace(sizes=True)


class CacheSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The cache of each memcached server."""

    memory: Annotated[Quantity, FieldEffect(Effect.RESIZE, Needs.GROWTH, Part.MEMORY, sizes=True)] | None = None
    """Memory for cached items in each pod, from 2Mi to 1Pi: memcached's `-m`, rounded down to whole mebibytes. The
    container's memory request and limit are derived from it unless `resources` sets them. If absent, it is derived from
    the memory limit in `resources`, or is 64Mi without a limit."""

    max_item_size: Annotated[Quantity, REPLACES.unless(DEFAULT_ITEM_SIZE, parse_quantity)] | None = None
    """Size of the largest item, including its key and header: memcached's `-I`. A multiple of 512Ki, from 512Ki to half
    of the cache memory, at most 1Gi. Defaults to 1Mi."""

    max_connections: (
        Annotated[int, Meta(ge=MIN_CONNECTIONS, le=MAX_CONNECTIONS), _SIZED_ARGUMENT.unless(DEFAULT_CONNECTIONS)] | None
    ) = None
    """Maximum number of connections to each pod: memcached's `-c`. At least 5 times `threads` plus 10. Additional
    clients get an error. Defaults to 1024."""

    threads: Annotated[int, Meta(ge=1, le=MAX_THREADS), _SIZED_ARGUMENT.unless(DEFAULT_THREADS)] | None = None
    """Number of threads that process requests: memcached's `-t`. More threads than CPUs make memcached slower. Defaults
    to 4."""

    evictions: Annotated[bool, _ARGUMENT.unless(True)] | None = None
    """Whether a full cache evicts old items to store new ones. If false, clients get an error: memcached's `-M`.
    Defaults to true."""

    verbosity: Annotated[int, Meta(ge=0, le=2), _ARGUMENT.unless(DEFAULT_VERBOSITY)] | None = None
    """What memcached logs. 0: only errors at startup. 1: errors and warnings (`-v`). 2: also the commands of clients,
    including keys (`-vv`). Defaults to 1."""

    extra_args: Annotated[
        list[Annotated[str, Meta(max_length=MAX_ITEM_LENGTH)]],
        Meta(max_length=MAX_ITEMS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
        _SIZED_ARGUMENT._replace(needs=Needs.LAYOUT),
    ] = []
    """Additional options of memcached, one per item: `--name`, `--name=value` or `-o key=value`. Options that could
    break the guarantees of other fields are rejected."""

    warm_restart: Annotated[bool, REPLACES.unless(False)] | None = None
    """Whether the items survive a restart of memcached in its pod. They are kept in a volume in memory. Requires
    `identity: Stable` and a `memory` of at least 64Mi, of which memcached reserves 1Mi for each of 39 slab classes.
    Defaults to false."""

    extstore: Extstore | None = None
    """Items on a disk, in addition to those in memory. They do not survive a restart of memcached. Requires `identity:
    Stable` and `memory`."""


class MemcachedSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The desired state of the cache servers."""

    size: Annotated[int, Meta(ge=MIN_SIZE, le=MAX_SIZE), KEEPS] = DEFAULT_SIZE
    """Number of memcached pods. Clients distribute their keys over them."""

    container_port: Annotated[int, Meta(ge=MIN_PORT, le=MAX_PORT), REPLACES] = DEFAULT_CONTAINER_PORT
    """Port of every memcached server and of the Service. With `tls`, it is the port for TLS unless `tls.port` is set.
    """

    image: Annotated[str, Meta(min_length=1, max_length=MAX_IMAGE_LENGTH), _IMAGE] | None = None
    """Container image of memcached. If it is absent on creation, or if you remove a value that you set, the mutating
    webhook sets the operator's current default. Later releases do not change it."""

    image_pull_policy: Annotated[Literal["Always", "IfNotPresent", "Never"], REPLACES] | None = None
    """When the kubelet pulls the image: `Always`, `IfNotPresent` or `Never`. Defaults to `Always` for the tag `latest`,
    otherwise to `IfNotPresent`."""

    image_pull_secrets: Annotated[
        list[LocalObjectReference], Meta(max_length=16, extra_json_schema=LIST_BY_NAME), REPLACES
    ] = []
    """Image pull secrets in this namespace."""

    resources: Resources | None = None
    """Compute resources of each memcached container. By default, the CPU request is `100m`, and the memory request and
    limit are max(128Mi, 1.25 × the expected need of `cache`). If `cache.memory` is derived from a memory limit, the
    memory request defaults to this limit."""

    cache: CacheSpec = field(default_factory=CacheSpec)
    """The cache of each memcached server."""

    pod_template: PodTemplate | None = None
    """Where the pods run, and their metadata. A subset of a Kubernetes pod template."""

    pod_disruption_budget: PodDisruptionBudget | None = None
    """How many pods node drains may evict at the same time. If it is absent on creation or removed later, the mutating
    webhook sets `enabled: true` and `maxUnavailable: 1`. Without the webhook, there is no PodDisruptionBudget."""

    rollout: RolloutSpec | None = None
    """How pods are replaced when a change requires it."""

    scaling: Scaling | None = None
    """How `size` changes."""

    network_policy: NetworkPolicy | None = None
    """Which clients may connect. `{}` admits all pods in this namespace. If absent, there is no NetworkPolicy."""

    service: Service | None = None
    """Labels and annotations of the Service, and whether each slot has its own Service."""

    identity: Annotated[Literal["Pooled", "Stable"], KEEPS] | None = None
    """How clients address the pods. `Pooled`: a Deployment whose pods have changing names and addresses. `Stable`: a
    StatefulSet with one slot per pod. Each slot has a DNS name, which a replacement pod keeps. It cannot be changed.
    Defaults to `Pooled`."""

    monitoring: Monitoring | None = None
    """Metrics of each memcached server. `{}` enables them."""

    agent: Agent | None = None
    """The agent, a second container in each pod. It runs only if `monitoring`, `tls`, `auth`, `rollout.warmUp`,
    `cache.warmRestart` or `cache.extstore` needs it."""

    tls: TLS | None = None
    """TLS for clients. If absent, memcached serves plain text. A change replaces the pods; a new certificate in the
    Secret does not."""

    auth: Auth | None = None
    """User names and passwords. If absent, every client that can connect has access. A change replaces the pods; new
    passwords in the Secret do not."""

    inherited_metadata: InheritedMetadata | None = None
    """Labels and annotations of all objects that the operator creates for this one, such as Services. They are not
    added to the pods or to selectors, so a change does not replace the pods."""


class ExtstoreStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The disk of each memcached server."""

    file: str = ""
    """Size of memcached's file."""

    volume: str = ""
    """`Claim` or `EmptyDir`."""


class CacheStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The settings in effect on each memcached server, including defaults."""

    memory: str = ""
    """Memory for cached items."""

    max_item_size: str = ""
    """Size of the largest item."""

    max_connections: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Maximum number of client connections."""

    threads: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Number of threads that process requests."""

    extstore: ExtstoreStatus | None = None
    """The disk of each memcached server, if items are on disks."""


class MemcachedStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The last observed state."""

    observed_generation: int = 0
    """The `metadata.generation` of the spec that this status refers to."""

    replicas: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Number of pods that exist, without those of a Deployment that are being deleted."""

    updated_replicas: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Number of pods that run the current pod template."""

    ready_replicas: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Number of pods that are ready."""

    selector: str = ""
    """Label selector of the pods as text, for `kubectl scale` and autoscalers."""

    nodes: Annotated[list[str], Meta(extra_json_schema={"x-kubernetes-list-type": "set"})] = []
    """Sorted names of the running pods."""

    conditions: Annotated[list[Condition], Meta(extra_json_schema=LIST_BY_TYPE)] = []
    """The conditions Available, Progressing, Degraded and Ready, in this order, then Stalled while it is true."""

    cache: CacheStatus | None = None
    """The settings in effect on each memcached server, including defaults."""

    servers: Annotated[list[str], Meta(extra_json_schema={"x-kubernetes-list-type": "atomic"})] = []
    """The addresses of the slots, `host:port`, in order, for clients that distribute keys over them. The list follows
    `spec.size`, or `scaling`, even while pods are not ready. Only with `identity: Stable`."""

    scaling: ScalingStatus | None = None
    """A change of size with `spec.scaling.warm`."""


FEATURES: Final[Mapping[str, str]] = {
    "podDisruptionBudget": "A PodDisruptionBudget, which the webhook sets in new objects and if you remove it",
    "monitoring": "Metrics",
    "monitoring.podMonitor": "A PodMonitor",
    "monitoring.rules": "Alerts",
    "monitoring.tls": "Metrics over HTTPS",
    "monitoring.insight": "Predicted hit ratios",
    "networkPolicy": "A NetworkPolicy",
    "tls": "TLS for clients",
    "auth": "User names and passwords",
    "rollout.warmUp": "Rollouts and drains that wait for warm pods",
    "cache.warmRestart": "Items that survive a restart of memcached",
    "cache.extstore": "Items on disks",
    "scaling.warm": "Changes of size that move keys in phases",
    "service.perPod": "A Service for each slot",
    "rollout.paused": "Pausing rollouts",
    "identity": "Slots with stable names",
    "tls.clientAuth": "Client certificates",
    "tls.plaintext": "A port without TLS in addition to the TLS port",
}
"""Each feature by the path of its field in `spec`. The type of the field determines how it is switched on: see
`Kind.features`."""

MEMCACHED: Final = Kind(
    group=GROUP,
    versions=VERSIONS,
    name=KIND,
    plural=PLURAL,
    short_names=SHORT_NAMES,
    description="A group of independent memcached servers with the same image and size, and a headless Service "
    "through which clients discover all of them.",
    spec=MemcachedSpec,
    status=MemcachedStatus,
    rules=RULES,
    in_place=True,
    columns=(
        *STATE_COLUMNS,
        Column("Port", "integer", ".spec.containerPort", "Port of memcached"),
        Column("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column("Memory", "string", ".status.cache.memory", "Memory for items, per pod", 1),
        Column("Disk", "string", ".status.cache.extstore.file", "File of items on a disk, per pod", 1),
        Column("Image", "string", ".spec.image", "Image of memcached", 1),
        Column("Agent", "string", ".spec.agent.image", "Image of the agent", 1),
        *PROBLEM_COLUMNS,
    ),
    transitions=TRANSITIONS,
    features=FEATURES,
)


def needs_agent(spec: MemcachedSpec) -> bool:
    """Whether each pod has an agent."""
    needed = any(section is not None for section in (spec.tls, spec.auth, warm_up_of(spec), spec.cache.extstore))
    return needed or is_enabled(spec.monitoring) or restarts_warm(spec)


def restarts_warm(spec: MemcachedSpec) -> bool:
    """Whether the items survive a restart of memcached in its pod."""
    return spec.cache.warm_restart is True


def warm_up_of(spec: MemcachedSpec) -> WarmUp | None:
    """The condition for a replaced pod to be warm; None if it must only be ready."""
    return None if spec.rollout is None else spec.rollout.warm_up


def warm_scaling_of(spec: MemcachedSpec) -> Warm | None:
    """How keys move when the size changes; None if the size simply changes."""
    return None if spec.scaling is None else spec.scaling.warm


def serves_https(spec: MemcachedSpec) -> bool:
    """Whether the agent serves metrics, and only over HTTPS."""
    monitoring = spec.monitoring
    return monitoring is not None and is_enabled(monitoring) and is_enabled(monitoring.tls)


def has_insight(spec: MemcachedSpec) -> bool:
    """Whether the agent predicts the hit ratio with other memory, over a second connection to memcached."""
    monitoring = spec.monitoring
    return monitoring is not None and is_enabled(monitoring) and is_enabled(monitoring.insight)


def is_stable(spec: MemcachedSpec) -> bool:
    """Whether each pod has a slot with a DNS name that stays."""
    return spec.identity == STABLE


def decode_spec(obj: Mapping[str, Any]) -> MemcachedSpec:
    """The spec of a Memcached object, with defaults and without unknown fields.

    Raises SpecDecodeError with all structural errors if it cannot be decoded. A decoded spec can still violate a
    rule: see `Kind.validate`.
    """
    return MEMCACHED.decode(obj)


def check(obj: Any) -> Checked[MemcachedSpec]:
    """The spec from which the children of a stored Memcached are built, or None, and all errors. Never raises."""
    return MEMCACHED.check(obj)
