"""What a reconcile hands to the status, and what it remembers."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, cast

import pytest

from memcached_operator.engine.events.reader import Causes
from memcached_operator.engine.kind import DesiredStatus, Outcome, Plan, ReconciledKind
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.reporting.posted_events import Recorder
from memcached_operator.engine.reporting.reports import Report as Reported
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.engine.writes.apply import Applier
from memcached_operator.engine.writes.result import Result
from memcached_operator.engine.writes.reverts import Report, Reverts
from memcached_operator.findings.finding import Intervention, Problem
from memcached_operator.kube.resource import SERVICES, Key, Object, key_of
from memcached_operator.parts.workloads.deployment import DEPLOYMENT
from memcached_operator.world.snapshot import Message, Snapshot
from memcached_operator.world.store import Store
from support.stores import whole_store
from unit.builders import MEMCACHEDS, NOW, memcached
from unit.fakes import Api

KEY = key_of(MEMCACHEDS, memcached())
EDITED, PLANNED = (Intervention(reason, reason) for reason in ("Edited", "Planned"))


def kind_of(plan: Plan, seen: list[tuple[Snapshot, Outcome]]) -> ReconciledKind:
    """A kind that has this plan, and appends what its status gets."""

    def status(snapshot: Snapshot, outcome: Outcome, _: object) -> DesiredStatus:
        seen.append((snapshot, outcome))
        return DesiredStatus({"conditions": []})

    return ReconciledKind(
        resource=MEMCACHEDS,
        app_name="memcached",
        owns=(SERVICES,),
        workloads=(DEPLOYMENT,),
        plan=lambda _, __: plan,
        status=status,
    )


def reconciled(
    kind: ReconciledKind, *, cache: Store | None = None, waiting: Sequence[str] = ()
) -> tuple[Api, Reconciler]:
    """Reconcile the object once. `waiting`: other objects in the queue. Returns the API server and the reconciler."""

    async def run() -> tuple[Api, Reconciler]:
        api, queue, known = Api(), Queue[Key]("test"), cache or whole_store()
        known.put(MEMCACHEDS, api.add(MEMCACHEDS, memcached()))
        for name in waiting:
            queue.add(Key(MEMCACHEDS, "test", name))
        reconciler = Reconciler(api.client, known, queue, [kind])
        await reconciler.reconcile(KEY)
        return api, reconciler

    return asyncio.run(run())


PROBLEMS = Problem("InvalidSpec", "of the plan"), Problem("Conflict", "of reverts")


def test_interventions_are_those_of_the_plan_and_of_reverts(monkeypatch: pytest.MonkeyPatch) -> None:
    def report(*_: object) -> Report:
        return Report((EDITED,), (PROBLEMS[1],))

    monkeypatch.setattr(Reverts, "report", report)
    seen: list[tuple[Snapshot, Outcome]] = []
    reconciled(kind_of(Plan((), (PROBLEMS[0],), ("of the plan",), interventions=(PLANNED,)), seen))
    assert seen[-1][1].interventions == (PLANNED, EDITED)
    assert (seen[-1][1].problems, seen[-1][1].notices) == (PROBLEMS, ("of the plan",))


def test_event_reports_what_a_status_mentions_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart it has the same name, so that the API server rejects it."""
    events: list[tuple[str, str]] = []

    def record(_: Recorder, __: Object, found: Iterable[Reported]) -> None:
        events.extend((each.reason, each.name) for each in found if each.name)

    monkeypatch.setattr(Recorder, "record", record)
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 0.0)
    mentioned = iter([(PLANNED,), (PLANNED, EDITED), (), (PLANNED,), (PLANNED,)])
    writes = count()

    def plan(*_: object) -> Plan:
        return Plan((), interventions=next(mentioned))

    def status(*_: object) -> DesiredStatus:
        return DesiredStatus({"conditions": [], "observedGeneration": next(writes)})

    kind = replace(kind_of(Plan(()), []), plan=plan, status=status)

    async def run() -> None:
        api, cache = Api(), whole_store()
        cache.put(MEMCACHEDS, api.add(MEMCACHEDS, memcached()))
        for reconciles in (4, 1):
            reconciler = Reconciler(api.client, cache, Queue[Key]("test"), [kind])
            for _ in range(reconciles):
                await reconciler.reconcile(KEY)

    asyncio.run(run())
    assert [reason for reason, _ in events] == ["Planned", "Edited", "Planned", "Planned"]
    assert len(set(events)) == 2


