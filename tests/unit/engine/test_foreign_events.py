"""Which Memcacheds are reconciled when an object of others changes: those whose plan depends on the change."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator.engine.manager import Manager
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, PODS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.knowledge import LISTED
from memcached_operator.world.store import MAX_FOREIGN
from simulation import clock
from unit import builders
from unit.engine.test_gather import member
from unit.fakes import Api

WITH_BUDGET = {"podDisruptionBudget": {"enabled": True}}
OTHER_TEAM = {"podTemplate": {"metadata": {"labels": {"team": "other"}}}}
LABEL = {"matchLabels": {"team": "web"}}

Event = tuple[Resource, Any, Object]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of children do not wait for others."""
    monkeypatch.setattr("memcached_operator.engine.manager.SETTLE_PERIOD", 0.0)


def made(name: str, **spec: Any) -> Object:
    """A Memcached."""
    cr = builders.memcached(name, uid=name)
    return {**cr, "spec": {"size": 2, "image": "example.com/memcached:1", **spec}}


def theirs(resource: Resource, version: int, name: str = "theirs", **spec: Any) -> Event:
    """An event of an object of another owner."""
    meta = {"name": name, "namespace": "test", "resourceVersion": str(version)}
    return resource, "updated", {"metadata": meta, "spec": spec}


def budget(version: int, **selector: Any) -> Event:
    """An event of a budget."""
    return theirs(POD_DISRUPTION_BUDGETS, version, selector=selector, maxUnavailable=1)


DELETED: Event = (POD_DISRUPTION_BUDGETS, "deleted", budget(9)[2])


class WithEvents(Api):
    """An API server that reports deletions."""

    def __init__(self) -> None:
        super().__init__()
        self.manager = Manager(cast("ApiClient", self), [memcached(Images("example.com/memcached:1"))])
        known = vars(self.manager)["_knowledge"]
        known.update(dict.fromkeys(known, LISTED))

    async def delete(self, key: Key, uid: str, resource_version: str) -> Object:
        """Delete an object."""
        found = self.objects[key]
        reply = await super().delete(key, uid, resource_version)
        self.version += 1
        meta = {**found["metadata"], "resourceVersion": str(self.version)}
        self.manager.handle_event(key.resource, "deleted", {**found, "metadata": meta})
        return reply


def enqueued(crs: Sequence[Object], *events: Event, pods: Sequence[Object] = ()) -> list[list[str]]:
    """The Memcacheds that each event enqueues, after each of them was reconciled."""

    async def run() -> list[list[str]]:
        api = WithEvents()
        manager = api.manager
        reconciler, queue = vars(manager)["_reconciler"], cast("Queue[Key]", vars(manager)["_queue"])

        async def reconciled() -> list[str]:
            """Reconcile what is enqueued."""
            keys = [await queue.get() for _ in range(len(queue))]
            for key in keys:
                queue.done(key)
                await reconciler.reconcile(key)
            while len(queue):  # reconciles that follow from the own writes
                queue.done(key := await queue.get())
                await reconciler.reconcile(key)
            return sorted(key.name for key in keys)

        for cr in crs:
            api.put(Key(MEMCACHEDS, "test", cr["metadata"]["name"]), cr)
            manager.handle_event(MEMCACHEDS, "updated", cr)
        await reconciled()
        for pod in pods:
            manager.handle_event(PODS, "updated", pod)
        await reconciled()
        found: list[list[str]] = []
        for event in events:
            if event[1] == "read":
                vars(manager)["_store"].put(event[0], event[2], from_live_read=True)
            else:
                manager.handle_event(*event)
            found.append(await reconciled())
        return found

    return asyncio.run(run())


