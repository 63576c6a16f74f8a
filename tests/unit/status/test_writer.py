"""What a status says while children cannot be applied, and how often it is written."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from memcached_operator.cache.cache import Cache
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.reconcile.reconciler import Reconciler
from memcached_operator.runtime.queue import Queue
from unit import builders
from unit.fakes import Api, raising

KEY = Key(MEMCACHEDS, "test", "cache")
DEPLOYMENT, SERVICE = Key(DEPLOYMENTS, "test", "cache"), Key(SERVICES, "test", "cache")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
SILENT = ApiError(0, "Unreachable", "the API server cannot be reached: timed out")
KIND = memcached("example.com/memcached:1")
BASE = 0.05
PERIOD = 0.02


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods of a test's size."""
    monkeypatch.setattr("memcached_operator.runtime.queue.BASE_DELAY", BASE)
    monkeypatch.setattr("memcached_operator.runtime.queue.JITTER", 0)
    monkeypatch.setattr("memcached_operator.status.writer.STATUS_PERIOD", PERIOD)
    monkeypatch.setattr("memcached_operator.status.conditions.DEBOUNCE_PERIOD", 0)


class Cluster:
    """A Memcached, and the operator at work on it."""

    def __init__(self) -> None:
        self.api, self.cache, self.queue = Api(), Cache(), Queue[Key]("test")
        self.write(builders.memcached(size=1, image="example.com/memcached:1"))
        self.reconciler = Reconciler(self.api.client, self.cache, self.queue, {"Memcached": KIND})

    def write(self, cr: Object, **meta: Any) -> None:
        """Somebody writes the Memcached, and its event comes."""
        self.seen(KEY, self.api.put(KEY, cr, **meta))

    def seen(self, key: Key, obj: Object) -> None:
        """The event of a change comes."""
        self.cache.put(key.resource, obj)
        self.queue.add(KEY)

    def resized(self, size: int) -> None:
        """Somebody changes the size."""
        cr = self.api.objects[KEY]
        self.write({**cr, "spec": {**cr["spec"], "size": size}}, generation=cr["metadata"]["generation"] + 1)

    def rolled_out(self) -> None:
        """The Deployment is done, and its pods are seen."""
        live = self.api.objects[DEPLOYMENT]
        size: int = live["spec"]["replicas"]
        for name in "abcdef"[:size]:
            self.cache.put(PODS, made_by(name))
        status = {**builders.rolled_out(size)["status"], "observedGeneration": 1}
        self.seen(DEPLOYMENT, self.api.put(DEPLOYMENT, {**live, "status": status}, generation=1))

    def says(self, **expected: str) -> bool:
        """Whether the status has these reasons."""
        found = reasons(self.api.statuses[-1]) if self.api.statuses else {}
        return expected.items() <= found.items()


Scenario = Callable[[Cluster], Awaitable[None]]


def working(scenario: Scenario) -> Cluster:
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


async def until(get_live: Callable[[], Any]) -> None:
    """Wait until something is so."""
    while not get_live():  # noqa: ASYNC110 - what is waited for happens in tables
        await asyncio.sleep(0.005)


def reasons(status: Object) -> dict[str, str]:
    """Reasons of a status, by condition."""
    return {each["type"]: each["reason"] for each in status["conditions"]}


def messages(status: Object) -> dict[str, str]:
    """Messages of a status, by condition."""
    return {each["type"]: each["message"] for each in status["conditions"]}


async def settled(cluster: Cluster) -> None:
    """Let the Memcached become available, done and well."""
    await until(lambda: DEPLOYMENT in cluster.api.objects)
    cluster.rolled_out()
    await until(lambda: cluster.says(Progressing="RolloutComplete", Degraded="AsExpected"))


def of_generation(cluster: Cluster, generation: int) -> Iterator[Object]:
    """The statuses written for a generation of the spec."""
    return (status for status in cluster.api.statuses if status["observedGeneration"] == generation)


