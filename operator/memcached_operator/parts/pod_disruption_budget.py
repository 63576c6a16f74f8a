"""The PodDisruptionBudget of an object."""

from memcached_api.shared.budgets import DEFAULT_MAX_UNAVAILABLE
from memcached_api.shared.pod_template import PodDisruptionBudget
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Object
from memcached_operator.parts.workloads import children

MIN_SIZE = 2
"""Minimum number of pods: a budget for a single pod would block every drain of its node."""


def wants_budget(budget: PodDisruptionBudget | None, size: int) -> bool:
    """Whether there should be a PodDisruptionBudget for `size` pods."""
    return budget is not None and budget.enabled is not False and size >= MIN_SIZE


def pod_disruption_budget(
    cr: Object, app_name: str, component: str, budget: PodDisruptionBudget | None, *, protects_unready: bool = False
) -> Object:
    """Build the budget. Pods that are not ready can always be evicted, so that no failure blocks a drain, unless it
    `protects_unready` pods.
    """
    limit = None if budget is None else budget.max_unavailable
    content = {
        "maxUnavailable": DEFAULT_MAX_UNAVAILABLE if limit is None else limit,
        # Removes another client's value: the API server rejects a budget with both fields, and so every later apply.
        "minAvailable": None,
        "selector": {"matchLabels": children.selector(cr, app_name)},
        "unhealthyPodEvictionPolicy": "IfHealthyBudget" if protects_unready else "AlwaysAllow",
    }
    return children.child(POD_DISRUPTION_BUDGETS, cr, app_name, component, spec=content)
