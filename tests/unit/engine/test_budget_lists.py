"""The PodDisruptionBudgets of other owners are listed once for all objects of a namespace that need them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator.engine import budget_lists as module
from memcached_operator.engine.budget_lists import KEPT, LIST_TIMEOUT, MAX_LISTS, BudgetLists
from memcached_operator.engine.kind import Plan
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiClient, ApiError, Page
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.knowledge import LASTING, LISTED, State
from memcached_operator.world.other_budgets import LIST_PERIOD, RETRY_PERIOD, OtherBudgets
from memcached_operator.world.snapshot import Snapshot
from simulation import clock
from support.stores import whole_store
from unit import builders
from unit.fakes import Api

BROKEN = ApiError(500, "InternalError", "broken")
OURS = {"app.kubernetes.io/managed-by": "memcached-operator"}
OWNER = {"apiVersion": MEMCACHEDS.api_version, "kind": "Memcached", "name": "cache", "uid": "u", "controller": True}


def budget(name: str, *, selector: Object | None = None, **meta: Any) -> Object:
    """A stored budget. `selector`: None selects no pods."""
    return {"metadata": {"name": name, **meta}, "spec": {} if selector is None else {"selector": selector}}


@dataclass
class Lists:
    """An API server that lists budgets, ten on a page. `errors`: raised by the next lists."""

    budgets: Sequence[Object] = ()
    page_bytes: int = 0
    delay: float = 0.0
    errors: list[ApiError] = field(default_factory=list[ApiError])
    requests: list[str] = field(default_factory=list[str])
    ended: list[Key] = field(default_factory=list[Key])
    decoded: int = 0

    @property
    def lists(self) -> BudgetLists:
        """The lists of a process."""
        return BudgetLists(cast("ApiClient", self), self.ended.append, {(MEMCACHEDS.group, MEMCACHEDS.kind)})

    async def list(self, resource: Resource, namespace: str, *, limit: int) -> AsyncGenerator[Page]:
        """The budgets, whatever the namespace."""
        assert resource == POD_DISRUPTION_BUDGETS
        self.requests.append(namespace)
        await asyncio.sleep(self.delay)
        if self.errors:
            raise self.errors.pop(0)
        found = self.budgets[:limit]
        for start in range(0, len(found), 10):
            page = found[start : start + 10]
            yield Page(self.decode(page), len(page), self.page_bytes, "1")

    def decode(self, budgets: Sequence[Object]) -> Iterator[Object]:
        """Decode budgets, one at a time."""
        for each in budgets:
            self.decoded += 1
            yield each


def run(scenario: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run with a virtual clock."""
    return clock.run(scenario())


def listed(api: Lists) -> OtherBudgets:
    """What is known after one list."""
    return run(lambda: api.lists.list("test"))


def test_objects_of_a_namespace_share_a_list() -> None:
    async def scenario() -> list[int]:
        api = Lists(delay=1.0)
        lists, counts = api.lists, list[int]()
        for seconds in (0.0, LIST_PERIOD - 2, 4.0):
            await asyncio.sleep(seconds)
            if lists.current("test") is None:
                await asyncio.gather(*(lists.list("test") for _ in range(1000)), lists.list("other"))
            counts.append(api.requests.count("test"))
        assert api.requests.count("other") == 2
        return counts

    assert run(scenario) == [1, 1, 2]


def test_children_and_budgets_without_a_selector_are_left_out() -> None:
    api = Lists(
        [
            budget("z", selector={"matchLabels": {"a": "b"}}),
            budget("child", selector={}, labels=OURS, ownerReferences=[OWNER]),
            budget("copy", selector={}, labels=OURS),
            budget("forged", selector={}, labels=OURS, ownerReferences=[{**OWNER, "kind": "ConfigMap"}]),
            budget("adopted", selector={}, ownerReferences=[OWNER]),
            budget("none"),
        ]
    )
    found = listed(api)
    assert found.knowledge.state is State.LISTED
    assert [each.name for each in found.budgets] == ["adopted", "copy", "forged", "z"]
    assert [each.selector.selects({}) for each in found.budgets] == [True, True, True, False]


CHILD: dict[str, Any] = {"labels": OURS, "ownerReferences": [OWNER]}
SELECTOR: Object = {"matchLabels": {"a": "x" * 100}}
FLOODS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "number": ("MAX_LISTED", 15, {}),
    "number of children": ("MAX_LISTED", 15, CHILD),
    "bytes": ("MAX_READ", 150, {}),
    "bytes of children": ("MAX_READ", 150, CHILD),
    "selectors": ("MAX_KEPT", 500, {}),
}


