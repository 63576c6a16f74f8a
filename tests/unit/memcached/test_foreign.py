"""Budgets and autoscalers of others."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_operator.cache.cache import Cache
from memcached_operator.kind import Plan, Snapshot
from memcached_operator.kube.knowledge import UNLISTED
from memcached_operator.kube.resource import AUTOSCALERS, POD_DISRUPTION_BUDGETS, Object, Resource, key_of
from memcached_operator.memcached.controller import memcached as memcached_kind
from memcached_operator.memcached.plan import plan_with
from memcached_operator.reconcile.retention import Retention
from memcached_operator.shared import foreign as module
from memcached_operator.shared.foreign import FOREIGN, PER_POD
from unit.builders import DEPLOYMENTS, LABELS, NOW, deployment, memcached, pod

KIND = memcached_kind(Images("example.com/memcached:1"))
BUDGET = {"podDisruptionBudget": {"enabled": True}}


def foreign(resource: Resource, spec: Object, name: str = "theirs") -> dict[Resource, tuple[Object, ...]]:
    """One object of another owner."""
    return {resource: ({"metadata": {"name": name, "namespace": "test"}, "spec": spec},)}


def views(found: dict[Resource, tuple[Object, ...]]) -> dict[Resource, tuple[Any, ...]]:
    """What a plan reads of these objects."""
    return {resource: tuple(FOREIGN.view(resource, obj) for obj in objects) for resource, objects in found.items()}


def planned(
    found: dict[Resource, tuple[Object, ...]],
    *pods: Object,
    live: Object | None = None,
    autoscaled: Any = False,
    known: Any = None,
    **spec: Any,
) -> Plan:
    """The plan of a Memcached beside these objects. `live`: its Deployment; None if another owner has one."""
    cr = {**memcached(), "spec": {"size": 2, **spec}}
    children = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    snapshot = Snapshot(cr, children, pods, foreign=views(found), knowledge=known or {}, autoscaled=autoscaled)
    return plan_with(Images("example.com/memcached:1"))(snapshot, NOW)


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


def target(**changes: str) -> dict[Resource, tuple[Object, ...]]:
    """An autoscaler of the Deployment, or of something else."""
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cache"} | changes
    return foreign(AUTOSCALERS, {"scaleTargetRef": ref})


def test_autoscaler_of_the_deployment_that_changes_nothing_is_only_mentioned() -> None:
    plan = planned(target(), live=deployment())
    assert plan.problems == ()
    assert plan.notices == (
        "HorizontalPodAutoscaler theirs targets Deployment cache, but the controller reverts every change, because "
        "spec.size sets its size. Set the autoscaler's spec.scaleTargetRef to apiVersion cache.example.com/v1, kind "
        "Memcached, name cache",
    )


def test_autoscaler_that_scales_the_deployment_is_a_conflict_that_does_not_block() -> None:
    plan = planned(target(), live=deployment(), autoscaled=True)
    (problem,) = plan.problems
    assert (problem.reason, problem.blocks, plan.notices) == ("Conflict", False, ())
    assert "HorizontalPodAutoscaler theirs scales Deployment cache" in problem.message
    assert "apiVersion cache.example.com/v1, kind Memcached, name cache" in problem.message


@pytest.mark.parametrize(("autoscaled", "start"), [(False, "Whether a "), (True, "Which ")])
def test_notice_about_unlisted_autoscalers_does_not_contradict_their_report(autoscaled: Any, start: str) -> None:
    plan = planned({}, live=deployment(), autoscaled=autoscaled, known={AUTOSCALERS: UNLISTED.failed(403, "denied")})
    (notice,) = plan.notices
    assert notice.startswith(f"{start}HorizontalPodAutoscaler scales the pods is not known, because")


def test_scaled_object_of_keda_is_named_instead_of_its_autoscaler() -> None:
    """KEDA sets the target of the autoscaler again, from its ScaledObject."""
    (autoscaler,) = target()[AUTOSCALERS]
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "queue", "uid": "x", "controller": True}
    owned = {**autoscaler, "metadata": {**autoscaler["metadata"], "ownerReferences": [owner]}}
    (notice,) = planned({AUTOSCALERS: (owned,)}, live=deployment()).notices
    assert notice.startswith("ScaledObject queue targets Deployment cache")
    assert notice.endswith("name cache, and its spec.minReplicaCount to at least 1")


@pytest.mark.parametrize(
    "found",
    [
        target(apiVersion="cache.example.com/v1", kind="Memcached"),
        target(name="other"),
        target(kind="StatefulSet"),
        target(apiVersion="example.com/v1"),
        foreign(AUTOSCALERS, {}),
    ],
    ids=["the Memcached", "another name", "another kind", "another group", "no target"],
)
def test_other_autoscalers_are_no_problem(found: dict[Resource, tuple[Object, ...]]) -> None:
    for autoscaled in (False, True):
        plan = planned(found, live=deployment(), autoscaled=autoscaled)
        assert (plan.problems, plan.notices) == ((), ())


def test_autoscaler_of_a_deployment_of_others_is_no_problem() -> None:
    """The controller does not change this Deployment; its own conflict is reported when ours is applied."""
    for autoscaled in (False, True):
        plan = planned(target(), autoscaled=autoscaled)
        assert (plan.problems, plan.notices) == ((), ())


@pytest.mark.parametrize(
    ("found", "ignored"),
    [
        (target(), False),
        (target(name="other"), False),
        (foreign(POD_DISRUPTION_BUDGETS, {"selector": {}}), False),
        (target(apiVersion="cache.example.com/v1", kind="Memcached"), True),
        (target(kind="StatefulSet"), False),
        (target(kind="ReplicaSet"), True),
    ],
    ids=["of ours", "of another Deployment", "a budget", "of a Memcached", "of a StatefulSet", "of a ReplicaSet"],
)
def test_autoscalers_of_anything_but_a_workload_cause_no_work(
    found: dict[Resource, tuple[Object, ...]], ignored: bool
) -> None:
    """Otherwise the autoscalers of many Memcacheds in a namespace would reconcile each of them for each other."""
    (resource,) = found
    cache = Cache(Retention([KIND]))
    (obj,) = found[resource]
    cache.put(resource, {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}})
    assert [key.name for key in cache.foreign(resource, "test")] == ([] if ignored else ["theirs"])
