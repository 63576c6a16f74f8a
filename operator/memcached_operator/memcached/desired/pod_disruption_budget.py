"""The PodDisruptionBudget of a Memcached."""

from memcached_api.memcached.effective import DEFAULT_MAX_UNAVAILABLE
from memcached_api.memcached.types import MemcachedSpec, warm_up_of
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Object
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT
from memcached_operator.workloads import children

MIN_SIZE = 2
"""Minimum number of pods: a budget for a single pod would block every drain of its node."""


def wants_budget(spec: MemcachedSpec) -> bool:
    """Whether there should be a PodDisruptionBudget."""
    budget = spec.pod_disruption_budget
    return budget is not None and budget.enabled is not False and spec.size >= MIN_SIZE


def pod_disruption_budget(cr: Object, spec: MemcachedSpec) -> Object:
    """Build the budget. Pods that are not ready can always be evicted, so that no failure blocks a drain, unless they
    warm up.
    """
    budget = spec.pod_disruption_budget
    limit = None if budget is None else budget.max_unavailable
    content = {
        "maxUnavailable": DEFAULT_MAX_UNAVAILABLE if limit is None else limit,
        # Removes another client's value: the API server rejects a budget with both fields, and so every later apply.
        "minAvailable": None,
        "selector": {"matchLabels": children.selector(cr, APP_NAME)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow" if warm_up_of(spec) is None else "IfHealthyBudget",
    }
    return children.child(POD_DISRUPTION_BUDGETS, cr, APP_NAME, COMPONENT, spec=content)
