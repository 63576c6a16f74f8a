import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from memcached_operator.cache.cache import Cache
from memcached_operator.kind import DesiredStatus, InvalidSpecError, Kind, Snapshot
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import SERVICES, Key, Object, key_of
from memcached_operator.reconcile.reconciler import Reconciler, most_severe
from memcached_operator.runtime.queue import Queue
from unit.builders import MEMCACHEDS, memcached

FORBIDDEN = ApiError(403, "Forbidden", "services is forbidden")
LATER = ApiError(429, "TooManyRequests", "later", retry_after=7)
BROKEN = ApiError(500, "InternalError", "broken")


class Api:
    """An API server that answers every create with an error, and notes statuses."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.error = error
        self.statuses: list[Object] = []
        self.writes: list[str] = []
        self.creates: asyncio.Queue[Key] = asyncio.Queue()
        self.written = asyncio.Event()

    async def create(self, key: Key, obj: Object) -> Object:
        """Create, or refuse."""
        if key.resource == SERVICES:
            self.creates.put_nowait(key)
            self.writes.append("child")
            if self.error is not None:
                raise self.error
        return {**obj, "metadata": {**obj["metadata"], "uid": "new", "resourceVersion": "100"}}

    async def get(self, key: Key) -> Object | None:
        """The object is there, its child is not."""
        return None if key.resource == SERVICES else memcached(version=100 + len(self.statuses))

    async def patch(self, key: Key, patch: Object, **_: Any) -> Object:
        """Take a status."""
        self.statuses.append(patch["status"])
        self.writes.append("status")
        self.written.set()
        cr = memcached(version=100 + len(self.statuses))
        return {**cr, "status": {"observedGeneration": 1, **patch["status"]}}


def child(cr: Object, _: Snapshot) -> list[Object]:
    """One Service."""
    meta: Object = {"name": "cache", "namespace": "test", "labels": {}}
    return [{"apiVersion": "v1", "kind": "Service", "metadata": meta}]


def child_of_its_own(cr: Object, snapshot: Snapshot) -> list[Object]:
    """One Service, named as its object."""
    (service,) = child(cr, snapshot)
    return [{**service, "metadata": {**service["metadata"], "name": cr["metadata"]["name"]}}]


def told(cr: Object, snapshot: Snapshot, _: object) -> DesiredStatus:
    """Which troubles there are."""
    reasons = [problem.reason for problem in snapshot.problems]
    condition = {"type": "Degraded", "status": str(bool(reasons)), "reason": "".join(reasons), "message": ""}
    return DesiredStatus({"observedGeneration": 1, "conditions": [condition]})


def invalid(cr: Object, _: Snapshot) -> list[Object]:
    """Refuse the spec."""
    raise InvalidSpecError("spec.size: must be at least 1")


def defective(cr: Object, _: Snapshot) -> list[Object]:
    """A defect that one object meets."""
    if cr["metadata"]["name"] == "cache":
        raise ZeroDivisionError
    return []


Scenario = Callable[[Queue[Key]], Awaitable[None]]


def worked(api: Api, scenario: Scenario, *objects: Object, desired: Any = child, workers: int = 2) -> None:
    """Run a scenario beside the workers."""

    async def run() -> None:
        cache, queue = Cache(), Queue[Key]("test")
        for obj in objects or (memcached(),):
            cache.put(MEMCACHEDS, obj)
        kind = Kind(MEMCACHEDS, "memcached", (SERVICES,), desired, told)
        reconciler = Reconciler(cast("Client", api), cache, queue, {"Memcached": kind})
        working = asyncio.create_task(reconciler.run(workers))
        for obj in cache.list_objects(MEMCACHEDS):
            queue.add(key_of(MEMCACHEDS, obj))
        async with asyncio.timeout(5):
            await scenario(queue)
        working.cancel()

    asyncio.run(run())


def written(api: Api) -> Scenario:
    """Wait for a status."""

    async def scenario(_: Queue[Key]) -> None:
        await api.written.wait()

    return scenario


def reasons(api: Api) -> list[str]:
    """The reasons told."""
    return [condition["reason"] for status in api.statuses for condition in status["conditions"]]


KEY = key_of(MEMCACHEDS, memcached())


def test_what_the_api_server_refuses_stands_in_the_status_and_is_tried_again() -> None:
    api = Api(FORBIDDEN)

    async def scenario(queue: Queue[Key]) -> None:
        await api.written.wait()
        for _ in range(2):
            await api.creates.get()
        assert queue.failures(KEY) >= 1

    worked(api, scenario)
    assert reasons(api)[0] == "ApplyFailed"


def test_an_invalid_spec_stands_in_the_status_and_is_not_tried_again() -> None:
    api = Api()

    async def scenario(queue: Queue[Key]) -> None:
        await api.written.wait()
        await asyncio.sleep(0)
        assert queue.failures(KEY) == 0

    worked(api, scenario, desired=invalid)
    assert (reasons(api), api.creates.qsize()) == (["InvalidSpec"], 0)


def test_a_status_does_not_wait_for_the_back_off_of_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.runtime.queue.BASE_DELAY", 3600)
    api = Api(FORBIDDEN)
    # The generation is answered already: a mere turn of a condition is held back for a moment.
    before: Object = {**memcached(), "status": {"observedGeneration": 1, "conditions": []}}
    worked(api, written(api), before)
    assert reasons(api)[0] == "ApplyFailed"


def test_an_object_that_is_gone_or_going_is_left_alone() -> None:
    api = Api()
    going = memcached()
    going["metadata"]["deletionTimestamp"] = "now"

    async def scenario(queue: Queue[Key]) -> None:
        queue.add(Key(MEMCACHEDS, "test", "gone"))
        await asyncio.sleep(0.1)

    worked(api, scenario, going)
    assert (api.creates.qsize(), api.statuses) == (0, [])


def test_a_defect_met_by_one_object_does_not_stop_the_others() -> None:
    api = Api()

    async def scenario(queue: Queue[Key]) -> None:
        await api.written.wait()
        assert queue.failures(KEY) == 1

    worked(api, scenario, memcached(), memcached("other", uid="other"), desired=defective)
    assert len(api.statuses) == 1


MANY = [memcached(f"cache-{number}", uid=f"uid-{number}") for number in range(6)]
ANSWERED = [{**obj, "status": {"observedGeneration": 0}} for obj in MANY]
ORDER = {
    "objects without a status wait": (MANY, ["child"] * 6 + ["status"] * 6),
    "nobody waits": (MANY[:1], ["child", "status"]),
    "they have a status": (ANSWERED[:3], ["child", "status"] * 3),
}


@pytest.mark.parametrize(("objects", "order"), ORDER.values(), ids=ORDER.keys())
def test_children_of_all_come_before_the_first_status_of_any(objects: list[Object], order: list[str]) -> None:
    api = Api()

    async def scenario(_: Queue[Key]) -> None:
        while len(api.statuses) < len(objects):  # noqa: ASYNC110 - what is waited for happens in tables
            await asyncio.sleep(0.005)

    worked(api, scenario, *objects, desired=child_of_its_own, workers=1)
    assert api.writes == order


WORST = {
    "one somebody must act on": ([LATER, FORBIDDEN, BROKEN], FORBIDDEN),
    "the longest wait": ([BROKEN, LATER], LATER),
    "the only one": ([BROKEN], BROKEN),
}


@pytest.mark.parametrize(("errors", "expected"), WORST.values(), ids=WORST.keys())
def test_the_worst_error_is_reported(errors: list[ApiError], expected: ApiError) -> None:
    assert most_severe(errors) is expected


def test_what_is_known_of_the_children_of_a_deleted_object_is_forgotten() -> None:
    async def run() -> None:
        kind = Kind(MEMCACHEDS, "memcached", (SERVICES,), child, told)
        reconciler = Reconciler(cast("Client", Api()), Cache(), Queue[Key]("test"), {"Memcached": kind})
        known = cast("dict[str, dict[Key, str]]", vars(vars(reconciler)["_applier"]))
        known["_ineffective"][Key(SERVICES, "test", "cache")] = "effect"
        await reconciler.reconcile(Key(MEMCACHEDS, "test", "cache"))
        assert known["_ineffective"] == {}

    asyncio.run(run())
