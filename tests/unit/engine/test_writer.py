"""The status while children cannot be applied, and how often it is written."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.reporting.posted_events import Recorder
from memcached_operator.engine.reporting.reports import Report
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, EVENTS, PODS, SERVICES, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from support.stores import whole_store
from unit import builders
from unit.fakes import Api, raising

KEY = Key(MEMCACHEDS, "test", "cache")
DEPLOYMENT, SERVICE = Key(DEPLOYMENTS, "test", "cache"), Key(SERVICES, "test", "cache")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
KIND = memcached(Images("example.com/memcached:1"))
BASE = 0.05
PERIOD = 0.02


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short periods."""
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.BASE_DELAY", BASE)
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.JITTER", 0)
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", PERIOD)
    monkeypatch.setattr("memcached_operator.engine.reporting.conditions.DEBOUNCE_PERIOD", 0)


class Cluster:
    """A Memcached and a reconciler."""

    def __init__(self) -> None:
        self.api, self.cache, self.queue = Api(), whole_store(), Queue[Key]("test")
        self.write(builders.memcached(size=1, image="example.com/memcached:1"))
        self.reconciler = Reconciler(self.api.client, self.cache, self.queue, [KIND])

    def write(self, cr: Object, **meta: Any) -> None:
        """Write the Memcached as another client, and handle its event."""
        self.observe(KEY, self.api.put(KEY, cr, **meta))

    def observe(self, key: Key, obj: Object) -> None:
        """Handle the event of a change."""
        self.cache.put(key.resource, obj)
        self.queue.add(KEY)

    def resize(self, size: int) -> None:
        """Change the size as another client."""
        cr = self.api.objects[KEY]
        self.write({**cr, "spec": {**cr["spec"], "size": size}}, generation=cr["metadata"]["generation"] + 1)

    def complete_rollout(self) -> None:
        """Complete the rollout of the Deployment, and observe its pods."""
        live = self.api.objects[DEPLOYMENT]
        size: int = live["spec"]["replicas"]
        for name in "abcdef"[:size]:
            self.cache.put(PODS, controlled_pod(name))
        status = {**builders.rolled_out(size)["status"], "observedGeneration": 1}
        self.observe(DEPLOYMENT, self.api.put(DEPLOYMENT, {**live, "status": status}, generation=1))

    def reports(self, **expected: str) -> bool:
        """True if the last status has these reasons."""
        found = reasons(self.api.statuses[-1]) if self.api.statuses else {}
        return expected.items() <= found.items()


Scenario = Callable[[Cluster], Awaitable[None]]


def run_scenario(scenario: Scenario) -> Cluster:
    """Run a scenario while a worker runs."""

    async def run() -> Cluster:
        cluster = Cluster()
        worker = asyncio.create_task(cluster.reconciler.run(1))
        try:
            async with asyncio.timeout(10):
                await scenario(cluster)
        finally:
            worker.cancel()
            await asyncio.wait((worker,))
        return cluster

    return asyncio.run(run())


async def until(condition: Callable[[], Any]) -> None:
    """Wait until the condition is true."""
    while not condition():  # noqa: ASYNC110 - waits for the fake API server
        await asyncio.sleep(0.005)


def reasons(status: Object) -> dict[str, str]:
    """The reasons of a status, by condition."""
    return {each["type"]: each["reason"] for each in status["conditions"]}


def messages(status: Object) -> dict[str, str]:
    """The messages of a status, by condition."""
    return {each["type"]: each["message"] for each in status["conditions"]}


async def wait_until_available(cluster: Cluster) -> None:
    """Complete the first rollout, and wait until the status reports it."""
    await until(lambda: DEPLOYMENT in cluster.api.objects)
    cluster.complete_rollout()
    await until(lambda: cluster.reports(Progressing="RolloutComplete", Degraded="AsExpected"))


def of_generation(cluster: Cluster, generation: int) -> Iterator[Object]:
    """The statuses written for a generation of the spec."""
    return (status for status in cluster.api.statuses if status["observedGeneration"] == generation)


def test_status_recovers_with_the_api_server() -> None:
    async def scenario(cluster: Cluster) -> None:
        await wait_until_available(cluster)
        cluster.api.always["scale"] = raising(BROKEN)
        cluster.resize(5)
        await until(lambda: cluster.reports(Degraded="ApplyFailed"))
        cluster.api.always.clear()
        await until(lambda: cluster.reports(Progressing="RollingOut", Degraded="AsExpected"))
        await until(lambda: cluster.queue.failures(KEY) == 0)
        cluster.complete_rollout()
        await until(lambda: cluster.reports(Progressing="RolloutComplete", Degraded="AsExpected"))

    assert run_scenario(scenario).api.objects[DEPLOYMENT]["spec"]["replicas"] == 5


