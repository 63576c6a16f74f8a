"""Children that other clients keep changing: who is named, when, and how often a change is reverted."""

import asyncio
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.shared.rules.placing import RESTARTED_AT
from memcached_operator.engine.reconciler import gather
from memcached_operator.engine.writes import reverts
from memcached_operator.engine.writes.apply import Applier, build_intent
from memcached_operator.engine.writes.result import Result
from memcached_operator.engine.writes.reverts import AGAIN, LIMIT, LIMITED, PERIOD, WINDOW, Report, Reverts
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object
from memcached_operator.memcached.controller import memcached as memcached_kind
from memcached_operator.memcached.interventions import restart
from support.stores import whole_store
from unit.builders import LABELS, memcached
from unit.fakes import Api

KEY = Key(DEPLOYMENTS, "test", "cache")
CHANGED: Object = {"f:spec": {"f:replicas": {}, "f:minReadySeconds": {}}}


def reported(uid: str = "cr") -> Object:
    """A Memcached whose status is up to date."""
    return {**memcached(uid=uid), "status": {"observedGeneration": 1}}


def desired(cr: Object, **spec: Any) -> Object:
    """The intent for the Deployment."""
    meta = {"name": "cache", "labels": LABELS}
    return build_intent(cr, {"kind": "Deployment", "metadata": meta, "spec": {"replicas": 3, **spec}})


class Fight:
    """Another client changes the number of pods, and the controller reverts it. `now`: in seconds."""

    def __init__(self, manager: str = "kubectl") -> None:
        self.now, self.reads, self.manager, self.key = 0.0, 0, manager, KEY
        self.reverts = Reverts(self.read)
        self.reverts.clock = lambda: self.now
        self.cr, self.child = reported(), desired(reported())
        self.changed: Object = {"spec": {"replicas": 0}}

    async def read(self, _: Key) -> Object:
        """The child with its field managers."""
        self.reads += 1
        entry: Object = {"manager": self.manager, "operation": "Update", "subresource": "scale", "fieldsV1": CHANGED}
        return self.live(managedFields=[entry])

    def live(self, **meta: Any) -> Object:
        """The child as the other client left it."""
        changed = self.changed.get("metadata", {})
        return {**self.child, **self.changed, "metadata": {**self.child["metadata"], **changed, **meta}}

    def revert(self, live: Object | None = None, *, deleted: bool = False, after: float = 60) -> None:
        """The controller writes the child once, after some seconds."""
        self.now += after
        found = None if deleted else live or self.live()
        self.reverts.add(asyncio.run(self.reverts.identify(self.cr, self.key, self.child, found, restart)))

    def fight(self, writes: int) -> None:
        """The other client changes the child at once after each write."""
        for _ in range(writes):
            self.revert(after=self.delay())

    def delay(self, key: Key = KEY, child: Object | None = None) -> float:
        """Seconds until the controller may write a child, by default this one."""
        return self.reverts.delay(self.cr, key, child or self.child)

    @property
    def report(self) -> Report:
        """What the status says."""
        return self.reverts.report(self.cr, [self.key])

    @property
    def messages(self) -> list[str]:
        """The notices in the status."""
        return [each.message for each in self.report.interventions]

    @property
    def problems(self) -> list[str]:
        """The problems that the status reports."""
        return [each.message for each in self.report.problems]


def test_second_change_is_reported_with_its_field_manager_once() -> None:
    fight = Fight()
    fight.revert()
    assert (fight.messages, fight.reads) == ([], 0)
    fight.revert()
    (message,) = fight.messages
    assert "Field manager: kubectl (subresource scale)" in message
    for _ in range(20):
        fight.revert()
    assert fight.messages == [message], "it must not change, or it would cause status writes"
    assert fight.report.requeue_after == WINDOW


