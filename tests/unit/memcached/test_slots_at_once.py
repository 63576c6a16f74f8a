"""The number of slots that are changed or not ready at once: what the rollout and the budget allow."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.resolved import slots_at_once
from memcached_api.memcached.types import decode_spec
from memcached_operator.engine.kind import Plan
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, STATEFULSETS, Key, Object
from memcached_operator.memcached.plan import plan_with
from memcached_operator.parts.foreign import FOREIGN
from memcached_operator.world.snapshot import Resize, Snapshot
from unit.builders import NOW, memcached
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


def planned(spec: dict[str, Any], missing: int, foreign: Object | None = None) -> Plan:
    """The plan for pods of an older template, the highest `missing` of which do not exist."""
    cr = memcached(**spec)
    first = PLAN(Snapshot(cr), NOW).children or ()
    workload = next(child for child in first if child["kind"] == "StatefulSet")
    live: Object = {**workload, "metadata": {**workload["metadata"], "generation": 1, "uid": "child"}}
    live["status"] = {"observedGeneration": 1, "updateRevision": NEW}
    pods = [created(slot, live["spec"]["template"], OLD) for slot in range(spec["size"] - missing)]
    for pod in pods:
        pod["metadata"]["annotations"] = {}
    others = {} if foreign is None else {POD_DISRUPTION_BUDGETS: (FOREIGN.view(POD_DISRUPTION_BUDGETS, foreign),)}
    children = {Key(STATEFULSETS, "test", "cache"): live}
    return PLAN(Snapshot(cr, children, tuple(pods), foreign=others, resize=Resize.ANY), NOW)


@pytest.mark.parametrize(("spec", "expected"), [(spec, limit) for spec, limit in LIMITS if "identity" in spec])
def test_plan_keeps_the_limit(spec: dict[str, Any], expected: int) -> None:
    """As many slots as the limit are missing: then no other pod is deleted. With one less, one is."""
    for missing, is_made in ((expected - 1, True), (expected, False)):
        update = planned(spec, missing).update
        assert update is not None
        assert (update.step is not None) == is_made


def test_budget_of_others_allows_one_slot_at_a_time() -> None:
    """Its limit is not read, because it may count other pods, too."""
    theirs: Object = {"metadata": {"name": "theirs", "namespace": "test"}, "spec": {"selector": {}}}
    for spec in (slots(5), slots(5, {"maxUnavailable": 5}), slots(5, {"enabled": False})):
        found = planned(spec, 1, theirs)
        assert found.update is not None
        assert found.update.step is None
        assert "spec.rollout.maxUnavailable has no effect, because PodDisruptionBudget theirs" in found.notices[-1]
    assert planned(slots(1), 0, theirs).notices == ()