def test_events_do_not_reset_the_backoff_of_a_failed_status_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 0.3)
    times: list[float] = []

    def failing() -> None:
        times.append(time.monotonic())
        raise BROKEN

    async def scenario(cluster: Cluster) -> None:
        cluster.api.always["status"] = failing
        await until(lambda: times)

        def counted() -> bool:
            cluster.queue.add(KEY)
            return cluster.queue.failures(KEY) == 3

        await until(counted)
        cluster.api.always.clear()
        await until(lambda: cluster.api.statuses)
        await until(lambda: cluster.queue.failures(KEY) == 0)

    run_scenario(scenario)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # An attempt may be late on a busy machine, but never early.
    assert all(gap >= 0.99 * BASE * 2**number for number, gap in enumerate(gaps)), gaps


def test_pending_status_does_not_keep_the_backoff_of_earlier_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.conditions.START_PERIOD", 3600)
    # Longer than the cooldown of a failed write, which would fail the retry too.
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.BASE_DELAY", 0.5)

    async def scenario(cluster: Cluster) -> None:
        await until(lambda: DEPLOYMENT in cluster.api.objects)
        cluster.complete_rollout()
        await until(lambda: cluster.reports(Progressing="RolloutComplete"))
        written, live = len(cluster.api.statuses), cluster.api.objects[DEPLOYMENT]
        changed = {**live, "spec": {**live["spec"], "replicas": 5}, "status": {**live["status"], "readyReplicas": 5}}
        cluster.api.hooks["scale"] = [raising(BROKEN)]
        cluster.observe(DEPLOYMENT, cluster.api.put(DEPLOYMENT, changed, generation=1))
        await until(lambda: cluster.queue.failures(KEY) == 1)
        await until(lambda: cluster.queue.failures(KEY) == 0)
        assert cluster.api.objects[DEPLOYMENT]["spec"]["replicas"] == 1
        assert len(cluster.api.statuses) == written

    run_scenario(scenario)


def test_one_status_is_written_per_period_and_the_last_one_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 0.1)
    times: list[float] = []

    async def scenario(cluster: Cluster) -> None:
        cluster.api.always["status"] = lambda: times.append(time.monotonic())
        for size in range(2, 20):
            cluster.resize(size)
            await asyncio.sleep(0.02)
        await until(lambda: cluster.api.statuses[-1]["observedGeneration"] == 19)

    run_scenario(scenario)
    assert len(times) >= 3
    # On a busy machine, a patch may be sent later than its turn, and the next one on time.
    assert len(times) - 1 <= (times[-1] - times[0]) / 0.1 + 1


def prune(obj: Object) -> Object:
    """Remove a field, as the CRD of another release does."""
    status = {name: value for name, value in obj.get("status", {}).items() if name != "nodes"}
    return {**obj, "status": status} if "status" in obj else obj


def test_field_that_the_crd_prunes_is_not_written_repeatedly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.conditions.PROGRESS_PERIOD", 0)

    async def scenario(cluster: Cluster) -> None:
        cluster.api.policy = prune
        await wait_until_available(cluster)
        await asyncio.sleep(5 * PERIOD)
        written = len(cluster.api.statuses)
        for _ in range(10):
            cluster.queue.add(KEY)
            await asyncio.sleep(1.5 * PERIOD)
        assert len(cluster.api.statuses) == written
        cluster.resize(2)
        await until(lambda: cluster.api.statuses[-1]["observedGeneration"] == 2)

    assert len(run_scenario(scenario).api.statuses) <= 6


def test_spec_that_first_appears_in_the_reply_to_a_status_is_reconciled() -> None:
    async def scenario(cluster: Cluster) -> None:
        def change() -> None:
            cr = cluster.api.objects[KEY]
            cluster.api.put(KEY, {**cr, "spec": {**cr["spec"], "size": 5}}, generation=2)

        cluster.api.hooks["status"] = [change]
        await until(lambda: list(of_generation(cluster, 2)))
        assert cluster.api.objects[DEPLOYMENT]["spec"]["replicas"] == 5

    run_scenario(scenario)


def test_status_changed_by_another_client_is_corrected() -> None:
    async def scenario(cluster: Cluster) -> None:
        await wait_until_available(cluster)
        expected = cluster.api.objects[KEY]["status"]
        # Counts and lists are debounced as progress; observedGeneration is not.
        cluster.write({**cluster.api.objects[KEY], "status": {**expected, "observedGeneration": 0, "nodes": ["other"]}})
        await until(lambda: cluster.api.objects[KEY]["status"] == expected)

    run_scenario(scenario)


