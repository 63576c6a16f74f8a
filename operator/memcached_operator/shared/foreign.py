"""The objects of other users that affect an object: budgets for its pods, and autoscalers of its workload."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from memcached_api import conditions as c
from memcached_api.kind import Kind
from memcached_operator.kind import Foreign, Problem, Snapshot
from memcached_operator.kube import texts
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
from memcached_operator.workloads.selectors import Selector

WORKLOADS = (DEPLOYMENTS, STATEFULSETS)
"""The resources of workloads. An object has at most one of them."""

SCALED_OBJECT = "ScaledObject"
"""The kind of KEDA's autoscalers."""

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

    def comparisons(self, resource: Resource) -> int:
        """At most this many labels for one object."""
        return max(1, self._counts[1]) if resource == POD_DISRUPTION_BUDGETS else 1

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

    def dependency(self, resource: Resource, view: Any) -> Hashable:
        """Whether a budget selects a pod; or whether an autoscaler is for the workload, with all that is read of it."""
        if resource == POD_DISRUPTION_BUDGETS:
            return self.is_selected(view) or None
        is_of_workload = nested_map(view, "spec", "scaleTargetRef").get("name") == self.name
        return msgspec.json.encode(view) if is_of_workload else None


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


def view(resource: Resource, obj: Object) -> Any:
    """A Budget; or an autoscaler as an object."""
    if resource != POD_DISRUPTION_BUDGETS:
        return obj
    selector = nested_map(obj, "spec").get("selector")
    return Budget(obj["metadata"]["name"], None if selector is None else Selector(selector))


def _targets(target: Mapping[str, Any], workload: Resource) -> bool:
    """Whether the target of an autoscaler is a workload of this type."""
    group = str(target.get("apiVersion", "")).partition("/")[0]
    return (group, target.get("kind")) == (workload.group, workload.kind)


@dataclass(frozen=True)
class Autoscalers:
    """What a plan says about HorizontalPodAutoscalers of the workload, whose size the object sets.

    `problems`: those of autoscalers that scale it. `notices`: about those that have not scaled it lately.
    """

    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()


def autoscalers(snapshot: Snapshot, kind: Kind[Any]) -> Autoscalers:
    """What the status says about autoscalers of the workload. `kind`: that of the object.

    Nothing if the workload does not belong to the object: the controller does not change that one.
    """
    name = snapshot.cr["metadata"]["name"]
    found = [
        (_autoscaler(each), workload.kind, _retarget(each, kind, name))
        for each in snapshot.foreign.get(AUTOSCALERS, ())
        for workload in WORKLOADS
        if snapshot.child(workload) is not None and _targets_named(each, workload, name)
    ]
    verb = "scales" if snapshot.autoscaled else "targets"
    texts = tuple(
        f"{autoscaler} {verb} {workload} {name}, but the controller reverts every change, because spec.size sets its "
        f"size. {remedy}"
        for autoscaler, workload, remedy in found
    )
    if snapshot.autoscaled:
        return Autoscalers(tuple(Problem(c.CONFLICT, text, blocks=False) for text in texts))
    return Autoscalers(notices=texts)


def _targets_named(autoscaler: Object, workload: Resource, name: str) -> bool:
    """Whether the target of an autoscaler is the workload of this type and name."""
    target = nested_map(autoscaler, "spec", "scaleTargetRef")
    return target.get("name") == name and _targets(target, workload)


def _autoscaler(autoscaler: Object) -> str:
    """The object that a user edits: KEDA creates a HorizontalPodAutoscaler for a ScaledObject, and keeps its target."""
    owner = controller_of(autoscaler)
    if owner is not None and _is_of_keda(owner):
        return f"{SCALED_OBJECT} {texts.name(str(owner['name']))}"
    return f"{AUTOSCALERS.kind} {texts.name(autoscaler['metadata']['name'])}"


def _retarget(autoscaler: Object, kind: Kind[Any], name: str) -> str:
    """How to have an object scaled instead of its workload."""
    target = f"spec.scaleTargetRef to apiVersion {kind.group}/{kind.versions[0]}, kind {kind.name}, name {name}"
    if _is_of_keda(controller_of(autoscaler)):
        return f"Set its {target}, and its spec.minReplicaCount to at least 1"
    return f"Set the autoscaler's {target}"


def _is_of_keda(owner: Mapping[str, Any] | None) -> bool:
    return owner is not None and owner["kind"] == SCALED_OBJECT


FOREIGN = Foreign((POD_DISRUPTION_BUDGETS, AUTOSCALERS), ignores, reads, view)
"""The objects of other users that a plan reads."""
