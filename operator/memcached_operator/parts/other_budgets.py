"""The PodDisruptionBudgets of other owners that select the pods of an object."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memcached_operator.engine.reporting.lists import failure
from memcached_operator.kube import texts
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS
from memcached_operator.kube.times import past_time
from memcached_operator.world.knowledge import State
from memcached_operator.world.other_budgets import LIST_PERIOD, Budget, list_period
from memcached_operator.world.snapshot import Snapshot

MAX_COMPARISONS: Final = 200_000
"""Labels of pods that are compared with budgets in one plan, each in 0.1 µs: while it is made, nothing else is. With
more, it is not known whether one selects a pod."""

TOO_MANY: Final = (
    "namespace {} has too many PodDisruptionBudgets that name single pods. Delete those that are not needed"
)

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
    known = snapshot.other_budgets.knowledge
    delay = list_period(known)
    if known.state is not State.LISTED:
        text = failure(POD_DISRUPTION_BUDGETS, snapshot.namespace, known) if known.lasts else ""
        return OtherBudget(None, is_listed=False, failure=text, requeue_after=delay)
    compared = _compared(snapshot, labels)
    if sum(_comparisons(budget, compared) for budget in snapshot.other_budgets.budgets) > MAX_COMPARISONS:
        return OtherBudget(None, is_listed=False, failure=TOO_MANY.format(snapshot.namespace), requeue_after=delay)
    name = _selecting(snapshot, compared)
    is_due = name is not None or known.has_failed or (wanted and _is_new(snapshot, now))
    return OtherBudget(name, requeue_after=delay if is_due else None)


def _is_new(snapshot: Snapshot, now: datetime) -> bool:
    """Whether the object's own budget is new, or does not exist.

    Another one may have been created at the same time, for example from the same manifest, but after the list.
    """
    own = snapshot.child(POD_DISRUPTION_BUDGETS)
    created = None if own is None else past_time(own["metadata"].get("creationTimestamp"), now)
    return own is None or (created is not None and (now - created).total_seconds() < NEW_PERIOD)


Labels = tuple[Mapping[str, str], ...]


def _compared(snapshot: Snapshot, labels: Mapping[str, str]) -> tuple[Labels, Labels]:
    """The different labels of the pods, and those without PER_POD. `labels`: those of new pods."""
    if not snapshot.other_budgets.budgets:
        return (), ()
    different = _different([labels, *(pod.metadata.labels for pod in snapshot.pods)])
    return different, _different({key: text for key, text in each.items() if key not in PER_POD} for each in different)


def _labels(budget: Budget, compared: tuple[Labels, Labels]) -> Labels:
    """Those with which a budget is compared."""
    return compared[0] if budget.selector.names_any(PER_POD) else compared[1]


def _comparisons(budget: Budget, compared: tuple[Labels, Labels]) -> int:
    return sum(map(len, _labels(budget, compared)))


def _selecting(snapshot: Snapshot, compared: tuple[Labels, Labels]) -> str | None:
    """The name of the first budget that selects a pod, or None.

    One with the name of the object's own budget is a Conflict, or an orphan that is adopted again.
    """
    own = snapshot.cr["metadata"]["name"]
    others = (budget for budget in snapshot.other_budgets.budgets if budget.name != own)
    selecting = (each.name for each in others if any(map(each.selector.selects, _labels(each, compared))))
    return next(selecting, None)


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
