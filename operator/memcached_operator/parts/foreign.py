"""The PodDisruptionBudgets of other users that select the pods of an object."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from memcached_operator.kube import texts
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Object, Resource, nested_map
from memcached_operator.kube.selectors import Selector
from memcached_operator.world.kind import Foreign
from memcached_operator.world.snapshot import Snapshot

MAX_COMPARISONS: Final = 200_000
"""Labels of pods that are compared with budgets in one plan, each in 0.1 µs: while it is made, nothing else is."""

PER_POD: Final = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")
"""Labels with another value in each pod of a StatefulSet. Without them, most pods have the same labels."""


@dataclass(frozen=True)
class Budget:
    """What is read of a PodDisruptionBudget. `selector`: None selects no pods."""

    name: str
    selector: Selector | None


@dataclass(frozen=True)
class Observed:
    """What a plan compares with the objects of others: the name of the own object, and the labels of its pods.

    `shared`: the different labels without PER_POD. `labels`: the different labels with these. Both are empty if the
    plan depends on no budget.
    """

    name: str
    shared: tuple[Mapping[str, str], ...] = ()
    labels: tuple[Mapping[str, str], ...] = ()

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """The number of labels in `shared` and in `labels`."""
        return sum(map(len, self.shared)), sum(map(len, self.labels))

    @property
    def weight(self) -> int:
        """The labels that are kept in memory."""
        return sum(self._counts)

    def comparisons(self, resource: Resource) -> int:  # noqa: ARG002 - the protocol
        """At most this many labels for one object."""
        return max(1, self._counts[1])

    def comparisons_with(self, budget: Budget) -> int:
        """The labels that are compared with a budget."""
        labels = self.compared(budget)
        return self._counts[1 if labels is self.labels else 0] if labels else 0

    def compared(self, budget: Budget) -> tuple[Mapping[str, str], ...]:
        """The labels with which a budget is compared."""
        if budget.name == self.name or budget.selector is None:
            return ()
        return self.labels if budget.selector.names_any(PER_POD) else self.shared

    def is_selected(self, budget: Budget) -> bool:
        """Whether a budget selects one of the pods. A budget with the name of the own object is not another one's."""
        return budget.selector is not None and any(map(budget.selector.selects, self.compared(budget)))

    def dependency(self, resource: Resource, view: Budget) -> Hashable:  # noqa: ARG002 - the protocol
        """Whether a budget selects a pod."""
        return self.is_selected(view) or None


def observed(snapshot: Snapshot, labels: Mapping[str, str] | None) -> Observed:
    """What the plan compares. `labels`: those of new pods; None if the plan depends on no budget.

    The labels of existing pods differ during a rollout, and by those that Kubernetes and webhooks add.
    """
    name = snapshot.cr["metadata"]["name"]
    if labels is None:
        return Observed(name)
    different = _different([labels, *(nested_map(pod, "metadata", "labels") for pod in snapshot.pods)])
    if not any(key in each for each in different for key in PER_POD):
        return Observed(name, different, different)
    shared = [{key: value for key, value in each.items() if key not in PER_POD} for each in different]
    return Observed(name, _different(shared), different)


def _different(labels: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    # The API server sorts labels, so equal ones have the same order.
    return tuple({(*each, *each.values()): each for each in labels}.values())


def foreign_budget(budgets: Iterable[Budget], compared: Observed) -> str | None:
    """The name of another user's first PodDisruptionBudget that selects a pod, or None. `budgets`: those to compare.

    A budget with the name of the object's own budget is not returned: it is a Conflict, or an orphan that is adopted
    again.
    """
    return next((budget.name for budget in budgets if compared.is_selected(budget)), None)


def comparable_budgets(snapshot: Snapshot, compared: Observed) -> list[Budget]:
    """The first budgets by name, as many as can be compared with the pods: at most MAX_COMPARISONS are made."""
    left = MAX_COMPARISONS
    found: list[Budget] = []
    for budget in _budgets(snapshot):
        left -= compared.comparisons_with(budget)
        if left < 0:
            break
        found.append(budget)
    return found


def _budgets(snapshot: Snapshot) -> tuple[Budget, ...]:
    """The budgets of others, in the form of `view`."""
    return snapshot.foreign.get(POD_DISRUPTION_BUDGETS, ())


def comparison_notices(snapshot: Snapshot, compared: Observed, number: int) -> Iterator[str]:
    """A notice if not all budgets are compared. `number`: of those that are."""
    total = len(_budgets(snapshot))
    if number < total:
        yield (
            f"Of the {total} PodDisruptionBudgets in namespace {snapshot.cr['metadata']['namespace']}, only the first "
            f"{number} by name are compared with the pods, because these have {len(compared.labels)} different sets of "
            f"labels and the limit is {MAX_COMPARISONS} compared labels. Delete budgets, or pods with copied labels"
        )


def budget_notice(name: str) -> str:
    """The reason why no PodDisruptionBudget is created, and the remedy. `name`: that of another user's budget."""
    return (
        f"No PodDisruptionBudget is created, because PodDisruptionBudget {texts.name(name)} selects the same pods, and "
        "Kubernetes does not evict pods that two of them select. Delete it, or set spec.podDisruptionBudget.enabled to "
        "false"
    )


def rollout_notice(name: str) -> str:
    """The reason why slots are updated one at a time, and the remedy. `name`: that of another user's budget."""
    return (
        f"spec.rollout.maxUnavailable has no effect, because PodDisruptionBudget {texts.name(name)} selects the same "
        "pods. Delete it, and set spec.podDisruptionBudget instead"
    )


def reads(obj: Object) -> Object:
    """The field of a PodDisruptionBudget that is read: which pods it selects."""
    spec = nested_map(obj, "spec")
    return {"spec": {"selector": spec["selector"]} if "selector" in spec else {}}


def view(_: Resource, obj: Object) -> Budget:
    """The form in which a plan reads it."""
    selector = nested_map(obj, "spec").get("selector")
    return Budget(obj["metadata"]["name"], None if selector is None else Selector(selector))


FOREIGN = Foreign((POD_DISRUPTION_BUDGETS,), reads=reads, view=view)
"""The objects of other users that a plan reads."""
