"""The parts of a spec about the places of its pods, rollouts, and the objects beside the workload."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, field

from memcached_api.effects import KEEPS, REPLACES
from memcached_api.scheduling import (
    MAX_ENTRIES,
    Affinity,
    Annotations,
    Labels,
    LabelSelector,
    Name,
    PodSecurityContext,
    Toleration,
    TopologySpreadConstraint,
)
from memcached_api.values import MAX_INT32

MIN_GRACE_SECONDS: Final = 10
"""Minimum termination grace period: the preStop hook takes 5 s, and memcached 1 s to close its connections."""

MAX_GRACE_SECONDS: Final = 86400
DEFAULT_GRACE_SECONDS: Final = 30  # Kubernetes' own default
DEFAULT_ACCOUNT: Final = "default"  # as Kubernetes sets it
DEFAULT_USER: Final = 1001
"""User and group of the pods: not root. The image does not need to define them."""

MAX_READY_SECONDS: Final = 86400
MAX_PEERS: Final = 64
MAX_METRICS_PEERS: Final = 16
MAX_CONSTRAINTS: Final = 16

# An int-or-string in the CRD. rules/placing.py has the syntax of percentages.
IntOrPercent = Annotated[
    Annotated[int, Meta(ge=0, le=MAX_INT32)] | Annotated[str, Meta(max_length=4)],
    Meta(extra_json_schema={"maxLength": 4}),
]


def pod_security_context(given: PodSecurityContext | None) -> dict[str, Any]:
    """The security context of the pods, as in a pod template: not as root, and with a seccomp profile."""
    context: dict[str, Any] = {"runAsUser": DEFAULT_USER, "runAsGroup": DEFAULT_USER}
    if given is not None:
        context = msgspec.to_builtins(given)
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} | context


class PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Labels and annotations of the pods, in addition to the operator's."""

    labels: Annotated[Labels, REPLACES] = {}
    """Labels of the pods. Keys that the operator sets are rejected."""

    annotations: Annotated[Annotations, REPLACES] = {}
    """Annotations of the pods. Keys that the operator sets are rejected."""


class PodSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where the pods run, and under which account and user."""

    node_selector: Annotated[Labels, Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"}), REPLACES] = {}
    """Node labels that the pods require."""

    tolerations: Annotated[
        list[Toleration],
        Meta(max_length=MAX_ENTRIES, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
        REPLACES,
    ] = []
    """Node taints that the pods tolerate."""

    affinity: Annotated[Affinity, REPLACES] | None = None
    """Rules that attract the pods to nodes or other pods, or keep them apart."""

    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint],
        Meta(max_length=MAX_CONSTRAINTS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
        REPLACES,
    ] = []
    """How the pods are spread over nodes and zones. If it is absent on creation or removed later, the mutating webhook
    sets two best-effort constraints, for `kubernetes.io/hostname` and `topology.kubernetes.io/zone`. An empty list
    means no constraints."""

    priority_class_name: Annotated[Name, REPLACES] = ""
    """Name of the PriorityClass of the pods."""

    runtime_class_name: Annotated[Name, REPLACES] = ""
    """Name of the RuntimeClass of the pods, for example for gVisor. Defaults to the runtime of the node."""

    service_account_name: Annotated[Name, REPLACES.unless(DEFAULT_ACCOUNT)] = ""
    """Name of the ServiceAccount of the pods. Its token is not mounted."""

    termination_grace_period_seconds: (
        Annotated[int, Meta(ge=MIN_GRACE_SECONDS, le=MAX_GRACE_SECONDS), REPLACES.unless(DEFAULT_GRACE_SECONDS)] | None
    ) = None
    """Seconds that a pod has to terminate before it is killed, at least 10. Defaults to 30."""

    security_context: (
        Annotated[PodSecurityContext, REPLACES.unless(pod_security_context(None), pod_security_context)] | None
    ) = None
    """User and groups of the pods. It replaces the default, `runAsUser: 1001` and `runAsGroup: 1001`. `{}` leaves both
    to the platform, as OpenShift requires. `runAsNonRoot: true` always applies. The seccomp profile defaults to
    `RuntimeDefault`."""


class PodTemplate(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a Kubernetes pod template."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    """Labels and annotations of the pods, in addition to the operator's."""

    spec: PodSpec = field(default_factory=PodSpec)
    """Where the pods run, and under which account and user."""


class PodDisruptionBudget(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods node drains may evict at the same time."""

    enabled: Annotated[bool, KEEPS] | None = None
    """Whether to create a PodDisruptionBudget. Defaults to true. A single pod gets none, because it would block every
    drain."""

    max_unavailable: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of pods, or percentage rounded up, that evictions may make unavailable. At least 1. Defaults to 1.
    """


class Rollout(msgspec.Struct, frozen=True, rename="camel"):
    """How pods are replaced when a change requires it. A kind describes its own defaults."""

    max_unavailable: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of pods, or percentage rounded down, that may be unavailable during a rollout. Defaults to 25%."""

    max_surge: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of additional pods, or percentage rounded up, during a rollout. Defaults to 25%."""

    min_ready_seconds: Annotated[int, Meta(ge=0, le=MAX_READY_SECONDS), KEEPS] | None = None
    """Seconds for which a new pod must be ready before the rollout continues, at most one day. Defaults to 0."""

    paused: Annotated[bool, KEEPS] | None = None
    """Whether changes that require new pods wait. Other changes, such as `size`, still take effect. Defaults to false.
    """

    restarted_at: Annotated[str, Meta(max_length=40), REPLACES] | None = None
    """A time in RFC 3339, such as `2026-11-22T10:00:00Z`. Setting it works like `kubectl rollout restart`. The mutating
    webhook keeps the time if an update omits it."""


class IPBlock(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A range of IP addresses."""

    cidr: Annotated[str, Meta(max_length=64)]
    """The range, such as `192.0.2.0/24`."""

    except_: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(max_length=MAX_ENTRIES, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
    ] = field(name="except", default_factory=list)
    """Parts of the range that must not connect."""


class NetworkPolicyPeer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Clients that may connect: pods that match both selectors, or a range of IP addresses."""

    pod_selector: LabelSelector | None = None
    """Selects pods; `{}` selects all. Without `namespaceSelector`, only pods in this namespace match."""

    namespace_selector: LabelSelector | None = None
    """Selects namespaces; `{}` selects all. Without `podSelector`, all of their pods match."""

    ip_block: IPBlock | None = None
    """A range of IP addresses, instead of selectors."""


class NetworkPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """Which clients may connect. Enforced only if the cluster's network plug-in supports NetworkPolicies."""

    from_: (
        Annotated[
            list[NetworkPolicyPeer],
            Meta(max_length=MAX_PEERS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
            KEEPS,
        ]
        | None
    ) = field(name="from", default=None)
    """Clients that may connect. Needs at least one entry. Defaults to all pods in this namespace."""

    metrics_from: (
        Annotated[
            list[NetworkPolicyPeer],
            Meta(max_length=MAX_METRICS_PEERS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
            KEEPS,
        ]
        | None
    ) = None
    """Clients that may read the metrics. Needs at least one entry. Defaults to all pods in all namespaces. Requires
    `monitoring`."""


class Service(msgspec.Struct, frozen=True, rename="camel"):
    """Labels and annotations of the Service, in addition to the operator's."""

    annotations: Annotated[Annotations, KEEPS] = {}
    """Annotations of the Service. Keys that the operator sets are rejected."""

    labels: Annotated[Labels, KEEPS] = {}
    """Labels of the Service. Keys that the operator sets are rejected."""
