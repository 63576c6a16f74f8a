"""The objects of other users that affect a Memcached: budgets for its pods, and autoscalers of its workload."""

from collections.abc import Iterator, Mapping
from typing import Any

from memcached_api import conditions as c
from memcached_api.memcached.types import GROUP, KIND, VERSION
from memcached_api.validation.field_errors import quote_if_needed
from memcached_operator.kind import Foreign, Problem, Snapshot
from memcached_operator.kube.resource import (
    AUTOSCALERS,
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    STATEFULSETS,
    Object,
    Resource,
    controller_of,
    nested_map,
)
from memcached_operator.workloads.selectors import selects

WORKLOADS = (DEPLOYMENTS, STATEFULSETS)
"""The resources of the workload of a Memcached, which has one of them."""

SCALED_OBJECT = "ScaledObject"
"""The kind of KEDA's autoscalers."""


def foreign_budget(snapshot: Snapshot, labels: Mapping[str, str]) -> str | None:
    """The name of another user's first PodDisruptionBudget that selects a pod, or new pods with these labels, or None.

    The labels of existing pods differ during a rollout, and by those that Kubernetes and webhooks add. A budget with
    the name of the Memcached's own budget is not returned: it is a Conflict, or an orphan that is adopted again.
    """
    own = snapshot.cr["metadata"]["name"]
    budgets = snapshot.foreign.get(POD_DISRUPTION_BUDGETS, ())
    others = (budget for budget in budgets if budget["metadata"]["name"] != own)
    all_labels = [labels, *(nested_map(pod, "metadata", "labels") for pod in snapshot.pods)]
    selecting = (
        budget["metadata"]["name"]
        for budget in others
        if (selector := nested_map(budget, "spec").get("selector")) is not None
        and any(selects(selector, pod_labels) for pod_labels in all_labels)
    )
    return next(selecting, None)


def budget_notice(name: str) -> str:
    """The reason why no PodDisruptionBudget is created, and the remedy. `name`: that of another user's budget."""
    return (
        f"No PodDisruptionBudget is created, because PodDisruptionBudget {name} selects the same pods, and Kubernetes "
        "does not evict pods that two of them select. Delete it, or set spec.podDisruptionBudget.enabled to false"
    )


def rollout_notice(name: str) -> str:
    """The reason why slots are updated one at a time, and the remedy. `name`: that of another user's budget."""
    return (
        f"spec.rollout.maxUnavailable has no effect, because PodDisruptionBudget {name} selects the same pods. Delete "
        "it, and set spec.podDisruptionBudget instead"
    )


def ignores(obj: Object) -> bool:
    """True for a HorizontalPodAutoscaler whose target is no Deployment and no StatefulSet, such as a Memcached.

    There can be one for each Memcached of a namespace, and each would cause a reconciliation of all of them.
    """
    target = nested_map(obj, "spec").get("scaleTargetRef")
    if target is None:
        return False
    return not any(_targets(target, workload) for workload in WORKLOADS)


def reads(obj: Object) -> Object:
    """The fields of such an object that are read: which pods a budget selects, or what an autoscaler scales."""
    spec = nested_map(obj, "spec")
    return {"spec": {name: spec[name] for name in ("selector", "scaleTargetRef") if name in spec}}


def _targets(target: Mapping[str, Any], workload: Resource) -> bool:
    """Whether the target of an autoscaler is a workload of this type."""
    group = str(target.get("apiVersion", "")).partition("/")[0]
    return (group, target.get("kind")) == (workload.group, workload.kind)


def autoscaler_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """A problem for each HorizontalPodAutoscaler of the workload, whose size the Memcached sets.

    None if the workload does not belong to the Memcached: the controller does not change that one.
    """
    name = snapshot.cr["metadata"]["name"]
    existing = [workload for workload in WORKLOADS if snapshot.child(workload) is not None]
    for autoscaler in snapshot.foreign.get(AUTOSCALERS, ()):
        target = nested_map(autoscaler, "spec", "scaleTargetRef")
        for workload in existing:
            if target.get("name") == name and _targets(target, workload):
                yield Problem(
                    c.CONFLICT,
                    f"{_autoscaler(autoscaler)} scales {workload.kind} {name}, but the controller reverts every "
                    f"change, because spec.size sets its size. {_retarget(autoscaler, name)}",
                    blocks=False,
                )


def _autoscaler(autoscaler: Object) -> str:
    """The object that a user edits: KEDA creates a HorizontalPodAutoscaler for a ScaledObject, and keeps its target."""
    owner = controller_of(autoscaler)
    if owner is not None and _is_of_keda(owner):
        return f"{SCALED_OBJECT} {quote_if_needed(owner['name'])}"
    return f"{AUTOSCALERS.kind} {quote_if_needed(autoscaler['metadata']['name'])}"


def _retarget(autoscaler: Object, name: str) -> str:
    """How to have a Memcached scaled instead of its workload."""
    target = f"spec.scaleTargetRef to apiVersion {GROUP}/{VERSION}, kind {KIND}, name {name}"
    if _is_of_keda(controller_of(autoscaler)):
        return f"Set its {target}, and its spec.minReplicaCount to at least 1"
    return f"Set the autoscaler's {target}"


def _is_of_keda(owner: Mapping[str, Any] | None) -> bool:
    return owner is not None and owner["kind"] == SCALED_OBJECT


FOREIGN = Foreign((POD_DISRUPTION_BUDGETS, AUTOSCALERS), ignores, reads)
"""The objects of other users that a plan reads."""
