import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from memcached_api.validation.field_errors import FieldError
from memcached_operator import metrics
from memcached_operator.engine.kind import DesiredStatus, Outcome, Plan, ReconciledKind, invalid
from memcached_operator.engine.reconciler import Reconciler, most_severe
from memcached_operator.engine.runtime.fair_queue import MAX_LARGE, Limits
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.engine.writes.failed_requests import COOLDOWN
from memcached_operator.engine.writes.reverts import Report, Reverts
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object, key_of
from memcached_operator.memcached.addresses import owners
from memcached_operator.parts.workloads.deployment import DEPLOYMENT
from memcached_operator.world.sizes import Sizes
from memcached_operator.world.snapshot import Snapshot
from support.stores import whole_store
from unit.builders import MEMCACHEDS, memcached
from unit.engine.test_tasks import work_for
from unit.fakes import Api, raising

FORBIDDEN = ApiError(403, "Forbidden", "services is forbidden")
LATER = ApiError(429, "TooManyRequests", "later", retry_after=7)
BROKEN = ApiError(500, "InternalError", "broken")


def child(_: Snapshot, __: object) -> Plan:
    """One Service named `cache`."""
    meta: Object = {"name": "cache", "namespace": "test", "labels": {}}
    return Plan(({"apiVersion": "v1", "kind": "Service", "metadata": meta},))


def child_named_after_owner(snapshot: Snapshot, now: object) -> Plan:
    """One Service with the name of its owner."""
    service = next(iter(child(snapshot, now).children or ()))
    return Plan(({**service, "metadata": {**service["metadata"], "name": snapshot.cr["metadata"]["name"]}},))


def workload_of(_: Snapshot, __: object) -> Plan:
    """A Deployment named `cache`."""
    meta: Object = {"name": "cache", "namespace": "test", "labels": {}}
    return Plan(({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 1}},))


def status_of(_: Snapshot, outcome: Outcome, __: object) -> DesiredStatus:
    """A status with the reasons of all problems."""
    reasons = [problem.reason for problem in outcome.problems]
    condition = {"type": "Degraded", "status": str(bool(reasons)), "reason": "".join(reasons), "message": ""}
    return DesiredStatus({"observedGeneration": 1, "conditions": [condition]})


def invalid_spec(_: Snapshot, __: object) -> Plan:
    """The plan for an invalid spec."""
    return invalid([FieldError("spec.size", 0, "must be at least 1")])


def defective(snapshot: Snapshot, _: object) -> Plan:
    """Raise an unexpected error for one of the objects."""
    if snapshot.cr["metadata"]["name"] == "cache":
        raise ZeroDivisionError
    return Plan(())


def counts_of(_: Object, live: Object | None) -> tuple[int, ...]:
    """One object, and its workload if it has one."""
    return 1, int(live is not None)


KIND = ReconciledKind(
    resource=MEMCACHEDS,
    app_name="memcached",
    owns=(SERVICES,),
    workloads=(DEPLOYMENT,),
    plan=child,
    status=status_of,
)
"""A kind whose objects have one Service."""

Scenario = Callable[[Queue[Key]], Awaitable[None]]


async def until(condition: Callable[[], Any]) -> None:
    """Wait until the condition is true."""
    while not condition():  # noqa: ASYNC110 - waits for the fake API server
        await asyncio.sleep(0.005)


def run_scenario(api: Api, scenario: Scenario, *objects: Object, plan: Any = child, workers: int = 2) -> None:
    """Run a scenario while workers run."""

    async def run() -> None:
        cache = whole_store()
        kind = replace(KIND, plan=plan, owners=owners)
        queue = Queue[Key]("test", limits=Limits(size=Sizes(cache, [kind]).of))
        for obj in objects or (memcached(),):
            cache.put(MEMCACHEDS, api.add(MEMCACHEDS, obj))
        reconciler = Reconciler(api.client, cache, queue, [kind])
        working = asyncio.create_task(reconciler.run(workers))
        for obj in cache.list_objects(MEMCACHEDS):
            queue.add(key_of(MEMCACHEDS, obj))
        async with asyncio.timeout(5):
            await scenario(queue)
        working.cancel()

    asyncio.run(run())