def test_messages_that_are_known_are_part_of_the_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"uid": (Message(NOW, "no"),)}

    def add(_: Causes, snapshot: Snapshot, *__: object) -> Snapshot:
        return replace(snapshot, messages=known)

    monkeypatch.setattr(Causes, "add_to", add)
    seen: list[tuple[Snapshot, Outcome]] = []
    reconciled(kind_of(Plan(()), seen))
    assert seen[-1][0].messages == known


def test_deferred_status_is_remembered_until_it_is_written_or_its_object_deleted() -> None:
    meta: Object = {"name": "cache", "namespace": "test", "labels": {}}
    service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": meta}
    for end in ("written", "deleted"):
        cache = whole_store()
        _, reconciler = reconciled(kind_of(Plan((service,)), []), cache=cache, waiting=["other"])
        deferred: set[Key] = vars(reconciler)["_deferred"]
        assert deferred == {KEY}
        vars(reconciler)["_status"].begin_rollout(KEY)
        if end == "deleted":
            cache.remove(KEY, 10**9)
        asyncio.run(reconciler.reconcile(KEY))
        assert deferred == set()
        assert (KEY in vars(vars(reconciler)["_status"])["_rollouts"]) == (end == "written")


def test_rollout_ends_with_the_status_that_reports_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that is not available for a moment afterwards is not the end of another one."""
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 0.0)
    writes = count()

    def status(*_: object) -> DesiredStatus:
        condition = {"type": "Progressing", "status": "False", "reason": "RolloutComplete", "message": ""}
        return DesiredStatus({"conditions": [condition], "observedGeneration": next(writes)})

    _, reconciler = reconciled(replace(kind_of(Plan(()), []), status=status))
    vars(reconciler)["_status"].begin_rollout(KEY)
    asyncio.run(reconciler.reconcile(KEY))
    assert not vars(vars(reconciler)["_status"])["_rollouts"]


def test_object_that_changes_before_its_status_is_written_is_reconciled_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store ignores the event of that change, because the reply to the status has it."""
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 0.0)
    writes = count()

    def status(*_: object) -> DesiredStatus:
        return DesiredStatus({"conditions": [], "observedGeneration": next(writes)})

    api, reconciler = reconciled(replace(kind_of(Plan(()), []), status=status))
    api.hooks["status"].append(lambda: api.objects.update({KEY: api.put(KEY, api.objects[KEY], generation=2)}))
    assert asyncio.run(reconciler.reconcile(KEY)) == "requeue_after"
    assert vars(vars(reconciler)["_queue"])["_due"][KEY] <= time.monotonic()


def test_status_is_written_only_to_the_object_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    uids: list[str] = []
    patch = Api.patch

    async def recorded(self: Api, key: Key, body: Any, content_type: str = "", subresource: str = "") -> Object:
        uids.append(body["metadata"]["uid"])
        return await patch(self, key, body, content_type, subresource)

    def status(*_: object) -> DesiredStatus:
        return DesiredStatus({"observedGeneration": 1, "conditions": []})

    monkeypatch.setattr(Api, "patch", recorded)
    reconciled(replace(kind_of(Plan(()), []), status=status))
    assert uids == [memcached()["metadata"]["uid"]]


