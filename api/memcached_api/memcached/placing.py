"""The part of a Memcached's spec about its pods' places, its rollouts, and the objects beside its Deployment."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, field

from memcached_api.memcached.warm_up import WarmUp
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


class PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Labels and annotations of the pods, in addition to the operator's."""

    labels: Labels = {}
    """Labels of the pods. Those that the operator sets are denied."""

    annotations: Annotations = {}
    """Annotations of the pods. Those that the operator sets are denied."""


class PodSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where the pods run, and with which account and user."""

    node_selector: Annotated[Labels, Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"})] = {}
    """Labels that a node must have."""

    tolerations: Annotated[
        list[Toleration],
        Meta(max_length=MAX_ENTRIES, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
    ] = []
    """Taints of nodes that the pods tolerate."""

    affinity: Affinity | None = None
    """Rules about the nodes, and about other pods on them."""

    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint],
        Meta(max_length=MAX_CONSTRAINTS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
    ] = []
    """How the pods are distributed over nodes and zones. If absent when the object is created, or removed later, the
    mutating webhook sets two constraints, for `kubernetes.io/hostname` and `topology.kubernetes.io/zone`, which the
    scheduler satisfies if it can. An empty list means none."""

    priority_class_name: Name = ""
    """Name of the PriorityClass of the pods."""

    runtime_class_name: Name = ""
    """Name of the RuntimeClass of the pods, such as one for gVisor. If absent, the default of the nodes."""

    service_account_name: Name = ""
    """Name of the ServiceAccount of the pods. Its token is not mounted."""

    termination_grace_period_seconds: Annotated[int, Meta(ge=MIN_GRACE_SECONDS, le=MAX_GRACE_SECONDS)] | None = None
    """Seconds from the start of a pod's termination until it is killed, at least 10. If absent, 30."""

    security_context: PodSecurityContext | None = None
    """User and groups of the pods. If present, it replaces the default, `runAsUser: 1001` and `runAsGroup: 1001`. `{}`
    leaves both to the platform, as OpenShift requires. `runAsNonRoot: true` and the seccomp profile `RuntimeDefault`
    stay."""


class PodTemplate(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a Kubernetes pod template."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    """Labels and annotations of the pods, in addition to the operator's."""

    spec: PodSpec = field(default_factory=PodSpec)
    """Where the pods run, and with which account and user."""


class PodDisruptionBudget(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods a drain of nodes may delete at the same time."""

    enabled: bool | None = None
    """Whether there is a PodDisruptionBudget. With one pod there never is, because it would block every drain. If
    absent, true."""

    max_unavailable: IntOrPercent | None = None
    """Maximum number of pods, or percentage rounded up, that may be unavailable because of evictions; at least 1. If
    absent, 1."""


class RolloutSpec(msgspec.Struct, frozen=True, rename="camel"):
    """How pods are replaced if a change requires it."""

    max_unavailable: IntOrPercent | None = None
    """Maximum number of pods, or percentage rounded down, that may be unavailable during a rollout. If absent when the
    object is created, or removed later, the mutating webhook sets 0, or 1 with `maxSurge: 0` or `identity: Stable`;
    otherwise the default of Kubernetes applies, 25%. With `identity: Stable`, maximum of slots that are changed or not
    ready at once, at least 1, and not more than `podDisruptionBudget` allows; if absent, 1."""

    max_surge: IntOrPercent | None = None
    """Maximum number of additional pods, or percentage rounded up, during a rollout. If absent when the object is
    created, or removed later, the mutating webhook sets 1, or 0 with `identity: Stable`; otherwise the default of
    Kubernetes applies, 25%."""

    min_ready_seconds: Annotated[int, Meta(ge=0, le=MAX_READY_SECONDS)] | None = None
    """Seconds for which a new pod must be ready before the rollout continues, at most a day. If absent, 0."""

    paused: bool | None = None
    """Whether changes that need new pods wait. Everything else, including `size`, still takes effect. If absent,
    false."""

    restarted_at: Annotated[str, Meta(max_length=40)] | None = None
    """A time in RFC 3339, such as `2026-11-22T10:00:00Z`. It works as
    `kubectl rollout restart`. The mutating webhook keeps it if an update omits it."""

    warm_up: WarmUp | None = None
    """Whether a replaced pod must be warm before the next one is replaced or evicted; `{}` enables it. If absent, it
    must only be ready. Only with `identity: Stable`."""


class IPBlock(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A range of IP addresses."""

    cidr: Annotated[str, Meta(max_length=64)]
    """The range, such as `192.0.2.0/24`."""

    except_: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(max_length=MAX_ENTRIES, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
    ] = field(name="except", default_factory=list)
    """Parts of the range that are not admitted."""


class NetworkPolicyPeer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Clients that may connect: pods that both selectors select, or a range of addresses."""

    pod_selector: LabelSelector | None = None
    """Selects pods; `{}` selects all. Without `namespaceSelector`, only pods in this namespace."""

    namespace_selector: LabelSelector | None = None
    """Selects namespaces; `{}` selects all. Without `podSelector`, all of their pods."""

    ip_block: IPBlock | None = None
    """A range of IP addresses. Then no selector may be set."""


class NetworkPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """Which clients may connect. Enforced only if the cluster's network plug-in supports NetworkPolicies."""

    from_: (
        Annotated[
            list[NetworkPolicyPeer],
            Meta(max_length=MAX_PEERS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
        ]
        | None
    ) = field(name="from", default=None)
    """The clients, with at least one entry. If absent, all pods in this namespace."""

    metrics_from: (
        Annotated[
            list[NetworkPolicyPeer],
            Meta(max_length=MAX_METRICS_PEERS, extra_json_schema={"x-kubernetes-list-type": "atomic"}),
        ]
        | None
    ) = None
    """The clients of the metrics, with at least one entry. If absent, all pods in all namespaces. Only with
    `monitoring`."""


class Service(msgspec.Struct, frozen=True, rename="camel"):
    """Labels and annotations of the Services, in addition to the operator's, and whether slots have Services."""

    annotations: Annotations = {}
    """Annotations of the headless Service. Those that the operator sets are denied."""

    labels: Labels = {}
    """Labels of every Service. Those that the operator sets are denied."""

    per_pod: bool | None = None
    """Whether each slot has a Service of its own with a fixed IP address, for clients that resolve a name only once.
    Only with `identity: Stable` and at most 100 pods. If absent, false."""


def security_context(pod: PodSpec) -> dict[str, Any]:
    """The security context of the pods, as in a pod template: not as root, and with a seccomp profile."""
    context: dict[str, Any] = {"runAsUser": DEFAULT_USER, "runAsGroup": DEFAULT_USER}
    if pod.security_context is not None:
        context = msgspec.to_builtins(pod.security_context)
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} | context
