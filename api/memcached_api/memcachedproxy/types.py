"""The kind MemcachedProxy of cache.example.com: its spec, status and defaults. The rules are in rules.py."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, field

from memcached_api.conditions import Condition
from memcached_api.effects import KEEPS, REPLACES
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.kind import PROBLEM_COLUMNS, STATE_COLUMNS, Checked, Column, Kind
from memcached_api.kubernetes import LIST_BY_NAME, LIST_BY_TYPE, LocalObjectReference, Resources
from memcached_api.memcachedproxy.limits import (
    DEFAULT_CONNECTIONS,
    DEFAULT_PORT,
    DEFAULT_SIZE,
    DEFAULT_THREADS,
    DEFAULT_TIMEOUT,
    MAX_CONNECTIONS,
    MAX_THREADS,
    MIN_CONNECTIONS,
    seconds,
)
from memcached_api.memcachedproxy.rules import RULES
from memcached_api.scheduling import Annotations, Labels
from memcached_api.shared import pod_template
from memcached_api.shared.agent import Agent
from memcached_api.shared.metadata import InheritedMetadata
from memcached_api.shared.monitoring import Monitoring, is_enabled
from memcached_api.shared.pod_template import IntOrPercent, NetworkPolicy, PodDisruptionBudget, PodTemplate
from memcached_api.shared.tls import MIN_PORT, TLS
from memcached_api.validation.common_rules import MAX_NAME_LENGTH, MAX_PORT, MAX_SIZE, MIN_SIZE

GROUP: Final = "cache.example.com"
VERSION: Final = "v1alpha1"
KIND: Final = "MemcachedProxy"
PLURAL: Final = "memcachedproxies"
SHORT_NAMES: Final = ("mcproxy",)  # mcp is OpenShift's MachineConfigPool

MAX_CACHES: Final = 16
"""Memcacheds that pods of one proxy can use at the same time, while the reference changes."""

_COUNT: Final = Meta(extra_json_schema={"format": "int32"})


class MemcachedRef(msgspec.Struct, frozen=True, rename="camel"):
    """The Memcached in this namespace that serves the requests."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH), REPLACES]
    """Name of a Memcached in this namespace. It needs `identity: Stable`, and must serve clients without passwords and
    without TLS."""


Timeout = Annotated[str, Meta(min_length=1, max_length=8), REPLACES.unless(seconds(DEFAULT_TIMEOUT), seconds)]


class Timeouts(msgspec.Struct, frozen=True, rename="camel"):
    """How long a request waits for a server. Three failures mark a server as unreachable; then requests fail at once,
    and memcached tries to connect again every second."""

    connect: Timeout | None = None
    """Maximum time to connect to a server, from `10ms` to `60s`. Defaults to `500ms`."""

    read: Timeout | None = None
    """Maximum time to wait for a response, from `10ms` to `60s`. Defaults to `500ms`."""


class Rollout(pod_template.Rollout, frozen=True, rename="camel"):
    """How pods are replaced when a change requires it, such as another number of slots."""

    max_unavailable: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of pods, or percentage rounded down, that may be unavailable during a rollout. Defaults to 0, or
    to 1 with `maxSurge: 0`."""

    max_surge: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of additional pods, or percentage rounded up, during a rollout. Defaults to 100%: all new pods
    start at once, so that old and new pods distribute keys differently for as short as possible."""


class Service(pod_template.Service, frozen=True, rename="camel"):
    """Labels and annotations of the Service, in addition to the operator's, and the choice of pods."""

    annotations: Annotated[Annotations, KEEPS] = field(default_factory=dict[str, str])
    """Annotations of the Service. Keys that the operator sets are rejected."""

    labels: Annotated[Labels, KEEPS] = field(default_factory=dict[str, str])
    """Labels of the Service. Keys that the operator sets are rejected."""

    traffic_distribution: Annotated[Literal["PreferClose", "PreferSameZone", "PreferSameNode"], KEEPS] | None = None
    """`PreferSameZone`: clients connect to proxies in their own zone, if there are any. `PreferSameNode`: to those on
    their own node, otherwise in their own zone, if there are any. Both require Kubernetes 1.34. `PreferClose`: the
    former name of `PreferSameZone`, requires Kubernetes 1.31. Defaults to all proxies."""


