"""The PodDisruptionBudgets of other owners that select the pods of an object."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memcached_operator.engine.reporting.lists import failure
from memcached_operator.kube import texts
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS
from memcached_operator.kube.times import past_time
from memcached_operator.world.other_budgets import LIST_PERIOD, list_period
from memcached_operator.world.snapshot import Snapshot

MAX_COMPARISONS: Final = 200_000
"""Labels of pods that are compared with budgets in one plan, each in 0.1 µs: while it is made, nothing else is. The
budgets beyond, in the order of their names, are ignored. Only copied pods with many labels can need more."""

NEW_PERIOD: Final = 2 * LIST_PERIOD
"""Seconds from the creation of a budget in which the plan is made after one more list."""

PER_POD: Final = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")
"""Labels with another value in each pod of a StatefulSet. Without them, most pods have the same labels."""


@dataclass(frozen=True)
class OtherBudget:
    """Whether another owner's PodDisruptionBudget selects a pod."""

    name: str | None = None
    """The first one by name; None if none is known."""
    is_listed: bool = True
    """Whether the budgets of the namespace are known."""
    failure: str = ""
    """Why they are not, once this lasts: for messages."""
    requeue_after: float | None = None
    """Seconds until there can be another list; None if the plan can wait for the next resync."""

    @property
    def is_excluded(self) -> bool:
        """Whether it is known that none selects a pod."""
        return self.is_listed and self.name is None


def other_budget(snapshot: Snapshot, labels: Mapping[str, str], now: datetime, *, wanted: bool) -> OtherBudget:
    """Compare the budgets of other owners with the labels of the pods, which differ during a rollout.

    `labels`: those of new pods. `wanted`: the spec asks for a budget.
    """
    known = snapshot.known(POD_DISRUPTION_BUDGETS)
    delay = list_period(known)
    if not snapshot.is_listed(POD_DISRUPTION_BUDGETS):
        text = failure(POD_DISRUPTION_BUDGETS, snapshot.namespace, known) if known.lasts else ""
        return OtherBudget(None, is_listed=False, failure=text, requeue_after=delay)
    name = _selecting(snapshot, labels)
    is_due = name is not None or (wanted and _is_new(snapshot, now))
    return OtherBudget(name, requeue_after=delay if is_due else None)


def _is_new(snapshot: Snapshot, now: datetime) -> bool:
    """Whether the object's own budget is new, or does not exist.

    Another one may have been created at the same time, for example from the same manifest, but after the list.
    """
    own = snapshot.child(POD_DISRUPTION_BUDGETS)
    created = None if own is None else past_time(own["metadata"].get("creationTimestamp"), now)
    return own is None or (created is not None and (now - created).total_seconds() < NEW_PERIOD)


def _selecting(snapshot: Snapshot, labels: Mapping[str, str]) -> str | None:
    """The name of the first budget that selects a pod, or None.

    One with the name of the object's own budget is a Conflict, or an orphan that is adopted again.
    """
    if not snapshot.budgets:
        return None
    different = _different([labels, *(pod.metadata.labels for pod in snapshot.pods)])
    shared = _different({key: text for key, text in each.items() if key not in PER_POD} for each in different)
    left = MAX_COMPARISONS
    for budget in snapshot.budgets:
        if budget.name == snapshot.cr["metadata"]["name"]:
            continue
        compared = different if budget.selector.names_any(PER_POD) else shared
        left -= sum(map(len, compared))
        if left < 0:
            return None
        if any(map(budget.selector.selects, compared)):
            return budget.name
    return None


def _different(labels: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    # The API server sorts labels, so equal ones have the same order.
    return tuple({(*each, *each.values()): each for each in labels}.values())


def may_have_budget(snapshot: Snapshot, other: OtherBudget) -> bool:
    """Whether an object whose spec asks for a budget gets one: while others are not listed, an existing one is kept."""
    return other.is_excluded or (not other.is_listed and snapshot.child(POD_DISRUPTION_BUDGETS) is not None)


def budget_notices(other: OtherBudget) -> Iterator[str]:
    """The reason why no PodDisruptionBudget is created, and the remedy."""
    if other.name is not None:
        yield (
            f"No PodDisruptionBudget is created, because PodDisruptionBudget {texts.name(other.name)} selects the same "
            "pods, and Kubernetes does not evict pods that two of them select. Delete it, or set "
            "spec.podDisruptionBudget.enabled to false"
        )
    if other.failure:
        yield f"The PodDisruptionBudget is neither created nor deleted, because {other.failure}"


def rollout_notices(other: OtherBudget) -> Iterator[str]:
    """The reason why slots are updated one at a time, and the remedy."""
    if other.name is not None:
        yield (
            f"spec.rollout.maxUnavailable has no effect, because PodDisruptionBudget {texts.name(other.name)} selects "
            "the same pods. Delete it, and set spec.podDisruptionBudget instead"
        )
    if other.failure:
        yield f"spec.rollout.maxUnavailable has no effect, because {other.failure}"
