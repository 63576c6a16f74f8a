"""The number of pods that may be unavailable."""

from typing import Final

from memcached_api.shared.pod_template import PodDisruptionBudget

DEFAULT_MAX_UNAVAILABLE: Final = 1
"""Pods that may be unavailable if a PodDisruptionBudget, or the rollout of slots, does not say how many."""


def pods_of(value: int | str, size: int, *, round_up: bool) -> int:
    """The number of pods that a number, or a percentage of `size` such as `25%`, stands for."""
    if isinstance(value, int):
        return value
    scaled = int(value.removesuffix("%")) * size
    return -(-scaled // 100) if round_up else scaled // 100


def budget_of(budget: PodDisruptionBudget | None, size: int) -> int | None:
    """The number of pods that a PodDisruptionBudget lets be unavailable; None if the spec asks for none.

    Rounded up, as by the controller of PodDisruptionBudgets.
    """
    if budget is None or budget.enabled is False:
        return None
    return (
        DEFAULT_MAX_UNAVAILABLE
        if budget.max_unavailable is None
        else pods_of(budget.max_unavailable, size, round_up=True)
    )
