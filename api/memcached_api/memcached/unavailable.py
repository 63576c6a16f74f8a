"""The number of slots that a rollout may make unavailable at once (`identity: Stable`)."""

from typing import Final

from memcached_api.memcached.types import MemcachedSpec, is_stable

DEFAULT_MAX_UNAVAILABLE: Final = 1
"""Pods that may be unavailable if a PodDisruptionBudget, or the rollout of slots, does not say how many."""


def pods_of(value: int | str, size: int, *, round_up: bool) -> int:
    """The number of pods that a number, or a percentage of `size` such as `25%`, stands for."""
    if isinstance(value, int):
        return value
    scaled = int(value.removesuffix("%")) * size
    return -(-scaled // 100) if round_up else scaled // 100


def budget_of(spec: MemcachedSpec) -> int | None:
    """The number of pods that the spec's PodDisruptionBudget lets be unavailable; None if the spec asks for none.

    Rounded up, as by the controller of PodDisruptionBudgets.
    """
    budget = spec.pod_disruption_budget
    if budget is None or budget.enabled is False:
        return None
    return (
        DEFAULT_MAX_UNAVAILABLE
        if budget.max_unavailable is None
        else pods_of(budget.max_unavailable, spec.size, round_up=True)
    )


def requested_slots(spec: MemcachedSpec) -> int:
    """The number of slots that `rollout.maxUnavailable` allows, from 1 to `size`.

    Rounded down, but at least 1: so does a Deployment whose `maxSurge` is 0.
    """
    value = spec.rollout.max_unavailable if spec.rollout else None
    wanted = DEFAULT_MAX_UNAVAILABLE if value is None else pods_of(value, spec.size, round_up=False)
    return max(DEFAULT_MAX_UNAVAILABLE, min(wanted, spec.size))


def slots_at_once(spec: MemcachedSpec) -> int:
    """The maximum of slots that are changed or not ready at once: what both the rollout and the budget allow.

    1 with `identity: Pooled`, which has no slots.
    """
    if not is_stable(spec):
        return DEFAULT_MAX_UNAVAILABLE
    wanted, budget = requested_slots(spec), budget_of(spec)
    return wanted if budget is None else max(DEFAULT_MAX_UNAVAILABLE, min(wanted, budget))