def test_autoscaler_is_a_conflict_that_does_not_block_until_it_has_changed_nothing_for_a_while() -> None:
    fight = Fight("kube-controller-manager")
    fight.revert()
    assert fight.report == Report()
    fight.revert()
    report = fight.report
    (problem,) = report.problems
    assert (problem.reason, problem.blocks, report.interventions) == ("Conflict", False, ())
    assert (fight.messages, report.requeue_after) == ([], AGAIN)
    assert "A HorizontalPodAutoscaler scales it: see kubectl get hpa -n test." in problem.message
    fight.now += AGAIN
    assert fight.report == Report()
    fight.revert()
    assert fight.report.problems == (problem,)


def test_other_changes_do_not_report_an_autoscaler_again_that_has_ended() -> None:
    fight = Fight("kube-controller-manager")
    fight.revert()
    fight.revert()
    fight.now += AGAIN
    fight.manager, fight.changed = "kubectl-label", {"metadata": {"labels": {**LABELS, "a": "b"}}}
    for _ in range(9):
        fight.revert(after=300)
        assert fight.problems == []


@pytest.mark.parametrize("interval", [20, 600, 1800])
def test_slow_autoscaler_is_reported_without_a_gap(interval: float) -> None:
    fight = Fight("kube-controller-manager")
    for _ in range(3):
        fight.revert(after=max(interval, 60))
    for _ in range(4):
        fight.now += interval - 1
        assert len(fight.problems) == 1
        fight.revert(after=1)


def test_report_ends_with_the_changes_and_a_later_one_is_the_first_again() -> None:
    fight = Fight()
    fight.revert()
    fight.revert()
    fight.now += WINDOW
    assert not fight.messages
    fight.revert(after=0)
    assert not fight.messages


def test_last_three_clients_are_reported_in_a_constant_order() -> None:
    fight = Fight()
    fight.revert()
    for fight.manager in ("one", "two", "three", "four", "three", "two", "four"):
        fight.revert()
    named = [message.split("Field manager: ")[1].split()[0] for message in fight.messages]
    assert named == ["two", "three", "four"]


def test_report_of_a_client_ends_an_hour_after_its_last_change() -> None:
    fight = Fight("first")
    fight.revert()
    fight.revert()
    fight.manager = "second"
    fight.revert(after=WINDOW - 1)
    assert len(fight.messages) == 2
    assert fight.report.requeue_after == 1
    fight.now += 1
    (message,) = fight.messages
    assert "second" in message


def test_edit_is_not_attributed_to_a_deletion() -> None:
    """A cleanup job deletes the child every 70 s, and a policy controller edits it."""
    fight = Fight("policy")
    for _ in range(3):
        fight.revert(deleted=True, after=70)
        fight.revert(after=5)
    reads, expected = fight.reads, {*fight.messages}
    assert sorted("deleted it repeatedly" in each for each in expected) == [False, True]
    for _ in range(9):
        fight.revert(deleted=True, after=50)
        fight.revert(after=5)
        fight.revert(after=5)
        texts = {each.removesuffix(f". {LIMITED}") for each in (*fight.messages, *fight.problems)}
        assert texts == expected, "it must not change, or it would cause Events"
    assert fight.reads > reads
    fight.now += WINDOW - 5
    (last,) = fight.messages
    assert "policy" in last


def test_edit_during_the_pause_after_a_read_without_a_result_is_not_reported() -> None:
    fight = Fight()
    for _ in range(3):
        fight.revert(deleted=True)
    live, fight.changed = fight.live(), {}
    fight.revert(live)
    assert (fight.reads, fight.report.requeue_after) == (1, WINDOW - 60)
    fight.revert(live, after=5)
    assert (fight.reads, fight.report.requeue_after) == (1, WINDOW - 65), "the deletion is not repeated"


def test_other_client_is_read_after_a_minute_of_a_fight() -> None:
    fight = Fight("first")
    fight.fight(LIMIT)
    fight.manager = "second"
    reads = fight.reads
    fight.fight(4)
    assert "second" in fight.problems[-1]
    assert fight.reads <= reads + 4


