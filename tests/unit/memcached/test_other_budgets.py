"""PodDisruptionBudgets of other owners."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_operator.engine.kind import Plan
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Object, key_of
from memcached_operator.kube.selectors import Selector
from memcached_operator.memcached.plan import needs_budgets, plan_with
from memcached_operator.parts import other_budgets as module
from memcached_operator.parts.other_budgets import PER_POD
from memcached_operator.world.knowledge import LISTED, UNLISTED, Knowledge
from memcached_operator.world.other_budgets import LIST_PERIOD, RETRY_PERIOD, Budget, OtherBudgets
from memcached_operator.world.snapshot import Snapshot
from unit.builders import LABELS, NOW, memcached, owned, pod, typed

BUDGET = {"podDisruptionBudget": {"enabled": True}}


OLD = "2029-01-01T00:00:00Z"


def theirs(selector: Object, name: str = "theirs") -> tuple[Budget, ...]:
    """One budget of another owner."""
    return (Budget(name, Selector(selector)),)


def snapshot_of(
    budgets: tuple[Budget, ...],
    *pods: Object,
    known: Knowledge = LISTED,
    own: bool = False,
    created: str = OLD,
    **spec: Any,
) -> Snapshot:
    """A Memcached beside budgets of other owners. `known`: what is known of these.

    `own`: its budget exists. `created`: the time of its creation.
    """
    cr = {**memcached(), "spec": {"size": 2, **spec}}
    ours = owned(resource=POD_DISRUPTION_BUDGETS, creationTimestamp=created)
    children = {key_of(POD_DISRUPTION_BUDGETS, ours): ours} if own else {}
    return Snapshot(cr, children, typed(*pods), other_budgets=OtherBudgets(known, budgets))


def planned(budgets: tuple[Budget, ...], *pods: Object, **parts: Any) -> Plan:
    """The plan of the same Memcached."""
    return plan_with(Images("example.com/memcached:1"))(snapshot_of(budgets, *pods, **parts), NOW)


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
    plan = planned(theirs(selector), own=True, **BUDGET, podTemplate=labelled)
    assert "PodDisruptionBudget" not in kinds(plan)
    (notice,) = plan.notices
    assert "PodDisruptionBudget theirs selects the same pods" in notice
    assert "spec.podDisruptionBudget.enabled to false" in notice
    assert plan.problems == ()
    assert plan.requeue_after == LIST_PERIOD, "its deletion is noticed"


def test_budget_that_selects_one_pod_of_a_statefulset_replaces_ours() -> None:
    pods = [pod(f"cache-{slot}") for slot in range(3)]
    for each in pods:
        each["metadata"]["labels"] = {**LABELS, PER_POD[0]: each["metadata"]["name"]}
    found = theirs({"matchLabels": {PER_POD[0]: "cache-1"}})
    assert "PodDisruptionBudget" not in kinds(planned(found, *pods, **BUDGET))
    other = theirs({"matchLabels": {PER_POD[0]: "cache-3"}})
    assert "PodDisruptionBudget" in kinds(planned(other, *pods, **BUDGET))


def many(number: int, key: str) -> tuple[Budget, ...]:
    """Budgets of other owners, the last of which selects the pods."""
    selectors = [
        *({"matchLabels": {key: "x"}} for _ in range(number - 1)),
        {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]},
    ]
    return tuple(Budget(f"b{index}", Selector(each)) for index, each in enumerate(selectors))


def test_comparisons_of_budgets_with_pods_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COMPARISONS", 90)
    pods = [pod(f"cache-{slot}") for slot in range(9)]
    for each in pods:
        each["metadata"]["labels"] = {**LABELS, PER_POD[0]: each["metadata"]["name"]}
    # Without the labels that differ in each pod, there are the labels of new pods and those of all pods.
    assert "PodDisruptionBudget" not in kinds(planned(many(9, "a"), *pods, **BUDGET))
    unknown = planned(many(9, PER_POD[0]), *pods, **BUDGET)
    assert "PodDisruptionBudget" not in kinds(unknown)
    assert any("too many PodDisruptionBudgets" in notice for notice in unknown.notices)
    assert "PodDisruptionBudget" in kinds(planned(many(9, PER_POD[0]), *pods, own=True, **BUDGET)), "it is kept"
    for fewer in (planned(many(2, PER_POD[0]), *pods, **BUDGET), planned(many(9, PER_POD[0]), pods[0], **BUDGET)):
        assert "PodDisruptionBudget" not in kinds(fewer), "budgets or pods are deleted"


def test_budget_of_others_for_a_pod_replaces_ours() -> None:
    """A pod before a change of its labels is deleted only during the rollout, which may be paused."""
    old = pod("a")
    old["metadata"]["labels"] = {**LABELS, "team": "web"}
    found = theirs({"matchLabels": {"team": "web"}})
    assert "PodDisruptionBudget" in kinds(planned(found, **BUDGET))
    assert "PodDisruptionBudget" not in kinds(planned(found, pod("b"), old, **BUDGET))


OTHER: dict[str, tuple[Budget, ...]] = {
    "none": (),
    "other pods": theirs({"matchLabels": {"app": "web"}}),
    # Applying ours reports the conflict, or adopts the orphan.
    "our name": theirs({}, "cache"),
}


@pytest.mark.parametrize("found", OTHER.values(), ids=OTHER.keys())
def test_other_budgets_do_not_matter(found: tuple[Budget, ...]) -> None:
    plan = planned(found, own=True, **BUDGET)
    assert "PodDisruptionBudget" in kinds(plan)
    assert (plan.notices, plan.requeue_after) == ((), None)


def test_plan_is_made_again_after_our_budget_was_created() -> None:
    """Another one may be created at the same time, for example from the same manifest."""
    plans = [planned((), **BUDGET)]
    for seconds in (-1, 0, 2 * LIST_PERIOD - 1, 2 * LIST_PERIOD):
        created = (NOW - timedelta(seconds=seconds)).isoformat()
        plans.append(planned((), own=True, created=created, **BUDGET))
    assert [kinds(plan).count("PodDisruptionBudget") for plan in plans] == [1] * 5
    assert [plan.requeue_after for plan in plans] == [LIST_PERIOD, None, LIST_PERIOD, LIST_PERIOD, None]


FAILED = UNLISTED.failed(403, "forbidden")


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    ("known", "delay", "is_reported"),
    [(FAILED, RETRY_PERIOD, False), (replace(FAILED, lasts=True), LIST_PERIOD, True)],
    ids=["at first", "lasts"],
)
def test_what_exists_is_kept_while_budgets_cannot_be_listed(
    known: Knowledge, delay: float, is_reported: bool, own: bool
) -> None:
    plan = planned((), known=known, own=own, **BUDGET)
    assert ("PodDisruptionBudget" in kinds(plan)) is own
    assert plan.requeue_after == delay
    text = "The PodDisruptionBudget is neither created nor deleted, because poddisruptionbudgets in namespace test"
    assert [text in each for each in plan.notices] == [True] * is_reported
    assert plan.problems == ()


WITHOUT: dict[str, dict[str, Any]] = {
    "not set": {},
    "disabled": {"podDisruptionBudget": {"enabled": False, "maxUnavailable": 1}},
    "one pod": {"size": 1, **BUDGET},
}


@pytest.mark.parametrize("spec", WITHOUT.values(), ids=WITHOUT.keys())
def test_no_budget_and_no_notice(spec: dict[str, Any]) -> None:
    assert not needs_budgets(snapshot_of((), **spec).cr)
    for known in (LISTED, replace(FAILED, lasts=True)):
        plan = planned(theirs({}), known=known, **spec)
        assert "PodDisruptionBudget" not in kinds(plan)
        assert plan.notices == ()


def test_deletion_of_a_budget_that_limits_only_the_rollout_is_noticed() -> None:
    spec = {"identity": "Stable", "size": 3, "rollout": {"maxUnavailable": 2}}
    assert planned(theirs({}), **spec).requeue_after == LIST_PERIOD
    assert planned((), **spec).requeue_after is None


NEEDED: dict[str, dict[str, Any]] = {
    "budget": BUDGET,
    "several slots at once": {"identity": "Stable", "size": 3, "rollout": {"maxUnavailable": 2}},
}


@pytest.mark.parametrize("spec", NEEDED.values(), ids=NEEDED.keys())
def test_budgets_are_needed(spec: dict[str, Any]) -> None:
    assert needs_budgets(snapshot_of((), **spec).cr)
    for size in (1, "x"):  # with an invalid size, nothing is planned
        other: dict[str, Any] = {**spec, "size": size}
        assert not needs_budgets(snapshot_of((), **other).cr)
