"""The number of slots that are changed or not ready at once: what the rollout and the budget allow."""

from dataclasses import replace
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.resolved import slots_at_once
from memcached_api.memcached.types import decode_spec
from memcached_operator.engine.kind import Plan
from memcached_operator.kube.resource import STATEFULSETS, Key, Object
from memcached_operator.kube.selectors import Selector
from memcached_operator.memcached.plan import plan_with
from memcached_operator.world.knowledge import LISTED, UNLISTED, Knowledge
from memcached_operator.world.other_budgets import Budget, OtherBudgets
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, memcached, snapshot_of
from unit.memcached.updates.updating import NEW, OLD, created

PLAN = plan_with(Images("example.com/memcached:1"))
SIZE = 10


def slots(value: Any = None, budget: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A spec with slots. `value`: `rollout.maxUnavailable`; None leaves it out."""
    rollout = {} if value is None else {"rollout": {"maxUnavailable": value}}
    return {
        "identity": "Stable",
        "size": SIZE,
        **rollout,
        **({} if budget is None else {"podDisruptionBudget": budget}),
        **spec,
    }


LIMITS: list[tuple[dict[str, Any], int]] = [
    (slots(), 1),
    (slots(1), 1),
    (slots(3), 3),
    (slots(30), SIZE),
    (slots("100%"), SIZE),
    # Rounded down, but at least 1: as by a Deployment without a surge.
    (slots("25%"), 2),
    (slots("29%"), 2),
    (slots("9%"), 1),
    (slots("1%", size=1000), 10),
    # The budget is rounded up, as by its controller.
    (slots(5, {}), 1),
    (slots(5, {"maxUnavailable": 3}), 3),
    (slots(5, {"maxUnavailable": 7}), 5),
    (slots(5, {"maxUnavailable": "25%"}), 3),
    (slots("50%", {"enabled": True, "maxUnavailable": "41%"}), 5),
    (slots(5, {"enabled": False, "maxUnavailable": 1}), 5),
    (slots(None, {"maxUnavailable": 5}), 1),
    ({"size": SIZE, "rollout": {"maxUnavailable": 5}}, 1),
]


@pytest.mark.parametrize(("spec", "expected"), LIMITS)
def test_limit(spec: dict[str, Any], expected: int) -> None:
    assert slots_at_once(decode_spec(memcached(**spec))) == expected


def planned(spec: dict[str, Any], missing: int, *budgets: Budget, known: Knowledge = LISTED) -> Plan:
    """The plan for pods of an older template, the highest `missing` of which do not exist.

    `budgets`: those of other owners. `known`: what is known of them.
    """
    cr = memcached(**spec)
    first = PLAN(snapshot_of(cr), NOW).children or ()
    workload = next(child for child in first if child["kind"] == "StatefulSet")
    live: Object = {**workload, "metadata": {**workload["metadata"], "generation": 1, "uid": "child"}}
    live["status"] = {"observedGeneration": 1, "updateRevision": NEW}
    pods = [created(slot, live["spec"]["template"], OLD) for slot in range(spec["size"] - missing)]
    for pod in pods:
        pod["metadata"]["annotations"] = {}
    children = {Key(STATEFULSETS, "test", "cache"): live}
    others = OtherBudgets(known, budgets)
    return PLAN(snapshot_of(cr, children, pods, other_budgets=others, resize=Resize.ANY), NOW)


@pytest.mark.parametrize(("spec", "expected"), [(spec, limit) for spec, limit in LIMITS if "identity" in spec])
def test_plan_keeps_the_limit(spec: dict[str, Any], expected: int) -> None:
    """As many slots as the limit are missing: then no other pod is deleted. With one less, one is."""
    for missing, is_made in ((expected - 1, True), (expected, False)):
        update = planned(spec, missing).update
        assert update is not None
        assert (update.step is not None) == is_made


def test_budget_of_others_allows_one_slot_at_a_time() -> None:
    """Its limit is not read, because it may count other pods, too."""
    theirs = Budget("theirs", Selector({}))
    for spec in (slots(5), slots(5, {"maxUnavailable": 5}), slots(5, {"enabled": False})):
        found = planned(spec, 1, theirs)
        assert found.update is not None
        assert found.update.step is None
        assert "spec.rollout.maxUnavailable has no effect, because PodDisruptionBudget theirs" in found.notices[-1]
    assert planned(slots(1), 0, theirs).notices == ()


def test_budgets_that_are_not_listed_allow_one_slot_at_a_time() -> None:
    """The reason is a notice only when the failure lasts: an API server that has just started rejects lists."""
    failed = UNLISTED.failed(403, "forbidden")
    for known, reported in ((UNLISTED, False), (failed, False), (replace(failed, lasts=True), True)):
        found = planned(slots(5), 1, known=known)
        assert found.update is not None
        assert found.update.step is None
        notice = "spec.rollout.maxUnavailable has no effect, because poddisruptionbudgets in namespace test cannot"
        assert any(notice in each for each in found.notices) == reported
    alone = planned(slots(1), 0, known=UNLISTED).update
    assert alone is not None
    assert alone.step is not None
