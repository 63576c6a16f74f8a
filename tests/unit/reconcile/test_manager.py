"""What the lists find, where the watches report nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from memcached_operator import metrics
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.kind import Kind
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.reconcile.manager import Manager
from memcached_operator.runtime.queue import Queue
from unit import builders
from unit.fakes import Api, raising

KEY = Key(MEMCACHEDS, "test", "cache")
RELIST = 0.05
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
SPEC: dict[str, Any] = {"size": 1, "image": "example.com/memcached:1"}


Scenario = Callable[[Api, Manager], Awaitable[None]]


def working(scenario: Scenario, *kinds: Kind) -> Api:
    """Run a scenario beside a manager that sees only what it reads."""
    api, stop = Api(), asyncio.Event()

    async def run() -> None:
        client = cast("Client", api)
        api.add(MEMCACHEDS, builders.memcached(**SPEC))
        manager = Manager(client, [memcached("example.com/memcached:1"), *kinds], sync_period=RELIST)
        work = asyncio.create_task(manager.run(stop))
        async with asyncio.timeout(10):
            await scenario(api, manager)
        stop.set()
        await work

    asyncio.run(run())
    return api


async def until(get_live: Callable[[], Any]) -> None:
    """Wait until something is so."""
    while not get_live():  # noqa: ASYNC110 - what is waited for happens in tables
        await asyncio.sleep(0.005)


def failures(manager: Manager) -> int:
    """How many times in a row the work on the object failed."""
    queue: Queue[Key] = vars(manager)["_queue"]
    return queue.failures(KEY)


def remembered(manager: Manager) -> list[str]:
    """Names of the memories, of queue and statuses, in which the object stands."""
    parts: list[Any] = [vars(manager)["_queue"], vars(vars(manager)["_reconciler"])["_status"]]
    tables: list[dict[str, Any]] = [vars(part) for part in parts]
    fields = [field for table in tables for field in table.items()]
    return [name for name, table in fields if isinstance(table, dict | set) and KEY in table]


def test_what_the_next_reading_finds_deleted_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.runtime.queue.BASE_DELAY", 0.01)

    async def scenario(api: Api, manager: Manager) -> None:
        api.always["create"] = raising(BROKEN)
        await until(lambda: failures(manager) >= 3 and api.statuses)
        assert {"_failures", "_patched_at"} <= set(remembered(manager))
        del api.objects[KEY]
        api.version += 1
        await until(lambda: not list(manager.objects(MEMCACHEDS)))
        # A last retry that was planned before may still come: it finds nothing.
        await until(lambda: not remembered(manager))
        asked = len(api.calls)
        await asyncio.sleep(4 * RELIST)
        assert (len(api.calls), remembered(manager)) == (asked, [])

    working(scenario)


def test_a_later_object_of_the_name_does_not_inherit_what_was_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    # No second status of one object is ever due.
    monkeypatch.setattr("memcached_operator.status.writer.STATUS_PERIOD", 3600)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        del api.objects[KEY]
        api.objects.pop(Key(DEPLOYMENTS, "test", "cache"))
        api.version += 1
        await until(lambda: not list(manager.objects(MEMCACHEDS)))
        api.add(MEMCACHEDS, builders.memcached(uid="later", **SPEC))
        await until(lambda: len(api.statuses) == 2)

    working(scenario)


def test_a_child_whose_deletion_was_missed_is_made_anew() -> None:
    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        del api.objects[Key(DEPLOYMENTS, "test", "cache")]
        api.version += 1
        await until(lambda: Key(DEPLOYMENTS, "test", "cache") in api.objects)

    working(scenario)


def test_what_cannot_be_read_does_not_hold_up_the_reading_of_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Api.list

    async def without_pods(self: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if resource == PODS and self.statuses:
            raise BROKEN
        return await read(self, resource, namespace, selector)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        del api.objects[KEY]
        api.version += 1
        await until(lambda: not list(manager.objects(MEMCACHEDS)))

    monkeypatch.setattr(Api, "list", without_pods)
    working(scenario)


NOT_SERVED = ApiError(404, "", "the server could not find the requested resource")


def unlisted(monkeypatch: pytest.MonkeyPatch, error: ApiError, *resources: Resource) -> set[Resource]:
    """Resources whose lists fail, until they are taken out of the set."""
    monkeypatch.setattr("memcached_operator.kube.reflector.MIN_BACKOFF", 0.01)
    read, failing = Api.list, set(resources)

    async def listed(self: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if resource in failing:
            raise error
        return await read(self, resource, namespace, selector)

    monkeypatch.setattr(Api, "list", listed)
    return failing


def test_a_kind_that_is_not_served_does_not_hold_up_the_other_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing = unlisted(monkeypatch, NOT_SERVED, APPSERVICES)

    async def scenario(api: Api, manager: Manager) -> None:
        app = builders.appservice()
        api.add(APPSERVICES, {**app, "metadata": {**app["metadata"], "uid": "app"}})
        await until(lambda: api.statuses)
        assert Key(DEPLOYMENTS, "test", "cache") in api.objects
        await until(lambda: "the resource is not served; install the CRDs" in caplog.text)
        assert Key(DEPLOYMENTS, "test", "app") not in api.objects
        failing.clear()
        await until(lambda: Key(DEPLOYMENTS, "test", "app") in api.objects)

    working(scenario, appservice())


def retries(resource: Resource) -> float:
    """How often its list or watch was retried after an error 500."""
    labels = {"resource": resource.plural, "reason": "500"}
    return metrics.REGISTRY.get_sample_value("memcached_operator_watch_retries_total", labels) or 0


@pytest.mark.parametrize("resource", [DEPLOYMENTS, SERVICES, PODS], ids=lambda resource: resource.plural)
def test_no_object_is_reconciled_before_its_children_are_listed(
    monkeypatch: pytest.MonkeyPatch, resource: Resource
) -> None:
    failing = unlisted(monkeypatch, BROKEN, resource)

    async def scenario(api: Api, manager: Manager) -> None:
        before = retries(resource)
        await until(lambda: retries(resource) >= before + 3)
        assert not api.calls
        failing.clear()
        await until(lambda: api.statuses)

    working(scenario)


def owned(owner: str, version: int) -> Object:
    """A Service that is controlled by a Memcached of this name."""
    return builders.owned(builders.memcached(owner, uid=owner), SERVICES, version=version, labels={})


def test_a_child_that_changes_hands_wakes_both_of_its_owners() -> None:
    async def run() -> list[str]:
        manager = Manager(cast("Client", Api()), [memcached("example.com/memcached:1")])
        queue: Queue[Key] = vars(manager)["_queue"]
        manager.handle_event(SERVICES, "updated", owned("first", 1))
        queue.done(await queue.get())
        manager.handle_event(SERVICES, "updated", owned("second", 2))
        manager.handle_event(SERVICES, "updated", owned("late", 1))
        return [(await queue.get()).name for _ in range(len(queue))]

    assert sorted(asyncio.run(run())) == ["first", "second"]