@pytest.mark.parametrize(("limit", "value", "meta"), FLOODS.values(), ids=FLOODS.keys())
def test_flood_is_unknown_and_ends_the_list(
    limit: str, value: int, meta: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of the operator's own budgets: anyone can copy the label and the owner."""
    monkeypatch.setattr(module, limit, value)
    api = Lists([budget(f"b{number}", selector=SELECTOR, **meta) for number in range(100)], page_bytes=100)
    found = listed(api)
    assert (found.knowledge.state, found.budgets) == (State.UNLISTED, ())
    assert "they exceed the limit of" in found.knowledge.error
    assert api.decoded <= (20 if meta else 11)
    few = listed(Lists(api.budgets[:3], page_bytes=100))
    assert few.knowledge.state is State.LISTED


SELECTORS: list[Any] = [[], "a", {"matchExpressions": [{"key": "a"}]}, {"matchLabels": {"a": ["b"]}}]


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_selector_that_no_api_server_stores_is_a_failure(selector: Any) -> None:
    found = listed(Lists([budget("a", selector=selector)]))
    assert (found.knowledge.state, found.knowledge.error) == (State.UNLISTED, "the selector of a is not valid")


def test_what_was_listed_is_known_until_the_failure_lasts() -> None:
    async def scenario() -> None:
        api = Lists([budget("a", selector={})])
        lists = api.lists
        await lists.list("test")
        await asyncio.sleep(LIST_PERIOD)
        api.errors = [BROKEN] * 6
        for number in range(1, LASTING):
            found = await lists.list("test")
            assert (found.knowledge.state, len(found.budgets), found.knowledge.lasts) == (State.LISTED, 1, False)
            assert found.knowledge.failures == number
            await asyncio.sleep(RETRY_PERIOD)
        for _ in range(2):
            found = await lists.list("test")
            assert (found.knowledge.state, found.budgets, found.knowledge.lasts) == (State.UNLISTED, (), True)
            await asyncio.sleep(RETRY_PERIOD)
            assert lists.current("test") is found, "it is listed less often"
            await asyncio.sleep(LIST_PERIOD - RETRY_PERIOD)
        found = await lists.list("test")
        assert (found.knowledge.state, len(found.budgets)) == (State.LISTED, 1)

    run(scenario)


@pytest.mark.parametrize(("retry_after", "seconds"), [(None, RETRY_PERIOD), (30.0, 30.0)])
def test_failed_list_is_repeated_when_the_api_server_allows_it(retry_after: float | None, seconds: float) -> None:
    async def scenario() -> None:
        api = Lists(errors=[replace(BROKEN, code=429, retry_after=retry_after)])
        lists = api.lists
        assert (await lists.list("test")).knowledge.state is State.UNLISTED
        await asyncio.sleep(seconds - 1)
        assert lists.current("test") is not None
        await asyncio.sleep(1)
        assert lists.current("test") is None
        assert (await lists.list("test")).knowledge.state is State.LISTED

    run(scenario)


def test_list_that_hangs_delays_only_its_namespace_and_only_for_a_moment() -> None:
    async def scenario() -> None:
        api = Lists(delay=1000.0)
        lists, loop = api.lists, asyncio.get_running_loop()
        hanging = asyncio.create_task(lists.list("test"))
        await asyncio.sleep(1)
        api.delay = 0.0
        assert (await lists.list("other")).knowledge.state is State.LISTED
        assert loop.time() < 2
        found = await hanging
        assert loop.time() == pytest.approx(LIST_TIMEOUT, abs=0.1)
        assert (found.knowledge.code, found.knowledge.state) == (0, State.UNLISTED)

    run(scenario)


def test_few_workers_list_at_the_same_time_and_the_other_objects_wait() -> None:
    async def scenario() -> None:
        api = Lists(delay=1.0)
        lists, first = api.lists, Key(MEMCACHEDS, "n0", "a")
        assert not lists.must_wait(first)
        tasks = [asyncio.create_task(lists.list("n0"))]
        await asyncio.sleep(0.1)
        same, other = first._replace(name="b"), first._replace(namespace="n9")
        assert lists.must_wait(same), "a worker lists this namespace"
        assert not lists.must_wait(other)
        tasks += [asyncio.create_task(lists.list(f"n{number}")) for number in range(1, MAX_LISTS)]
        await asyncio.sleep(0.1)
        assert lists.must_wait(other)
        assert api.ended == []
        assert lists.last("n0") is None
        third = first._replace(namespace="n10")
        assert lists.must_wait(third)
        await asyncio.gather(*tasks[:1])
        assert set(api.ended) == {same, other}, "those of the next namespace, and no others"
        await asyncio.gather(*tasks)
        assert api.ended[2:] == [third]
        await asyncio.sleep(LIST_PERIOD)
        assert lists.current("n0") is None
        assert lists.last("n0") == OtherBudgets(LISTED), "an object can be planned while it is listed again"
        assert not lists.must_wait(other)

    run(scenario)


def test_namespaces_that_are_not_listed_any_more_are_forgotten() -> None:
    async def scenario() -> None:
        lists = Lists().lists
        for namespace in ("a", "b", "test"):
            await lists.list(namespace)
        await asyncio.sleep(KEPT)
        await lists.list("a")
        await asyncio.sleep(LIST_PERIOD + 1)
        await lists.list("test")
        assert [*vars(lists)["_namespaces"]] == ["a", "test"]
        vars(lists)["_namespaces"]["a"].size = module.MAX_TOTAL + 1
        await lists.list("b")
        assert [*vars(lists)["_namespaces"]] == ["test", "b"], "their lists are too large together"

    run(scenario)


KEY = Key(MEMCACHEDS, "test", "cache")


@dataclass
class Listing(Api):
    """An API server that records what is listed. `budgets`: those of other owners. `on_list`: called at each list."""

    budgets: Sequence[Object] = ()
    lists: list[str] = field(default_factory=list[str])
    on_list: Callable[[], None] = lambda: None

    async def list(
        self, resource: Resource, namespace: str | None, selector: str = "", **_: Any
    ) -> AsyncGenerator[Page]:
        """The budgets."""
        self.lists.append(resource.plural)
        self.on_list()
        await asyncio.sleep(0)
        yield Page(iter(self.budgets), len(self.budgets), 0, "1")


def reconciler(api: Listing, **spec: Any) -> tuple[Reconciler, Queue[Key], list[Snapshot]]:
    """A reconciler of one Memcached, its queue, and the snapshots that are planned."""
    store, queue, planned = whole_store(), Queue[Key]("test"), list[Snapshot]()
    kind = memcached(Images("example.com/memcached:1"))

    def plan(snapshot: Snapshot, now: Any) -> Plan:
        planned.append(snapshot)
        return kind.plan(snapshot, now)

    cr = builders.memcached(size=2, image="example.com/memcached:1", **spec)
    store.put(MEMCACHEDS, api.put(KEY, cr))
    return Reconciler(api.client, store, queue, [replace(kind, plan=plan)]), queue, planned


def test_object_without_need_lists_nothing() -> None:
    api = Listing()
    found, _, planned = reconciler(api)
    asyncio.run(found.reconcile(KEY))
    assert (api.lists, len(planned)) == ([], 1)


def test_object_that_changes_while_budgets_are_listed_is_reconciled_again() -> None:
    api = Listing()
    found, queue, planned = reconciler(api, podDisruptionBudget={})
    store = vars(found)["_store"]
    api.on_list = lambda: store.put(MEMCACHEDS, api.put(KEY, api.objects[KEY], generation=2))

    async def reconciled() -> None:
        assert await found.reconcile(KEY) == "requeue"
        assert (planned, len(queue)) == ([], 1)
        await found.reconcile(KEY)

    asyncio.run(reconciled())
    assert [snapshot.cr["metadata"]["generation"] for snapshot in planned] == [2]


def test_child_that_changes_while_budgets_are_listed_is_planned_as_it_is_then() -> None:
    api = Listing()
    found, _, planned = reconciler(api, podDisruptionBudget={})
    store, ours = vars(found)["_store"], builders.owned(resource=POD_DISRUPTION_BUDGETS)
    api.on_list = lambda: store.put(POD_DISRUPTION_BUDGETS, ours)
    asyncio.run(found.reconcile(KEY))
    assert [snapshot.child(POD_DISRUPTION_BUDGETS) is not None for snapshot in planned] == [True]


def test_object_waits_for_the_list_of_another_one() -> None:
    api = Listing()
    found, queue, planned = reconciler(api, podDisruptionBudget={})

    async def reconciled() -> None:
        budgets: BudgetLists = vars(found)["_budgets"]
        async with asyncio.TaskGroup() as group:
            # Two objects of one namespace; that they have the same key does not matter.
            results = [group.create_task(found.reconcile(KEY)) for _ in range(2)]
        assert [each.result() for each in results] == ["requeue", "requeue_after"]
        assert (api.lists, len(planned), len(queue)) == ([POD_DISRUPTION_BUDGETS.plural], 1, 1)
        assert not budgets.must_wait(KEY)

    asyncio.run(reconciled())