def reasons(api: Api) -> list[str]:
    """The reasons in all statuses."""
    return [condition["reason"] for status in api.statuses for condition in status["conditions"]]


KEY = key_of(MEMCACHEDS, memcached())


def test_invalid_spec_is_reported_in_the_status_and_not_retried() -> None:
    api = Api()

    async def scenario(queue: Queue[Key]) -> None:
        await until(lambda: api.statuses)
        await asyncio.sleep(0)
        assert queue.failures(KEY) == 0

    run_scenario(api, scenario, plan=invalid_spec)
    assert (reasons(api), api.verbs(SERVICES)) == (["InvalidSpec"], [])


def test_status_does_not_wait_for_the_backoff_of_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.BASE_DELAY", 3600)
    api = Api(always={"create": raising(FORBIDDEN)})
    # The generation is observed already, so the changed condition is debounced.
    before: Object = {**memcached(), "status": {"observedGeneration": 1, "conditions": []}}

    async def scenario(_: Queue[Key]) -> None:
        await until(lambda: api.statuses)

    run_scenario(api, scenario, before)
    assert reasons(api)[0] == "ApplyFailed"


def test_status_of_an_object_that_is_deleted_while_its_children_are_written_is_not_computed() -> None:
    """The cache keeps less of its children then, such as no spec of a Deployment."""
    cache, queue = whole_store(), Queue[Key]("test")
    api = Api(always={"create": lambda: cast("None", cache.remove(KEY, 10**9))})
    cache.put(MEMCACHEDS, api.add(MEMCACHEDS, memcached()))
    kind = replace(KIND, owners=owners)
    reconciler = Reconciler(api.client, cache, queue, [kind])
    assert asyncio.run(reconciler.reconcile(KEY)) == "requeue"
    assert api.statuses == []
    assert asyncio.run(reconciler.reconcile(KEY)) == "success"


