"""Budgets of others."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_operator.engine.kind import Plan
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Object, Resource
from memcached_operator.memcached.plan import plan_with
from memcached_operator.parts import foreign as module
from memcached_operator.parts.foreign import FOREIGN, PER_POD
from memcached_operator.world.snapshot import Snapshot
from unit.builders import LABELS, NOW, memcached, pod

BUDGET = {"podDisruptionBudget": {"enabled": True}}


def foreign(resource: Resource, spec: Object, name: str = "theirs") -> dict[Resource, tuple[Object, ...]]:
    """One object of another owner."""
    return {resource: ({"metadata": {"name": name, "namespace": "test"}, "spec": spec},)}


def views(found: dict[Resource, tuple[Object, ...]]) -> dict[Resource, tuple[Any, ...]]:
    """What a plan reads of these objects."""
    return {resource: tuple(FOREIGN.view(resource, obj) for obj in objects) for resource, objects in found.items()}


def planned(found: dict[Resource, tuple[Object, ...]], *pods: Object, **spec: Any) -> Plan:
    """The plan of a Memcached beside these objects."""
    cr = {**memcached(), "spec": {"size": 2, **spec}}
    return plan_with(Images("example.com/memcached:1"))(Snapshot(cr, {}, pods, foreign=views(found)), NOW)


def kinds(plan: Plan) -> list[str]:
    """The kinds of the children."""
    return [child["kind"] for child in plan.children or ()]


SELECTING: dict[str, dict[str, Any]] = {
    "all pods": {},
    "our label": {"matchLabels": {"app.kubernetes.io/instance": "cache"}},
    "a label of the spec": {"matchLabels": {"team": "web"}},
    "all labels": {"matchLabels": LABELS},
}


@pytest.mark.parametrize("selector", SELECTING.values(), ids=SELECTING.keys())
def test_budget_of_others_for_the_pods_replaces_ours(selector: dict[str, Any]) -> None:
    labelled = {"metadata": {"labels": {"team": "web"}}}
    plan = planned(foreign(POD_DISRUPTION_BUDGETS, {"selector": selector}), **BUDGET, podTemplate=labelled)
    assert "PodDisruptionBudget" not in kinds(plan)
    (notice,) = plan.notices
    assert "PodDisruptionBudget theirs selects the same pods" in notice
    assert "spec.podDisruptionBudget.enabled to false" in notice
    assert plan.problems == ()


def test_budget_that_selects_one_pod_of_a_statefulset_replaces_ours() -> None:
    pods = [pod(f"cache-{slot}") for slot in range(3)]
    for each in pods:
        each["metadata"]["labels"] = {**LABELS, PER_POD[0]: each["metadata"]["name"]}
    found = foreign(POD_DISRUPTION_BUDGETS, {"selector": {"matchLabels": {PER_POD[0]: "cache-1"}}})
    assert "PodDisruptionBudget" not in kinds(planned(found, *pods, **BUDGET))
    other = foreign(POD_DISRUPTION_BUDGETS, {"selector": {"matchLabels": {PER_POD[0]: "cache-3"}}})
    assert "PodDisruptionBudget" in kinds(planned(other, *pods, **BUDGET))


def many(number: int, key: str) -> dict[Resource, tuple[Object, ...]]:
    """Budgets of others, the last of which selects the pods."""
    selectors = [
        *({"matchLabels": {key: "x"}} for _ in range(number - 1)),
        {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]},
    ]
    found = [foreign(POD_DISRUPTION_BUDGETS, {"selector": each}, f"b{index}") for index, each in enumerate(selectors)]
    return {POD_DISRUPTION_BUDGETS: tuple(obj for each in found for obj in each[POD_DISRUPTION_BUDGETS])}


def test_comparisons_of_budgets_with_pods_are_limited_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COMPARISONS", 90)
    pods = [pod(f"cache-{slot}") for slot in range(9)]
    for each in pods:
        each["metadata"]["labels"] = {**LABELS, PER_POD[0]: each["metadata"]["name"]}
    # Without the labels that differ in each pod, there are the labels of new pods and those of all pods.
    assert "PodDisruptionBudget" not in kinds(planned(many(9, "a"), *pods, **BUDGET))
    plan = planned(many(9, PER_POD[0]), *pods, **BUDGET)
    assert "PodDisruptionBudget" in kinds(plan)
    (notice,) = plan.notices
    assert "Of the 9 PodDisruptionBudgets in namespace test, only the first 2 by name are compared" in notice
    assert "10 different sets of labels" in notice
    for fewer in (planned(many(2, PER_POD[0]), *pods, **BUDGET), planned(many(9, PER_POD[0]), pods[0], **BUDGET)):
        assert not any("are compared" in each for each in fewer.notices), "budgets or pods are deleted"
    assert planned(many(9, PER_POD[0]), *pods).notices == (), "the plan depends on no budget"


def test_budget_of_others_for_a_pod_replaces_ours() -> None:
    """A pod before a change of its labels is deleted only during the rollout, which may be paused."""
    old = pod("a")
    old["metadata"]["labels"] = {**LABELS, "team": "web"}
    found = foreign(POD_DISRUPTION_BUDGETS, {"selector": {"matchLabels": {"team": "web"}}})
    assert "PodDisruptionBudget" in kinds(planned(found, **BUDGET))
    assert "PodDisruptionBudget" not in kinds(planned(found, pod("b"), old, **BUDGET))


OTHER: dict[str, dict[Resource, tuple[Object, ...]]] = {
    "none": {},
    "other pods": foreign(POD_DISRUPTION_BUDGETS, {"selector": {"matchLabels": {"app": "web"}}}),
    "no selector": foreign(POD_DISRUPTION_BUDGETS, {"maxUnavailable": 1}),
    # Applying ours reports the conflict, or adopts the orphan.
    "our name": foreign(POD_DISRUPTION_BUDGETS, {"selector": {}}, "cache"),
}


@pytest.mark.parametrize("found", OTHER.values(), ids=OTHER.keys())
def test_other_budgets_do_not_matter(found: dict[Resource, tuple[Object, ...]]) -> None:
    plan = planned(found, **BUDGET)
    assert "PodDisruptionBudget" in kinds(plan)
    assert plan.notices == ()


WITHOUT: dict[str, dict[str, Any]] = {
    "not set": {},
    "disabled": {"podDisruptionBudget": {"enabled": False, "maxUnavailable": 1}},
    "one pod": {"size": 1, **BUDGET},
}


@pytest.mark.parametrize("spec", WITHOUT.values(), ids=WITHOUT.keys())
def test_no_budget_and_no_notice(spec: dict[str, Any]) -> None:
    plan = planned(foreign(POD_DISRUPTION_BUDGETS, {"selector": {}}), **spec)
    assert "PodDisruptionBudget" not in kinds(plan)
    assert plan.notices == ()