@pytest.mark.parametrize("error", [BROKEN, SILENT], ids=["error 500", "no answer"])
def test_a_status_never_says_that_what_was_not_applied_is_done(error: ApiError) -> None:
    async def scenario(cluster: Cluster) -> None:
        await settled(cluster)
        cluster.api.always["apply"] = raising(error)
        cluster.resized(5)
        await until(lambda: cluster.says(Degraded="ApplyFailed"))
        await until(lambda: cluster.queue.failures(KEY) >= 5)

    statuses = list(of_generation(working(scenario), 2))
    assert statuses
    assert "RolloutComplete" not in [reasons(status)["Progressing"] for status in statuses]
    assert (reasons(statuses[0])["Progressing"], reasons(statuses[0])["Degraded"]) == ("RollingOut", "AsExpected")
    assert messages(statuses[0])["Progressing"] == f"Deployment cache cannot be applied: {error}"
    assert (reasons(statuses[-1])["Progressing"], reasons(statuses[-1])["Degraded"]) == ("Stalled", "ApplyFailed")
    assert messages(statuses[-1])["Degraded"] == f"Deployment cache cannot be applied: {error}"


def test_a_fault_is_told_with_the_third_failure_in_a_row_and_not_before() -> None:
    failures: list[tuple[int, str]] = []

    async def scenario(cluster: Cluster) -> None:
        def record_errors() -> None:
            failures.append((cluster.queue.failures(KEY) + 1, reasons(cluster.api.statuses[-1])["Degraded"]))
            raise BROKEN

        await settled(cluster)
        cluster.api.always["apply"] = record_errors
        cluster.resized(5)
        await until(lambda: cluster.says(Degraded="ApplyFailed"))

    working(scenario)
    assert {told for number, told in failures if number < 3} == {"AsExpected"}
    assert {told for number, told in failures if number > 4} <= {"ApplyFailed"}


def test_when_the_api_server_is_well_again_the_status_is_too() -> None:
    async def scenario(cluster: Cluster) -> None:
        await settled(cluster)
        cluster.api.always["apply"] = raising(BROKEN)
        cluster.resized(5)
        await until(lambda: cluster.says(Degraded="ApplyFailed"))
        cluster.api.always.clear()
        await until(lambda: cluster.says(Progressing="RollingOut", Degraded="AsExpected"))
        await until(lambda: cluster.queue.failures(KEY) == 0)
        cluster.rolled_out()
        await until(lambda: cluster.says(Progressing="RolloutComplete", Degraded="AsExpected"))

    assert working(scenario).api.objects[DEPLOYMENT]["spec"]["replicas"] == 5


def test_a_status_that_cannot_be_written_is_tried_again_less_and_less_often() -> None:
    times: list[float] = []

    def failing() -> None:
        times.append(time.monotonic())
        raise BROKEN

    async def scenario(cluster: Cluster) -> None:
        cluster.api.always["status"] = failing
        await until(lambda: len(times) >= 5)
        assert cluster.queue.failures(KEY) in (4, 5)

    working(scenario)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # A timer may be late on a busy machine, but never early.
    assert all(gap >= 0.99 * BASE * 2**number for number, gap in enumerate(gaps)), gaps


def test_events_meanwhile_do_not_reset_the_back_off_of_a_status_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memcached_operator.status.writer.STATUS_PERIOD", 0.3)
    tries = 0

    def failing() -> None:
        nonlocal tries
        tries += 1
        raise BROKEN

    async def scenario(cluster: Cluster) -> None:
        cluster.api.always["status"] = failing
        await until(lambda: cluster.queue.failures(KEY) == 1)
        for _ in range(5):
            cluster.queue.add(KEY)
            await asyncio.sleep(0.01)
            assert cluster.queue.failures(KEY) == 1
        await until(lambda: cluster.queue.failures(KEY) == 2)
        assert tries == 2
        cluster.api.always.clear()
        await until(lambda: cluster.api.statuses)
        await until(lambda: cluster.queue.failures(KEY) == 0)

    working(scenario)


def test_statuses_are_written_one_a_period_and_the_last_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.status.writer.STATUS_PERIOD", 0.1)
    times: list[float] = []

    async def scenario(cluster: Cluster) -> None:
        cluster.api.always["status"] = lambda: times.append(time.monotonic())
        for size in range(2, 20):
            cluster.resized(size)
            await asyncio.sleep(0.02)
        await until(lambda: cluster.api.statuses[-1]["observedGeneration"] == 19)

    working(scenario)
    assert len(times) >= 3
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.09