class MemcachedProxySpec(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The desired state of the proxies."""

    memcached_ref: MemcachedRef
    """The Memcached that serves the requests. If you change it, all keys are read from another cache."""

    size: Annotated[int, Meta(ge=MIN_SIZE, le=MAX_SIZE), KEEPS] = DEFAULT_SIZE
    """Number of proxies. Each of them serves every key."""

    port: Annotated[int, Meta(ge=MIN_PORT, le=MAX_PORT), REPLACES] = DEFAULT_PORT
    """Port of every proxy and of the Service."""

    image: Annotated[str, Meta(min_length=1, max_length=MAX_IMAGE_LENGTH), REPLACES] | None = None
    """Container image of memcached, release 1.6.45 or later with the proxy, which the official image contains. If it is
    absent on creation, or if you remove a value that you set, the mutating webhook sets the operator's current default.
    Later releases do not change it."""

    image_pull_policy: Annotated[Literal["Always", "IfNotPresent", "Never"], REPLACES] | None = None
    """When the kubelet pulls the image: `Always`, `IfNotPresent` or `Never`. Defaults to `Always` for the tag `latest`,
    otherwise to `IfNotPresent`."""

    image_pull_secrets: Annotated[
        list[LocalObjectReference], Meta(max_length=16, extra_json_schema=LIST_BY_NAME), REPLACES
    ] = []
    """Image pull secrets in this namespace."""

    resources: Resources | None = None
    """Compute resources of each container. By default, the CPU request is `100m`. The default memory request and limit
    follow from `threads`, `maxConnections`, `tls` and the `maxItemSize` of the Memcached. A memory limit that you set
    determines how many values the proxy can hold at the same time."""

    threads: Annotated[int, Meta(ge=1, le=MAX_THREADS), REPLACES.unless(DEFAULT_THREADS)] | None = None
    """Number of threads that process requests: memcached's `-t`. Each of them has its own connection to each server.
    Defaults to 2."""

    max_connections: (
        Annotated[int, Meta(ge=MIN_CONNECTIONS, le=MAX_CONNECTIONS), REPLACES.unless(DEFAULT_CONNECTIONS)] | None
    ) = None
    """Maximum number of clients that are connected to each proxy. Additional clients get an error. memcached's `-c` is
    higher, because it includes the connections to the servers. Defaults to 4096."""

    timeouts: Timeouts | None = None
    """How long a request waits for a server."""

    pod_template: PodTemplate | None = None
    """Where the pods run, and their metadata. A subset of a Kubernetes pod template."""

    pod_disruption_budget: PodDisruptionBudget | None = None
    """How many pods node drains may evict at the same time. If it is absent on creation or removed later, the mutating
    webhook sets `enabled: true` and `maxUnavailable: 1`. Without the webhook, there is no PodDisruptionBudget."""

    rollout: Rollout | None = None
    """How pods are replaced when a change requires it. If the number of slots of the Memcached changes, all pods are
    replaced."""

    network_policy: NetworkPolicy | None = None
    """Which clients may connect. `{}` admits all pods in this namespace. If absent, there is no NetworkPolicy."""

    service: Service | None = None
    """Labels and annotations of the Service, and the choice of pods."""

    monitoring: Monitoring | None = None
    """Metrics of each proxy. `{}` enables them. With `tls`, the pods stay as they are: they have an agent anyway."""

    agent: Agent | None = None
    """The agent, a second container in each pod. It runs only if `monitoring` or `tls` needs it."""

    tls: TLS | None = None
    """TLS for clients, on `port`. If absent, the proxies serve plain text. The connections to the servers never have
    TLS. A change replaces the pods; a new certificate in the Secret does not."""

    inherited_metadata: InheritedMetadata | None = None
    """Labels and annotations of all objects that the operator creates for this one, such as the Service. They are not
    added to the pods or to selectors, so a change does not replace the pods."""


class CacheInUse(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A Memcached that pods of the proxy use."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
    """Name of the Memcached."""

    servers: Annotated[int, _COUNT]
    """Number of its slots, from the first one, that at least one pod uses, even a pod that is being deleted."""

    ring: Annotated[str, Meta(max_length=64)] = ""
    """What all pods use while the Memcached has `spec.scaling.warm`: the number of slots, or `FROM>TO/PHASE/CHANGE`.
    Absent while pods differ."""


class MemcachedProxyStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The last observed state."""

    observed_generation: int = 0
    """The `metadata.generation` of the spec that this status refers to."""

    replicas: Annotated[int, _COUNT] = 0
    """Number of pods that exist, without those of a Deployment that are being deleted."""

    updated_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that run the current pod template."""

    ready_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that are ready."""

    selector: str = ""
    """Label selector of the pods as text, for `kubectl scale` and autoscalers."""

    nodes: Annotated[list[str], Meta(extra_json_schema={"x-kubernetes-list-type": "set"})] = []
    """Sorted names of the running pods."""

    conditions: Annotated[list[Condition], Meta(extra_json_schema=LIST_BY_TYPE)] = []
    """The conditions Available, Progressing, Degraded and Ready, in this order, then Stalled while it is true."""

    address: str = ""
    """The address for clients, `host:port`."""

    caches: Annotated[list[CacheInUse], Meta(max_length=MAX_CACHES, extra_json_schema=LIST_BY_NAME)] = []
    """The Memcacheds that pods use, the current one first. A Memcached keeps these slots when its size is reduced."""


MEMCACHEDPROXY: Final = Kind(
    group=GROUP,
    versions=(VERSION,),
    name=KIND,
    plural=PLURAL,
    short_names=SHORT_NAMES,
    description="One address for a Memcached with slots: memcached's own proxy, which sends each key to its server, "
    "for clients without a list of servers.",
    spec=MemcachedProxySpec,
    status=MemcachedProxyStatus,
    rules=RULES,
    columns=(
        *STATE_COLUMNS,
        Column("Memcached", "string", ".spec.memcachedRef.name", "The Memcached that serves the requests"),
        Column("Servers", "integer", ".status.caches[0].servers", "Slots of the Memcached that the proxies use"),
        Column("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column("Image", "string", ".spec.image", "Image of memcached", 1),
        Column("Agent", "string", ".spec.agent.image", "Image of the agent", 1),
        *PROBLEM_COLUMNS,
    ),
    features={
        "podDisruptionBudget": "A PodDisruptionBudget, which the webhook sets in new objects and if you remove it",
        "monitoring": "Metrics",
        "monitoring.podMonitor": "A PodMonitor",
        "networkPolicy": "A NetworkPolicy",
        "tls": "TLS for clients",
        "tls.clientAuth": "Client certificates",
        "rollout.paused": "Pausing rollouts",
    },
    refers_to=("Memcached",),
)


def needs_agent(spec: MemcachedProxySpec) -> bool:
    """Whether each pod has an agent."""
    return spec.tls is not None or is_enabled(spec.monitoring)


def decode_spec(obj: Mapping[str, Any]) -> MemcachedProxySpec:
    """The spec of a MemcachedProxy object, with defaults and without unknown fields.

    Raises SpecDecodeError with all structural errors if it cannot be decoded. A decoded spec can still violate a
    rule: see `validate`.
    """
    return MEMCACHEDPROXY.decode(obj)


def check(obj: Any) -> Checked[MemcachedProxySpec]:
    """The spec from which the children of a stored object are built, or None, and all errors. Never raises."""
    return MEMCACHEDPROXY.check(obj)
