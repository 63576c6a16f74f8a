"""The parts of a workload about placement and rollouts. A field that the spec does not set is left out."""

from collections.abc import Mapping
from typing import cast

import msgspec

from memcached_api.scheduling import TopologySpreadConstraint
from memcached_api.shared.pod_template import (
    DEFAULT_ACCOUNT,
    DEFAULT_GRACE_SECONDS,
    PodMetadata,
    PodSpec,
    PodTemplate,
    Rollout,
)
from memcached_api.shared.rules.placing import RESTARTED_AT
from memcached_operator.findings.rollout import PROGRESS_DEADLINE

DEFAULT_LIMITS = {"maxUnavailable": "25%", "maxSurge": "25%"}
"""The strategy of a Deployment that sets none."""

LABEL_KEYS = ("matchLabelKeys", "mismatchLabelKeys")
"""Fields of a term of an affinity. The constraints, which have the first one too, are not part of an affinity."""

LABEL_KEYS_REMOVED = (
    "spec.podTemplate.spec.affinity: this API server removes matchLabelKeys and mismatchLabelKeys, so the terms apply "
    "without them. Upgrade the cluster to Kubernetes 1.31 or later, or remove these fields"
)

_DEFAULTS = {"serviceAccountName": DEFAULT_ACCOUNT, "terminationGracePeriodSeconds": DEFAULT_GRACE_SECONDS}
"""Values that Kubernetes sets itself: with and without them, the pods are the same."""


def placement(pod: PodSpec, selector: dict[str, str]) -> dict[str, object]:
    """The fields of a pod spec. `selector`: the labels of the object's pods."""
    fields = {name: value for name, value in msgspec.to_builtins(pod).items() if value != _DEFAULTS.get(name)}
    fields.pop("securityContext", None)
    if pod.topology_spread_constraints:
        fields["topologySpreadConstraints"] = [
            _constraint(constraint, selector) for constraint in pod.topology_spread_constraints
        ]
    return fields


def _constraint(constraint: TopologySpreadConstraint, selector: dict[str, str]) -> dict[str, object]:
    """A constraint; without a selector, for the object's pods: one without a selector would count no pods."""
    return {"labelSelector": {"matchLabels": selector}} | msgspec.to_builtins(constraint)


def lacks_label_keys(pod: PodSpec, live: object) -> bool:
    """Whether an applied affinity is that of the spec without its label keys, as API servers before 1.31 store it."""
    affinity = msgspec.to_builtins(pod.affinity)
    return live != affinity and live == _without_label_keys(affinity)


def _without_label_keys(value: object) -> object:
    if isinstance(value, list):
        return [_without_label_keys(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, object]", value).items()
    return {name: _without_label_keys(item) for name, item in fields if name not in LABEL_KEYS}


def pod_metadata(
    template: PodTemplate | None, rollout: Rollout | None, annotations: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Labels and annotations of the pods from the spec. `annotations`: the kind's own.

    The operator's labels are added to them.
    """
    metadata = template.metadata if template else PodMetadata()
    restarted = {RESTARTED_AT: rollout.restarted_at} if rollout and rollout.restarted_at else {}
    return {"labels": metadata.labels, "annotations": {**metadata.annotations, **restarted, **annotations}}


def strategy(rollout: Rollout | None) -> dict[str, object]:
    """The fields of a Deployment's spec about rollouts."""
    if rollout is None:
        return {}
    fields: dict[str, object] = {} if rollout.paused is None else {"paused": rollout.paused}
    if rollout.min_ready_seconds:
        fields["minReadySeconds"] = rollout.min_ready_seconds
        # Kubernetes rejects a deadline that is not greater than minReadySeconds.
        fields["progressDeadlineSeconds"] = PROGRESS_DEADLINE.seconds + rollout.min_ready_seconds
    limits = {"maxUnavailable": rollout.max_unavailable, "maxSurge": rollout.max_surge}
    explicit = {name: value for name, value in limits.items() if value is not None}
    # Always both: otherwise another client's value stays beside ours, and Kubernetes rejects a strategy with two zeros.
    return fields | (
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": DEFAULT_LIMITS | explicit}} if explicit else {}
    )