def test_deleted_child_is_reported_without_a_read() -> None:
    fight = Fight()
    fight.revert(deleted=True)
    fight.revert(deleted=True)
    assert not fight.messages, "the first creation may be of a new child"
    fight.revert(deleted=True)
    assert "deleted it repeatedly" in fight.messages[0]
    assert fight.reads == 0


def test_change_of_the_spec_is_no_revert() -> None:
    fight = Fight()
    for generation in range(2, 6):
        fight.cr = {**fight.cr, "metadata": {**fight.cr["metadata"], "generation": generation}}
        fight.revert()
    assert not fight.messages


def test_change_of_the_plan_without_a_change_of_the_spec_is_no_revert() -> None:
    """Such as a PodDisruptionBudget of another owner, or a new release of the operator."""
    fight = Fight()
    for seconds in range(1, 6):
        before = fight.child
        fight.child = desired(fight.cr, minReadySeconds=seconds)
        fight.revert(before)
    assert not fight.messages


def test_child_that_is_new_in_the_plan_is_no_revert() -> None:
    """It is not created with the others, because it waits for something, or because that fails."""
    fight = Fight()
    fight.revert(deleted=True)
    fight.revert()
    assert fight.messages == []
    fight.revert()
    assert len(fight.messages) == 1


def test_child_that_the_controller_deletes_itself_is_forgotten() -> None:
    fight = Fight()
    for _ in range(4):
        fight.revert(deleted=True)
        fight.reverts.forget(KEY)
    assert not fight.messages


def test_only_the_deleted_child_is_forgotten() -> None:
    fight = Fight()
    fight.revert()
    fight.revert()
    service = Key(SERVICES, "test", "cache")
    fight.reverts.add(asyncio.run(fight.reverts.identify(fight.cr, service, fight.child, fight.live())))
    fight.reverts.forget(service)
    assert fight.messages
    fight.reverts.forget(KEY)
    assert vars(fight.reverts)["_records"] == {}


def test_other_instance_of_the_operator_is_reported() -> None:
    fight = Fight("memcached-operator")
    fight.changed = desired(fight.cr, minReadySeconds=9)
    fight.child = desired(fight.cr, minReadySeconds=1)
    for _ in range(3):
        assert not fight.messages
        fight.revert()
    assert "Another instance of this operator" in fight.messages[0]
    assert "changed spec.minReadySeconds repeatedly" in fight.messages[0], "without the annotation of the intent"


def test_restart_is_reported_when_it_is_reverted_first() -> None:
    fight = Fight("kubectl-rollout")
    annotations = {RESTARTED_AT: "2030-01-01T00:00:00Z"}
    fight.child = desired(fight.cr, template={"metadata": {"annotations": annotations}})
    fight.changed = {"spec": {"replicas": 3, "template": {"metadata": {"annotations": {RESTARTED_AT: "later"}}}}}
    fight.revert()
    assert "kubectl rollout restart was reverted" in fight.messages[0]


def test_change_that_ended_before_it_is_read_is_not_reported() -> None:
    fight = Fight()
    fight.revert()
    live, fight.changed = fight.live(), {}
    fight.revert(live)
    assert not fight.messages


def test_child_is_reverted_less_and_less_often() -> None:
    fight = Fight()
    fight.revert(after=0)
    begin, writes = fight.now, 1
    while fight.now < begin + PERIOD:
        fight.fight(1)
        writes += 1
        assert 0 < fight.delay() <= PERIOD
    assert writes <= 10
    assert fight.reads <= 2
    (problem,) = fight.problems
    assert problem.endswith("This happens so often that the controller waits up to 60 s before it reverts a change")
    assert not fight.messages
    assert not fight.report.problems[0].blocks
    fight.fight(9)
    assert fight.delay() > PERIOD / 2
    assert fight.problems == [problem], "it must not change, or it would cause status writes"
    fight.now += fight.delay()
    assert fight.delay() == 0


