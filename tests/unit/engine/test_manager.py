"""The periodic lists find what the watches have missed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator import metrics
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.engine.kind import Plan, ReconciledKind
from memcached_operator.engine.manager import Manager
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    Key,
    Object,
    Resource,
)
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.snapshot import Snapshot
from unit import builders
from unit.fakes import Api, raising

KEY = Key(MEMCACHEDS, "test", "cache")
SYNC_PERIOD = 0.05
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
SPEC: dict[str, Any] = {"size": 1, "image": "example.com/memcached:1"}


Scenario = Callable[[Api, Manager], Awaitable[None]]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of children do not wait for others."""
    monkeypatch.setattr("memcached_operator.engine.manager.SETTLE_PERIOD", 0.0)


def run_scenario(
    scenario: Scenario,
    *kinds: ReconciledKind,
    kind: ReconciledKind | None = None,
    sync_period: float = SYNC_PERIOD,
    namespaces: tuple[str, ...] = (),
) -> Api:
    """Run a scenario while a manager runs whose watches report no events."""
    api, stop = Api(), asyncio.Event()

    async def run() -> None:
        client = cast("ApiClient", api)
        api.add(MEMCACHEDS, builders.memcached(**SPEC))
        first = kind or memcached(Images("example.com/memcached:1"))
        manager = Manager(client, [first, *kinds], namespaces, sync_period)
        work = asyncio.create_task(manager.run(stop))
        async with asyncio.timeout(10):
            await scenario(api, manager)
        stop.set()
        await work

    asyncio.run(run())
    return api


async def until(condition: Callable[[], Any]) -> None:
    """Wait until the condition is true."""
    while not condition():  # noqa: ASYNC110 - waits for the fake API server
        await asyncio.sleep(0.005)


def failures(manager: Manager) -> int:
    """The consecutive failures of the object."""
    queue: Queue[Key] = vars(manager)["_queue"]
    return queue.failures(KEY)


def tables_with_object(manager: Manager) -> list[str]:
    """Names of the tables of queue and status writer that contain the object."""
    parts: list[Any] = [vars(manager)["_queue"], vars(vars(manager)["_reconciler"])["_status"]]
    tables: list[dict[str, Any]] = [vars(part) for part in parts]
    fields = [field for table in tables for field in table.items()]
    return [name for name, table in fields if isinstance(table, dict | set) and KEY in table]


def test_object_missing_from_the_next_list_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.BASE_DELAY", 0.01)

    async def scenario(api: Api, manager: Manager) -> None:
        api.always["create"] = raising(BROKEN)
        await until(lambda: failures(manager) >= 3 and api.statuses)
        assert {"_failures", "_patched_at"} <= set(tables_with_object(manager))
        del api.objects[KEY]
        api.version += 1
        await until(lambda: not list(manager.objects(MEMCACHEDS)))
        # A retry that was scheduled before may still run; it finds no object.
        await until(lambda: not tables_with_object(manager))
        requests = len(api.calls)
        await asyncio.sleep(4 * SYNC_PERIOD)
        assert (len(api.calls), tables_with_object(manager)) == (requests, [])

    run_scenario(scenario)


def test_new_object_of_the_same_name_does_not_inherit_state(monkeypatch: pytest.MonkeyPatch) -> None:
    # A second status of the same object is never due.
    monkeypatch.setattr("memcached_operator.engine.reporting.writer.STATUS_PERIOD", 3600)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        del api.objects[KEY]
        api.objects.pop(Key(DEPLOYMENTS, "test", "cache"))
        api.version += 1
        await until(lambda: not list(manager.objects(MEMCACHEDS)))
        api.add(MEMCACHEDS, builders.memcached(uid="later", **SPEC))
        await until(lambda: len(api.statuses) == 2)

    run_scenario(scenario)


def test_child_whose_deletion_was_missed_is_recreated() -> None:
    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        del api.objects[Key(DEPLOYMENTS, "test", "cache")]
        api.version += 1
        await until(lambda: Key(DEPLOYMENTS, "test", "cache") in api.objects)

    run_scenario(scenario)


