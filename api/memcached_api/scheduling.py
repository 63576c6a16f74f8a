"""The types of Kubernetes that say where pods run, and with which user."""

from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from memcached_api.values import MAX_INT32

MAX_ENTRIES: Final = 64
"""Maximum entries of a map or list that Kubernetes does not limit itself: far more than any cluster uses."""

MAX_ANNOTATION: Final = 256 * 2**10
"""Maximum characters of an annotation: Kubernetes limits all annotations of an object together."""

_ATOMIC: Final = {"x-kubernetes-list-type": "atomic"}
_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that API servers compare correctly: they read the limits of a CRD as floating-point numbers."""


Name = Annotated[str, Meta(max_length=253)]
LabelKey = Annotated[str, Meta(max_length=317)]
LabelValue = Annotated[str, Meta(max_length=63)]
Labels = Annotated[dict[str, LabelValue], Meta(max_length=MAX_ENTRIES)]
Annotations = Annotated[dict[str, Annotated[str, Meta(max_length=MAX_ANNOTATION)]], Meta(max_length=MAX_ENTRIES)]
LabelKeys = Annotated[list[LabelKey], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Weight = Annotated[int, Meta(ge=1, le=100)]
Identifier = Annotated[int, Meta(ge=0, le=MAX_INT32)]


class LabelSelectorRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement"

    key: LabelKey
    operator: Operator
    values: Annotated[list[LabelValue], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)] = []


class LabelSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"

    match_labels: Labels = {}
    match_expressions: Annotated[
        list[LabelSelectorRequirement], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)
    ] = []


class NodeSelectorRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.NodeSelectorRequirement"

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[list[Name], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)] = []


NodeRequirements = Annotated[list[NodeSelectorRequirement], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)]


class NodeSelectorTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.NodeSelectorTerm"

    match_expressions: NodeRequirements = []
    match_fields: NodeRequirements = []


class NodeSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.NodeSelector"

    node_selector_terms: Annotated[list[NodeSelectorTerm], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)]


class PreferredSchedulingTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.PreferredSchedulingTerm"

    weight: Weight
    preference: NodeSelectorTerm


class NodeAffinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.NodeAffinity"

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredSchedulingTerm], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)
    ] = []


class PodAffinityTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.PodAffinityTerm"

    topology_key: LabelKey
    label_selector: LabelSelector | None = None
    namespaces: Annotated[list[LabelValue], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: LabelKeys = []
    mismatch_label_keys: LabelKeys = []


class WeightedPodAffinityTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.WeightedPodAffinityTerm"

    weight: Weight
    pod_affinity_term: PodAffinityTerm


class _PodAffinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    required_during_scheduling_ignored_during_execution: Annotated[
        list[PodAffinityTerm], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)
    ] = []
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[WeightedPodAffinityTerm], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)
    ] = []


class PodAffinity(_PodAffinity, frozen=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.PodAffinity"


class PodAntiAffinity(_PodAffinity, frozen=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.PodAntiAffinity"


class Affinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.Affinity"

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.Toleration"

    key: LabelKey = ""
    operator: Literal["Exists", "Equal"] | None = None
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Meta(ge=-_SAFE_INTEGER, le=_SAFE_INTEGER)] | None = None


class TopologySpreadConstraint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.TopologySpreadConstraint"

    max_skew: Annotated[int, Meta(ge=1, le=MAX_INT32)]
    topology_key: LabelKey
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    """Selects the pods to count. Defaults to the pods of this object."""

    match_label_keys: LabelKeys = []
    min_domains: Annotated[int, Meta(ge=1, le=MAX_INT32)] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None


class SeccompProfile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.SeccompProfile"

    type: Literal["RuntimeDefault", "Localhost"]
    """`RuntimeDefault` (the profile of the container runtime) or `Localhost` (a file on the node)."""

    localhost_profile: Annotated[str, Meta(max_length=4096)] | None = None


class PodSecurityContext(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of a PodSecurityContext that the Pod Security level `restricted` allows."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.PodSecurityContext"

    run_as_user: Annotated[int, Meta(ge=1, le=MAX_INT32)] | None = None
    run_as_group: Identifier | None = None
    run_as_non_root: bool | None = None
    fs_group: Identifier | None = None
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    supplemental_groups: Annotated[list[Identifier], Meta(max_length=MAX_ENTRIES, extra_json_schema=_ATOMIC)] = []
    seccomp_profile: SeccompProfile | None = None