def test_denied_read_of_an_object_is_not_repeated_at_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object whose child was deleted is read before the child is created again."""
    cache, api = whole_store(), Api(always={"get": raising(FORBIDDEN)})
    cache.put(MEMCACHEDS, api.add(MEMCACHEDS, {**memcached(), "status": {"observedGeneration": 1, "conditions": []}}))
    kind = replace(KIND, owners=owners)
    reconciler = Reconciler(api.client, cache, Queue[Key]("test"), [kind])

    def reconcile() -> None:
        with pytest.raises(ApiError, match="forbidden"):
            asyncio.run(reconciler.reconcile(KEY))

    now = [time.monotonic()]
    monkeypatch.setattr("memcached_operator.engine.writes.failed_requests.time.monotonic", lambda: now[-1])
    for _ in range(5):
        reconcile()
    assert api.verbs() == ["get"]
    now.append(now[0] + COOLDOWN)
    reconcile()
    assert api.verbs() == ["get", "get"]


def count(metric: str, **labels: str) -> float:
    """A metric of reconciles."""
    labels |= {"controller": "memcached"}
    return metrics.REGISTRY.get_sample_value(f"controller_runtime_reconcile_{metric}", labels) or 0


def test_unexpected_error_of_one_object_does_not_stop_the_others() -> None:
    api, panics, errors = Api(), count("panics_total"), count("total", result="error")

    async def scenario(queue: Queue[Key]) -> None:
        await until(lambda: api.statuses and queue.failures(KEY) == 1)

    run_scenario(api, scenario, memcached(), memcached("other", uid="other"), plan=defective)
    assert len(api.statuses) == 1
    assert count("panics_total") == panics + 1
    assert count("total", result="error") > errors


MANY = [memcached(f"cache-{number}", uid=f"uid-{number}") for number in range(6)]
WITH_STATUS = [{**obj, "status": {"observedGeneration": 0}} for obj in MANY]
ORDER = {
    "other objects without a status are queued": (MANY, ["create"] * 6 + ["status"] * 6),
    "no other object is queued": (MANY[:1], ["create", "status"]),
    "objects have a status": (WITH_STATUS[:3], ["create"] * 3 + ["status"] * 3),
}


@pytest.mark.parametrize(("objects", "order"), ORDER.values(), ids=ORDER.keys())
def test_children_of_all_objects_precede_statuses(objects: list[Object], order: list[str]) -> None:
    api = Api()

    async def scenario(_: Queue[Key]) -> None:
        await until(lambda: len(api.statuses) == len(objects))

    run_scenario(api, scenario, *objects, plan=child_named_after_owner, workers=1)
    assert [verb for verb in api.verbs(SERVICES, MEMCACHEDS) if verb != "get"] == order


DELAYS: dict[str, tuple[Plan, Report, float]] = {
    "the plan may change": (Plan((), requeue_after=60), Report(), 60),
    "the applied plan may change": (Plan((), requeue_if_applied=70), Report(), 70),
    "a report of reverts ends": (Plan(()), Report(requeue_after=80), 80),
    "the first of several": (Plan((), requeue_after=60, requeue_if_applied=50), Report(requeue_after=80), 50),
}


@pytest.mark.parametrize(("plan", "report", "seconds"), DELAYS.values(), ids=DELAYS.keys())
def test_object_is_reconciled_again_when_its_state_may_change(
    plan: Plan, report: Report, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reported(*_: object) -> Report:
        return report

    async def run() -> None:
        cache, queue, api = whole_store(), Queue[Key]("test"), Api()
        cache.put(MEMCACHEDS, api.add(MEMCACHEDS, memcached()))

        def planned(_: Snapshot, __: object) -> Plan:
            return plan

        kind = replace(KIND, plan=planned)
        reconciler = Reconciler(api.client, cache, queue, [kind])
        monkeypatch.setattr(Reverts, "report", reported)
        assert await reconciler.reconcile(KEY) == "requeue_after"
        due = vars(queue)["_due"][KEY] - asyncio.get_running_loop().time()
        assert due == pytest.approx(seconds, abs=5)

    asyncio.run(run())


MOST_SEVERE = {
    "permanent": ([LATER, FORBIDDEN, BROKEN], FORBIDDEN),
    "longest delay": ([BROKEN, LATER], LATER),
    "only one": ([BROKEN], BROKEN),
}


@pytest.mark.parametrize(("errors", "expected"), MOST_SEVERE.values(), ids=MOST_SEVERE.keys())
def test_most_severe_error_is_reported(errors: list[ApiError], expected: ApiError) -> None:
    assert most_severe(errors) is expected


def test_records_of_the_children_of_a_deleted_object_are_removed() -> None:
    async def run() -> None:
        reconciler = Reconciler(Api().client, whole_store(), Queue[Key]("test"), [KIND])
        known = cast("dict[str, dict[Key, str]]", vars(vars(reconciler)["_applier"]))
        known["_ineffective"][Key(SERVICES, "test", "cache")] = "effect"
        await reconciler.reconcile(Key(MEMCACHEDS, "test", "cache"))
        assert known["_ineffective"] == {}

    asyncio.run(run())


def test_numbers_of_an_object_are_those_after_the_writes_and_end_with_it() -> None:
    """Also if only the write of the status finds that it was deleted: its event is no news then."""

    async def run() -> None:
        store, key = whole_store(), Key(MEMCACHEDS, "test", "cache")
        store.put(MEMCACHEDS, memcached())
        kind = replace(KIND, owns=(DEPLOYMENTS,), plan=workload_of, counts=counts_of)
        queue = Queue[Key]("test")
        reconciler = Reconciler(Api().client, store, queue, [kind])  # which does not have the object
        await reconciler.reconcile(key)
        assert reconciler.counts == {key: (1, 1)}
        assert store.entry(key) is None
        await reconciler.reconcile(await asyncio.wait_for(queue.get(), 1))
        assert reconciler.counts == {}

    asyncio.run(run())


def test_status_of_an_object_that_keeps_changing_is_written() -> None:
    api = Api()

    def changed(snapshot: Snapshot, _: object) -> Plan:
        """Another Service for each version of the object, as if its spec had changed before every reconcile."""
        name = f"{snapshot.cr['metadata']['name']}-{len(api.calls)}"
        meta: Object = {"name": name, "namespace": "test", "labels": {}}
        return Plan(({"apiVersion": "v1", "kind": "Service", "metadata": meta},))

    async def scenario(queue: Queue[Key]) -> None:
        while not api.statuses:
            queue.add(KEY)
            queue.add(Key(MEMCACHEDS, "test", "other"))
            await asyncio.sleep(0)
            assert len(api.calls) < 50

    run_scenario(api, scenario, plan=changed, workers=1)


@pytest.mark.parametrize("workers", [1, 4])
def test_other_work_runs_between_reconciles_that_make_no_request(workers: int) -> None:
    """A batch of reconciles must not delay the responses that other objects wait for."""
    events: list[str] = []

    def recorded(snapshot: Snapshot, _: object) -> Plan:
        """No change."""
        events.append(snapshot.cr["metadata"]["name"])
        return Plan(())

    def unchanged(snapshot: Snapshot, _: Outcome, __: object) -> DesiredStatus:
        return DesiredStatus(snapshot.cr["status"])

    async def run() -> None:
        cache, queue = whole_store(), Queue[Key]("test")
        for obj in WITH_STATUS:
            cache.put(MEMCACHEDS, obj)
            queue.add(key_of(MEMCACHEDS, obj))
        kind = replace(KIND, plan=recorded, status=unchanged, owners=owners)
        working = asyncio.create_task(Reconciler(Api().client, cache, queue, [kind]).run(workers))
        async with asyncio.timeout(5):
            while len([event for event in events if event != "other work"]) < len(MANY):
                await asyncio.sleep(0)
                events.append("other work")
        working.cancel()

    asyncio.run(run())
    begun = [index for index, event in enumerate(events) if event != "other work"]
    assert all(second - first > 1 for first, second in pairwise(begun))


def test_namespace_of_a_reconcile_that_takes_long_pauses() -> None:
    async def run() -> None:
        cache, queue = whole_store(), Queue[Key]("test", lambda key: key.namespace)
        ended: list[str] = []

        def slow(snapshot: Snapshot, _: object) -> Plan:
            """Keep the event loop busy."""
            work_for(0.2 if snapshot.cr["metadata"]["namespace"] == "test" else 0)
            ended.append(snapshot.cr["metadata"]["name"])
            return Plan(())

        elsewhere = memcached("elsewhere")
        elsewhere["metadata"]["namespace"] = "other"
        for obj in (*MANY[:2], elsewhere):
            cache.put(MEMCACHEDS, obj)
        kind = replace(KIND, plan=slow, owners=owners)
        working = asyncio.create_task(Reconciler(Api().client, cache, queue, [kind]).run(workers=2))
        queue.add(key_of(MEMCACHEDS, MANY[0]))
        async with asyncio.timeout(5):
            await until(lambda: ended)
            started = time.monotonic()
            queue.add(key_of(MEMCACHEDS, MANY[1]))
            queue.add(key_of(MEMCACHEDS, elsewhere))
            await until(lambda: len(ended) == 3)
        assert (ended[1:], time.monotonic() - started >= 0.3) == (["elsewhere", "cache-1"], True)
        working.cancel()

    asyncio.run(run())


def test_large_objects_are_reconciled_one_at_a_time_and_delay_no_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    api, may_continue, creating = Api(), asyncio.Event(), list[str]()
    create = Api.create

    async def slow_create(self: Api, key: Key, obj: Object) -> Object:
        creating.extend([key.name] * (key.resource == SERVICES))
        if key.name in "ab":
            await may_continue.wait()
        return await create(self, key, obj)

    async def scenario(queue: Queue[Key]) -> None:
        await until(lambda: "small" in creating and len(queue) == 1)
        assert len(creating) == 2
        may_continue.set()
        await until(lambda: len(creating) == 3)

    monkeypatch.setattr(Api, "create", slow_create)
    large = [memcached(name, uid=name, image="x" * MAX_LARGE) for name in "ab"]
    run_scenario(api, scenario, *large, memcached("small"), plan=child_named_after_owner, workers=3)