def test_status_that_another_client_writes_at_the_same_time_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.conditions.PROGRESS_PERIOD", 0)
    monkeypatch.setattr("memcached_operator.engine.reporting.conditions.ROLLOUT_PERIOD", 0)

    async def scenario(cluster: Cluster) -> None:
        def change() -> None:
            cr = cluster.api.objects[KEY]
            cluster.api.put(KEY, {**cr, "status": {**cr["status"], "selector": "other"}})

        await wait_until_available(cluster)
        cluster.api.hooks["status"] = [change]
        cluster.resize(2)
        await until(lambda: list(of_generation(cluster, 2)))
        await until(lambda: cluster.api.objects[KEY]["status"]["selector"] != "other")

    run_scenario(scenario)


def controlled_pod(name: str) -> Object:
    """A running pod with our labels and a ReplicaSet."""
    pod = builders.pod(name)
    labels = pod["metadata"]["labels"] | {"pod-template-hash": "5d4f"}
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cache-5d4f", "uid": "rs", "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels, "ownerReferences": [reference]}}


def tables_with_object(reconciler: Reconciler) -> list[str]:
    """Names of the status writer's tables that contain the object."""
    writer: object = vars(reconciler)["_status"]
    fields = vars(writer)
    return [name for name, table in fields.items() if isinstance(table, dict | set) and KEY in table]


def test_state_of_an_object_that_is_deleted_during_a_status_patch_is_removed() -> None:
    async def scenario(cluster: Cluster) -> None:
        def delete() -> None:
            cluster.api.objects.pop(KEY, None)

        cluster.api.hooks["status"] = [delete]
        await until(lambda: "get" in cluster.api.verbs(MEMCACHEDS))
        await until(lambda: not tables_with_object(cluster.reconciler))

    run_scenario(scenario)


def events(cluster: Cluster) -> list[tuple[str, str]]:
    """Type and reason of each Event, in the order of creation."""
    return [(each["type"], each["reason"]) for key, each in cluster.api.objects.items() if key.resource == EVENTS]


def test_each_change_is_one_event() -> None:
    """A pod that is not available for a moment is not the end of a rollout."""

    async def scenario(cluster: Cluster) -> None:
        await wait_until_available(cluster)
        cr, api = cluster.api.objects[KEY], cluster.api

        def update_generation() -> None:
            api.put(DEPLOYMENT, api.objects[DEPLOYMENT], generation=2)

        api.hooks["apply"] = [update_generation]
        cluster.write({**cr, "spec": {**cr["spec"], "image": "example.com/memcached:2"}}, generation=2)
        await until(lambda: cluster.reports(Progressing="RollingOut"))
        cluster.complete_rollout()
        await until(lambda: cluster.reports(Progressing="RolloutComplete"))
        await until(lambda: len(events(cluster)) == 3)
        live = api.objects[DEPLOYMENT]
        status = {**live["status"], "availableReplicas": 0}
        cluster.observe(DEPLOYMENT, api.put(DEPLOYMENT, {**live, "status": status}, generation=1))
        await until(lambda: cluster.reports(Progressing="RollingOut"))
        cluster.complete_rollout()
        await until(lambda: cluster.reports(Progressing="RolloutComplete"))
        await until(lambda: not len(cluster.queue))

    assert events(run_scenario(scenario)) == [
        ("Normal", "MinimumReplicasAvailable"),
        ("Normal", "RolloutStarted"),
        ("Normal", "RolloutComplete"),
    ]


def test_events_of_one_object_or_namespace_do_not_fill_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.reporting.posted_events.MAX_QUEUED_EVENTS", 6)
    api = Api()
    recorder = Recorder(api.client)
    reports = [Report("RolloutStarted", "a")] * 10
    noisy, neighbor, other = (builders.memcached(name, uid=name) for name in "abc")
    other["metadata"]["namespace"] = "other"

    async def scenario() -> None:
        for cr in (noisy, neighbor, other):
            recorder.record(cr, reports)
        task = asyncio.create_task(recorder.run())
        await until(lambda: len(api.objects) == 6)
        recorder.record(noisy, reports)
        await until(lambda: len(api.objects) == 10)
        task.cancel()

    asyncio.run(scenario())
    names = [event["involvedObject"]["name"] for event in api.objects.values()]
    assert "".join(names) == "acacacaaaa"


def test_unexpected_error_of_one_event_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    api = Api()
    recorder = Recorder(api.client)

    def defective() -> None:
        raise ValueError("defect")

    api.hooks["create"] = [defective]

    async def scenario() -> None:
        recorder.record(builders.memcached(), [Report("RolloutStarted", text) for text in "ab"])
        task = asyncio.create_task(recorder.run())
        await until(lambda: api.objects)
        task.cancel()

    asyncio.run(scenario())
    assert [event["message"] for event in api.objects.values()] == ["b"]
    assert "unexpected error, please report it: Event test/cache." in caplog.text
