"""The parts of a Memcached's spec about rollouts and about its Services."""

from typing import Annotated

from msgspec import field

from memcached_api.effects import KEEPS
from memcached_api.memcached.warm_up import WarmUp
from memcached_api.scheduling import Annotations, Labels
from memcached_api.shared import pod_template
from memcached_api.shared.pod_template import IntOrPercent


class RolloutSpec(pod_template.Rollout, frozen=True, rename="camel"):
    """How pods are replaced when a change requires it."""

    max_unavailable: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of pods, or percentage rounded down, that may be unavailable during a rollout. With `identity:
    Stable`, it is the maximum number of slots that are being changed or not ready: at least 1, and at most what
    `podDisruptionBudget` allows. If it is absent on creation or removed later, the mutating webhook sets 0, or 1 with
    `maxSurge: 0` or `identity: Stable`. Without the webhook, it defaults to 25%, or to 1 with `identity: Stable`."""

    max_surge: Annotated[IntOrPercent, KEEPS] | None = None
    """Maximum number of additional pods, or percentage rounded up, during a rollout. If it is absent on creation or
    removed later, the mutating webhook sets 1, or 0 with `identity: Stable`. Without the webhook, it defaults to 25%.
    """

    warm_up: WarmUp | None = None
    """Whether a replaced pod must be warm, not only ready, before the next pod is replaced or evicted. `{}` enables it.
    Requires `identity: Stable`."""


class Service(pod_template.Service, frozen=True, rename="camel"):
    """Labels and annotations of the Services, in addition to the operator's, and whether slots have Services."""

    annotations: Annotated[Annotations, KEEPS] = field(default_factory=dict[str, str])
    """Annotations of the headless Service. Keys that the operator sets are rejected."""

    labels: Annotated[Labels, KEEPS] = field(default_factory=dict[str, str])
    """Labels of every Service. Keys that the operator sets are rejected."""

    per_pod: Annotated[bool, KEEPS] | None = None
    """Whether each slot has its own Service with a fixed IP address, for clients that resolve a name only once.
    Requires `identity: Stable` and at most 100 pods. Defaults to false."""