def tables_with_object(reconciler: Reconciler, *parts: str) -> set[str]:
    """Names of the tables of these parts of a reconciler that contain the object."""
    fields: list[dict[str, Any]] = [vars(vars(reconciler)[part]) for part in parts]
    tables = [each for part in fields for each in part.items()]
    return {name for name, table in tables if isinstance(table, dict | set) and KEY in table}


def test_everything_about_a_deleted_object_is_forgotten() -> None:
    """A later object of the same name inherits nothing."""
    cache = whole_store()
    _, reconciler = reconciled(kind_of(Plan(()), []), cache=cache)
    parts = ("_queue", "_status", "_causes", "_disruptions", "_strays")
    for part, table in zip(parts, ("_failures", "_changed_at", "_states", "_kept", "_since"), strict=True):
        vars(vars(reconciler)[part])[table][KEY] = "known"
    vars(reconciler)["_status"].begin_rollout(KEY)
    cache.remove(KEY, 10**9)
    asyncio.run(reconciler.reconcile(KEY))
    assert tables_with_object(reconciler, *parts) <= {"_due"}, "a reconcile that was due finds no object"


def test_state_of_an_object_that_is_deleted_during_a_status_patch_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 0.0)
    writes = count()

    def status(*_: object) -> DesiredStatus:
        return DesiredStatus({"conditions": [], "observedGeneration": next(writes)})

    api, reconciler = reconciled(replace(kind_of(Plan(()), []), status=status))
    assert tables_with_object(reconciler, "_status")
    api.objects.clear()
    asyncio.run(reconciler.reconcile(KEY))
    assert api.verbs()[-2:] == ["status", "get"]
    assert not tables_with_object(reconciler, "_status")


def test_object_is_reconciled_again_when_its_status_may_change() -> None:
    def status(*_: object) -> DesiredStatus:
        return DesiredStatus({"observedGeneration": 1, "conditions": []}, requeue_after=5)

    started = time.monotonic()
    api, reconciler = reconciled(replace(kind_of(Plan(()), []), status=status))
    queue: Queue[Key] = vars(reconciler)["_queue"]
    for _ in range(2):
        assert len(api.statuses) == 1
        assert started + 4 < vars(queue)["_due"].pop(KEY) < time.monotonic() + 6
        asyncio.run(reconciler.reconcile(KEY))


def test_reader_and_the_writer_of_events_run(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: set[str] = set()
    for each in (Recorder, Causes):

        async def run(self: object) -> None:
            begun.add(type(self).__name__)

        monkeypatch.setattr(each, "run", run)

    async def scenario() -> None:
        working = asyncio.create_task(reconciled_by.run(1))
        await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.wait((working,))

    reconciled_by = Reconciler(Api().client, whole_store(), Queue[Key]("test"), [kind_of(Plan(()), [])])
    asyncio.run(scenario())
    assert begun == {"Recorder", "Causes"}


def test_object_that_is_being_deleted_is_not_planned() -> None:
    """Another client's finalizer holds it."""
    api, seen, known = Api(), list[tuple[Snapshot, Outcome]](), whole_store()
    known.put(MEMCACHEDS, api.put(KEY, memcached(), deletionTimestamp="2030-01-01T00:00:00Z"))
    reconciler = Reconciler(api.client, known, Queue[Key]("test"), [kind_of(Plan(()), seen)])
    assert asyncio.run(reconciler.reconcile(KEY)) == "success"
    assert (api.calls, seen) == ([], [])


@pytest.mark.parametrize("number", [0, 1])
def test_rollout_begins_with_a_new_template(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Result(rollouts=[Reported("RolloutStarted", "")] * number)

    async def apply_all(*_: object, versioned: bool) -> Result:
        return result

    monkeypatch.setattr(Applier, "apply_all", apply_all)
    _, reconciler = reconciled(kind_of(Plan(()), []))
    begun = cast("set[Key]", vars(vars(reconciler)["_status"])["_rollouts"])
    assert len(begun) == number