def pruning(obj: Object) -> Object:
    """A CRD of another release, without one of the fields."""
    status = {name: value for name, value in obj.get("status", {}).items() if name != "nodes"}
    return {**obj, "status": status} if "status" in obj else obj


def test_a_field_that_the_crd_does_not_keep_is_not_written_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.status.conditions.PROGRESS_PERIOD", 0)

    async def scenario(cluster: Cluster) -> None:
        cluster.api.policy = pruning
        await settled(cluster)
        await asyncio.sleep(5 * PERIOD)
        written = len(cluster.api.statuses)
        for _ in range(10):
            cluster.queue.add(KEY)
            await asyncio.sleep(1.5 * PERIOD)
        assert len(cluster.api.statuses) == written
        cluster.resized(2)
        await until(lambda: cluster.api.statuses[-1]["observedGeneration"] == 2)

    assert len(working(scenario).api.statuses) <= 6


def test_what_somebody_else_wrote_into_the_status_is_put_right() -> None:
    async def scenario(cluster: Cluster) -> None:
        await settled(cluster)
        right = cluster.api.objects[KEY]["status"]
        # Of counts and lists, progress only: they may wait a little.
        cluster.write({**cluster.api.objects[KEY], "status": {**right, "observedGeneration": 0, "nodes": ["theirs"]}})
        await until(lambda: cluster.api.objects[KEY]["status"] == right)

    working(scenario)


def made_by(name: str, kind: str = "ReplicaSet", controller: str = "cache-5d4f") -> Object:
    """A running pod with our labels and this controller."""
    found = builders.pod(name)
    labels = found["metadata"]["labels"] | {"pod-template-hash": "5d4f"}
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": "rs", "controller": True}
    return {**found, "metadata": {**found["metadata"], "labels": labels, "ownerReferences": [reference]}}


def test_pods_with_our_labels_but_another_controller_are_not_ours() -> None:
    async def scenario(cluster: Cluster) -> None:
        theirs = [made_by("b", controller="cache-2-5d4f"), made_by("c", "StatefulSet"), builders.crashed("copy")]
        for pod in [made_by("a"), *theirs]:
            cluster.cache.put(PODS, pod)
        await settled(cluster)

    status = working(scenario).api.statuses[-1]
    assert status["nodes"] == ["a"]
    assert reasons(status)["Degraded"] == "AsExpected"


def test_what_stands_in_the_way_is_looked_at_again_before_the_back_off_of_another_child_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memcached_operator.runtime.queue.BASE_DELAY", 100)
    monkeypatch.setattr("memcached_operator.reconcile.apply.CONFLICT_PERIOD", 0.05)

    async def scenario(cluster: Cluster) -> None:
        foreign: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "cache", "namespace": "test"}}
        cluster.api.put(SERVICE, foreign, uid="foreign")
        cluster.api.always["create"] = failing_for_deployments(cluster.api)
        await until(lambda: cluster.says(Degraded="Conflict"))
        assert cluster.queue.failures(KEY) >= 1
        del cluster.api.objects[SERVICE]
        await until(lambda: SERVICE in cluster.api.objects)
        assert DEPLOYMENT not in cluster.api.objects

    working(scenario)


def failing_for_deployments(api: Api) -> Callable[[], None]:
    """Deployments cannot be created."""

    def fail() -> None:
        if api.calls[-1][1].resource == DEPLOYMENTS:
            raise BROKEN

    return fail


def test_of_an_object_that_is_gone_nothing_is_remembered() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.api.always["create"] = raising(BROKEN)
        await until(lambda: cluster.queue.failures(KEY) >= 2)
        assert memories(cluster.reconciler)
        for key in cluster.cache.replace(MEMCACHEDS, None, [], cluster.api.version + 1):
            cluster.queue.add(key)
        await until(lambda: not cluster.queue.failures(KEY) and not memories(cluster.reconciler))

    working(scenario)


def memories(reconciler: Reconciler) -> list[str]:
    """Names of what is remembered of the object for its status."""
    writer: object = vars(reconciler)["_status"]
    fields = vars(writer)
    return [name for name, table in fields.items() if isinstance(table, dict) and KEY in table]
