"""The objects that lists and events enqueue."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.engine.manager import Manager
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import (
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Key,
    Object,
    Resource,
)
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from unit import builders
from unit.fakes import Api


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of children do not wait for others."""
    monkeypatch.setattr("memcached_operator.engine.manager.SETTLE_PERIOD", 0.0)


def test_object_that_is_missing_from_the_next_list_is_enqueued() -> None:
    """Then everything about it is forgotten."""

    async def run() -> int:
        api = Api()
        api.add(MEMCACHEDS, builders.memcached())
        manager = Manager(api.client, [memcached(Images("example.com/memcached:1"))])
        reflector = next(each for each in vars(manager)["_reflectors"] if each.resource == MEMCACHEDS)
        await vars(Manager)["_list"](manager, reflector)
        queue: Queue[Key] = vars(manager)["_queue"]
        queue.done(await queue.get())
        api.objects.clear()
        api.version += 1
        await vars(Manager)["_list"](manager, reflector)
        return len(queue)

    assert asyncio.run(run()) == 1


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


@pytest.mark.parametrize("namespaces", [(), ("test",)])
def test_objects_of_a_kind_that_waits_for_lists_are_not_enqueued(namespaces: tuple[str, ...]) -> None:
    async def run() -> int:
        manager = Manager(Api().client, [memcached(Images("example.com/memcached:1"))], namespaces)
        vars(manager)["_starting"].add((MEMCACHEDS, *(namespaces or (None,))))
        manager.handle_event(MEMCACHEDS, "updated", builders.memcached())
        return len(vars(manager)["_queue"])

    assert asyncio.run(run()) == 0


def test_only_custom_resources_are_watched_without_a_label() -> None:
    manager = Manager(cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1")), appservice()])
    reflectors = vars(manager)["_reflectors"]
    unlabelled = {each.resource for each in reflectors if not each.selector}
    assert unlabelled == {MEMCACHEDS, APPSERVICES}
    assert len(reflectors) == len({each.resource for each in reflectors})