def test_failing_list_does_not_block_other_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    list_all = Api.list

    async def without_pods(self: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if resource == PODS and self.statuses:
            raise BROKEN
        async for page in list_all(self, resource, namespace, selector):
            yield page

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        del api.objects[KEY]
        api.version += 1
        await until(lambda: not list(manager.objects(MEMCACHEDS)))

    monkeypatch.setattr(Api, "list", without_pods)
    run_scenario(scenario)


NOT_SERVED = ApiError(404, "", "the server could not find the requested resource")


def fail_lists(monkeypatch: pytest.MonkeyPatch, error: ApiError, *resources: Resource) -> set[Resource]:
    """Make the lists of these resources fail until they are removed from the returned set."""
    monkeypatch.setattr("memcached_operator.world.reflector.MIN_BACKOFF", 0.01)
    list_all, failing = Api.list, set(resources)

    async def listed(self: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if resource in failing:
            raise error
        async for page in list_all(self, resource, namespace, selector):
            yield page

    monkeypatch.setattr(Api, "list", listed)
    return failing


def test_kind_that_is_not_served_does_not_block_the_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing = fail_lists(monkeypatch, NOT_SERVED, APPSERVICES)

    async def scenario(api: Api, manager: Manager) -> None:
        app = builders.appservice()
        api.add(APPSERVICES, {**app, "metadata": {**app["metadata"], "uid": "app"}})
        await until(lambda: api.statuses)
        assert Key(DEPLOYMENTS, "test", "cache") in api.objects
        await until(lambda: "the resource is not served; install the CRDs" in caplog.text)
        assert Key(DEPLOYMENTS, "test", "app") not in api.objects
        failing.clear()
        await until(lambda: Key(DEPLOYMENTS, "test", "app") in api.objects)

    run_scenario(scenario, appservice())


def retries(resource: Resource) -> float:
    """How often a list or watch of this resource was retried after an error 500."""
    labels = {"resource": resource.plural, "reason": "500"}
    return metrics.REGISTRY.get_sample_value("memcached_operator_watch_retries_total", labels) or 0


def check_waits_for(
    resource: Resource, monkeypatch: pytest.MonkeyPatch, *kinds: ReconciledKind, sync_period: float = SYNC_PERIOD
) -> None:
    """No object is reconciled before this resource is listed."""
    failing = fail_lists(monkeypatch, BROKEN, resource)

    async def scenario(api: Api, manager: Manager) -> None:
        before = retries(resource)
        await until(lambda: retries(resource) >= before + 3)
        assert not api.calls
        failing.clear()
        await until(lambda: api.statuses)

    run_scenario(scenario, *kinds, sync_period=sync_period)


@pytest.mark.parametrize(
    "resource", [DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS, PODS], ids=lambda resource: resource.plural
)
def test_no_object_is_reconciled_before_its_children_are_listed(
    monkeypatch: pytest.MonkeyPatch, resource: Resource
) -> None:
    check_waits_for(resource, monkeypatch)


MONITORS = Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")


def monitored() -> ReconciledKind:
    """A Memcached with a ServiceMonitor, if the cluster has that resource."""
    kind = memcached(Images("example.com/memcached:1"))

    def plan(snapshot: Snapshot, now: datetime) -> Plan:
        monitor = builders.owned(snapshot.cr, MONITORS)
        meta = {"name": "cache", "namespace": "test", "labels": monitor["metadata"]["labels"]}
        found = kind.plan(snapshot, now)
        optional = () if not snapshot.is_listed(MONITORS) else ({**monitor, "metadata": meta, "spec": {}},)
        return replace(found, children=(*(found.children or ()), *optional))

    return replace(kind, owns=(*kind.owns, MONITORS), plan=plan, optional=(MONITORS,))


def test_missing_optional_resource_is_created_when_it_is_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memcached_operator.world.reflector.MISSING_PERIOD", 0.05)
    failing = fail_lists(monkeypatch, NOT_SERVED, MONITORS)
    monitor = Key(MONITORS, "test", "cache")

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        degraded = next(each for each in api.statuses[-1]["conditions"] if each["type"] == "Degraded")
        assert (degraded["reason"], monitor in api.objects) == ("AsExpected", False)
        failing.clear()
        await until(lambda: monitor in api.objects)
        # The CRD is deleted, with its objects, and installed again.
        failing.add(MONITORS)
        del api.objects[monitor]
        reflector = next(each for each in vars(manager)["_reflectors"] if each.resource == MONITORS)
        await until(lambda: reflector.missing)
        assert not vars(manager)["_store"].keys(MONITORS)
        failing.clear()
        await until(lambda: monitor in api.objects)

    with caplog.at_level("INFO"):
        run_scenario(scenario, kind=monitored())
    assert "ApplyFailed" not in str(caplog.text)
    assert [record.levelname for record in caplog.records if "optional" in record.message] == ["INFO", "INFO"]


@pytest.mark.parametrize("code", [403, 503])
def test_optional_resource_that_cannot_be_listed_does_not_delay_the_kind(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr("memcached_operator.engine.manager.START_GRACE", 0.01)
    failing = fail_lists(monkeypatch, ApiError(code, "", "not now"), MONITORS)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        failing.clear()
        await until(lambda: Key(MONITORS, "test", "cache") in api.objects)

    run_scenario(scenario, kind=monitored())


def test_optional_resource_that_cannot_be_listed_in_one_namespace_is_kept_in_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    list_all, forbidden, monitor = Api.list, asyncio.Event(), Key(MONITORS, "test", "cache")
    error = "no. Run kubectl"

    async def in_one_namespace(self: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if (resource, namespace) == (MONITORS, "other"):
            await forbidden.wait()
            raise ApiError(403, "Forbidden", error)
        async for page in list_all(self, resource, namespace, selector):
            yield page

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: monitor in api.objects)
        forbidden.set()
        await until(lambda: vars(manager)["_knowledge"][MONITORS, "other"].has_failed)
        assert vars(manager)["_knowledge"][MONITORS, "other"].error == error, "it is quoted when it is shown"
        deleted = api.put(monitor, api.objects[monitor])
        del api.objects[monitor]
        manager.handle_event(MONITORS, "deleted", deleted)
        await until(lambda: monitor in api.objects)

    monkeypatch.setattr(Api, "list", in_one_namespace)
    run_scenario(scenario, kind=monitored(), sync_period=3600, namespaces=("test", "other"))


def test_optional_resource_that_a_resync_finds_missing_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.world.reflector.MISSING_PERIOD", 0.05)
    failing = fail_lists(monkeypatch, NOT_SERVED)
    ended = asyncio.Event()

    async def watch(*_: object) -> AsyncGenerator[tuple[str, Object]]:
        """A watch that ends without an error."""
        await ended.wait()
        await asyncio.sleep(0.01)
        return
        yield "", {}

    async def scenario(api: Api, manager: Manager) -> None:
        monitor = Key(MONITORS, "test", "cache")
        await until(lambda: monitor in api.objects)
        del api.objects[monitor]
        failing.add(MONITORS)
        reflector = next(each for each in vars(manager)["_reflectors"] if each.resource == MONITORS)
        await until(lambda: reflector.missing)
        ended.set()
        vars(manager)["_sync_period"] = 3600
        failing.clear()
        await until(lambda: monitor in api.objects)

    monkeypatch.setattr(Api, "watch", watch)
    monkeypatch.setattr("memcached_operator.world.reflector.MIN_WATCH_DURATION", 0)
    run_scenario(scenario, kind=monitored())


def test_missing_optional_resource_is_not_listed_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    lists: list[Resource] = []
    fail_lists(monkeypatch, NOT_SERVED, MONITORS)
    list_all = Api.list

    async def counted(self: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        lists.append(resource)
        async for page in list_all(self, resource, namespace, selector):
            yield page

    monkeypatch.setattr(Api, "list", counted)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        await asyncio.sleep(0.3)

    run_scenario(scenario, kind=monitored(), sync_period=3600)
    assert lists.count(MONITORS) == 1


def test_kinds_of_the_same_name_in_different_groups_are_different() -> None:
    images = Images("example.com/memcached:1")
    other = replace(memcached(images), resource=MEMCACHEDS._replace(group="other.example.com"))

    async def run() -> list[str]:
        manager = Manager(
            cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1")), replace(other, app_name="other")]
        )
        queue: Queue[Key] = vars(manager)["_queue"]
        cr = {**builders.memcached(uid="other"), "apiVersion": "other.example.com/v1"}
        manager.handle_event(SERVICES, "updated", builders.owned(cr, SERVICES, labels={}))
        return [(await queue.get()).resource.group for _ in range(len(queue))]

    assert asyncio.run(run()) == ["other.example.com"]


def owned(owner: str, version: int) -> Object:
    """A Service that a Memcached with this name controls."""
    return builders.owned(builders.memcached(owner, uid=owner), SERVICES, version=version, labels={})


def test_event_of_a_version_that_was_read_live_enqueues_the_owner() -> None:
    """The read may have been for another object, for example one that is in conflict with this child."""

    async def run() -> list[str]:
        manager = Manager(cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1"))])
        queue: Queue[Key] = vars(manager)["_queue"]
        vars(manager)["_store"].put(SERVICES, owned("owner", 2), from_live_read=True)
        manager.handle_event(SERVICES, "updated", owned("owner", 1))
        assert len(queue) == 0
        manager.handle_event(SERVICES, "updated", owned("owner", 2))
        return [(await queue.get()).name for _ in range(len(queue))]

    assert asyncio.run(run()) == ["owner"]


def test_child_with_a_new_owner_enqueues_both_owners() -> None:
    async def run() -> list[str]:
        manager = Manager(cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1"))])
        queue: Queue[Key] = vars(manager)["_queue"]
        manager.handle_event(SERVICES, "updated", owned("first", 1))
        queue.done(await queue.get())
        manager.handle_event(SERVICES, "updated", owned("second", 2))
        manager.handle_event(SERVICES, "updated", owned("late", 1))
        return [(await queue.get()).name for _ in range(len(queue))]

    assert sorted(asyncio.run(run())) == ["first", "second"]


def enqueued(*events: tuple[Resource, Any, Object]) -> list[list[str]]:
    """The names that each event enqueues; two Memcacheds are known in namespace `test`, and one in another."""

    async def run() -> list[list[str]]:
        manager = Manager(cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1")), appservice()])
        queue: Queue[Key] = vars(manager)["_queue"]
        found: list[list[str]] = []
        elsewhere = builders.memcached("elsewhere")
        elsewhere["metadata"]["namespace"] = "other"
        known = [builders.memcached("one"), builders.memcached("two"), elsewhere]
        for cr in known:
            vars(manager)["_store"].put(MEMCACHEDS, cr)
        vars(manager)["_store"].put(APPSERVICES, builders.appservice())
        for event in events:
            manager.handle_event(*event)
            keys = [await queue.get() for _ in range(len(queue))]
            found.append(sorted(key.name for key in keys))
            for key in keys:
                queue.done(key)
        return found

    return asyncio.run(run())


def test_labels_of_no_instance_enqueue_nothing() -> None:
    labels = {"app.kubernetes.io/name": "memcached"}
    meta = {"name": "theirs", "namespace": "test", "resourceVersion": "1", "labels": labels}
    assert enqueued((SERVICES, "updated", {"metadata": meta})) == [[]]


def test_status_of_a_budget_of_ours_enqueues_nothing() -> None:
    def ours(version: int, **rest: Any) -> Object:
        cr = builders.memcached("one")
        return {**builders.owned(cr, POD_DISRUPTION_BUDGETS, name="one", version=version, labels={}), **rest}

    assert enqueued(
        (POD_DISRUPTION_BUDGETS, "updated", ours(1, spec={"maxUnavailable": 1})),
        (POD_DISRUPTION_BUDGETS, "updated", ours(2, spec={"maxUnavailable": 1}, status={"currentHealthy": 1})),
        (POD_DISRUPTION_BUDGETS, "updated", ours(3, spec={"maxUnavailable": 2})),
    )[1:] == [[], ["one"]]


def test_only_custom_resources_are_watched_without_a_label() -> None:
    manager = Manager(cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1")), appservice()])
    reflectors = vars(manager)["_reflectors"]
    unlabelled = {each.resource for each in reflectors if not each.selector}
    assert unlabelled == {MEMCACHEDS, APPSERVICES}
    assert len(reflectors) == len({each.resource for each in reflectors})