def test_budget_concerns_those_whose_pods_it_begins_or_ends_to_select() -> None:
    crs = [
        made("one", **WITH_BUDGET, podTemplate={"metadata": {"labels": {"team": "web"}}}),
        made("two", **WITH_BUDGET, **OTHER_TEAM),
        made("none", podTemplate={"metadata": {"labels": {"team": "web"}}}),
    ]
    assert enqueued(
        crs,
        budget(1, matchLabels={"team": "none"}),
        budget(2, **LABEL),
        budget(3, matchExpressions=[{"key": "team", "operator": "In", "values": ["web", "x"]}]),
        budget(4, matchExpressions=[{"key": "team", "operator": "In", "values": ["x", "other"]}]),
        budget(5, matchExpressions=[{"key": "team", "operator": "NotIn", "values": ["other"]}]),
        DELETED,
    ) == [[], ["one"], [], ["one", "two"], ["one", "two"], ["one"]]


def test_budget_is_compared_with_the_labels_of_pods_too() -> None:
    """Another client has added a label to a pod."""
    pod = member("one-0")
    pod["metadata"]["labels"] = {**pod["metadata"]["labels"], "app.kubernetes.io/instance": "one", "team": "web"}
    pod["metadata"]["ownerReferences"][0]["name"] = "one-abc"
    crs = [made("one", **WITH_BUDGET), made("two", **WITH_BUDGET)]
    assert enqueued(crs, budget(1, **LABEL), pods=[pod]) == [["one"]]
    assert enqueued(crs, budget(1, **LABEL)) == [[]]


def test_change_of_the_spec_changes_what_is_compared() -> None:
    before = made("one", **WITH_BUDGET, **OTHER_TEAM)
    after = made("one", **WITH_BUDGET, podTemplate={"metadata": {"labels": {"team": "web"}}})
    after["metadata"] = {**after["metadata"], "resourceVersion": "1000", "generation": 2}
    assert enqueued([before], budget(1, **LABEL), (MEMCACHEDS, "updated", after), DELETED) == [[], ["one"], ["one"]]


def test_change_that_a_live_read_has_stored_before_its_event_concerns_all() -> None:
    """A reconcile that reads an object with the name of a child does not make the plans of the others."""
    seen = (POD_DISRUPTION_BUDGETS, "read", budget(2, **LABEL)[2])
    crs = [
        made("one", **WITH_BUDGET, podTemplate={"metadata": {"labels": {"team": "web"}}}),
        made("two", **WITH_BUDGET),
    ]
    first = budget(1, matchLabels={"team": "none"})
    assert enqueued(crs, first, seen, budget(2, **LABEL)) == [[], [], ["one", "two"]]


def test_object_without_a_plan_is_reconciled_at_each_change() -> None:
    events = budget(1, **LABEL), budget(2, matchLabels={"a": "b"})
    assert enqueued([made("one", size="x")], *events) == [["one"], ["one"]]


def test_budgets_beyond_the_limit_are_in_the_status_until_others_are_deleted() -> None:
    async def run() -> list[str]:
        api, key = WithEvents(), Key(MEMCACHEDS, "test", "one")
        selector = {"matchLabels": {"a": "x" * (MAX_FOREIGN // 2)}}
        budgets = [
            theirs(POD_DISRUPTION_BUDGETS, 50 + number, f"{number}", selector=selector)[2] for number in range(3)
        ]
        api.put(key, made("one", **WITH_BUDGET))
        api.manager.handle_event(MEMCACHEDS, "updated", api.objects[key])
        found: list[str] = []
        for change in ("updated", "deleted"):
            for obj in budgets[change == "deleted" :]:
                api.manager.handle_event(POD_DISRUPTION_BUDGETS, change, obj)
            for _ in range(3):
                await vars(api.manager)["_reconciler"].reconcile(key)
                await asyncio.sleep(60)
            conditions = api.objects[key]["status"]["conditions"]
            found += [each["message"] for each in conditions if each["type"] == "Degraded"]
        return found

    before, after = clock.run(run())
    expected = "2 PodDisruptionBudgets in namespace test cannot be considered, because all of this kind together exceed"
    assert expected in before
    assert "considered" not in after