def test_client_that_acts_once_a_minute_is_reverted_at_once() -> None:
    fight = Fight()
    for _ in range(3 * LIMIT):
        fight.revert(after=PERIOD)
        assert fight.delay() < 1
    assert not fight.problems
    assert fight.messages


def test_delay_is_not_for_a_change_of_the_spec_or_another_child() -> None:
    fight = Fight()
    fight.fight(LIMIT)
    assert fight.delay(child=desired(fight.cr, replicas=5)) == 0
    assert fight.delay(child=desired(fight.cr, minReadySeconds=5)) == 0
    assert fight.delay(Key(SERVICES, "test", "cache")) == 0
    fight.cr = reported("other")
    assert fight.delay() == 0


def test_limited_child_stays_degraded_until_it_is_calm() -> None:
    fight = Fight()
    fight.fight(LIMIT)
    assert fight.problems
    assert fight.report.requeue_after == AGAIN
    fight.now += AGAIN
    assert not fight.problems
    assert len(fight.messages) == 1, "it stays for an hour"
    fight.revert()
    assert len(fight.messages) == 1
    fight.now += WINDOW
    assert fight.report == Report()


def test_limited_child_stays_degraded_if_the_changes_become_rarer() -> None:
    fight = Fight()
    fight.fight(LIMIT)
    problems = fight.problems
    for seconds in (121, 121, 300, AGAIN - 1):
        fight.revert(after=seconds)
        assert fight.report.problems
        assert (fight.problems, fight.messages) == (problems, [])
        assert fight.report.requeue_after == pytest.approx(AGAIN)
        fight.now += AGAIN - 1
        assert fight.problems == problems
        fight.now -= AGAIN - 1
    fight.now += AGAIN
    assert not fight.problems
    assert fight.messages


def test_autoscaler_that_was_limited_is_not_reported_after_its_end() -> None:
    fight = Fight("kube-controller-manager")
    fight.fight(LIMIT)
    assert LIMITED in fight.problems[0]
    fight.now += AGAIN
    assert fight.report == Report()


def test_all_services_of_slots_are_limited() -> None:
    """A Memcached can have 100, and a fight over all of them must not be forgotten before it is reported."""
    fight = Fight()
    services = [Key(SERVICES, "test", f"cache-{slot}") for slot in range(100)]
    for _ in range(LIMIT):
        for fight.key in services:
            fight.revert(after=0.2)
    assert len(fight.reverts.report(fight.cr, services).problems) == 100


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverts, "MAX_RECORDS", 4)
    fight = Fight()
    for number in (0, 1, 2, 3, 0, 4):
        fight.key = Key(SERVICES, "test", f"cache-{number}")
        fight.revert(after=0)
        fight.revert(after=0)
    kept = [key.name for key in vars(fight.reverts)["_records"]]
    assert kept == ["cache-2", "cache-3", "cache-0", "cache-4"]


def test_deletions_of_a_child_by_another_client_cost_few_requests() -> None:
    """Also no reads: each of them would follow a deletion."""
    api, cache, cr = Api(), whole_store(), reported()
    applier = Applier(api.client, cache)
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "cache", "namespace": "test", "labels": {}},
    }
    key = Key(SERVICES, "test", "cache")
    kind = memcached_kind(Images("example.com/memcached:1"))
    requested: list[bool] = []
    result = Result()
    for _ in range(50):
        snapshot = gather(cache, kind, cr, {})
        requested.append(applier.would_create(kind, snapshot, [service]))
        result = asyncio.run(applier.apply_all(kind, snapshot, [service]))
        if live := api.objects.pop(key, None):
            cache.remove(key, int(live["metadata"]["resourceVersion"]) + 1)
    assert requested == [True] + [False] * 49
    assert api.verbs().count("create") == 1
    assert api.verbs().count("get") == 1
    assert result.requeue_after is not None
    assert result.requeue_after <= 1
