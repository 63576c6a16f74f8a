"""The order of the first lists: kinds, then their children, and kinds that name each other."""

import asyncio
from contextlib import nullcontext
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator.engine.discovery import is_served
from memcached_operator.engine.manager import Manager
from memcached_operator.kube.client import ApiClient, ApiError, Page
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES, memcachedproxy
from memcached_operator.world.knowledge import State
from unit.engine.test_manager import check_waits_for, fail_lists, run_scenario, until
from unit.fakes import Api

PROXIES = memcachedproxy(Images("example.com/memcached:1"))


class Delayed:
    """Delays the lists of one resource. `begun`: the resources whose lists have begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, delayed: Resource) -> None:
        self.begun: list[Resource] = []
        self.may_end = asyncio.Event()
        list_all = Api.list

        async def listed(api: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
            self.begun.append(resource)
            if resource == delayed:
                await self.may_end.wait()
            async for page in list_all(api, resource, namespace, selector):
                yield page

        monkeypatch.setattr(Api, "list", listed)


async def let_run() -> None:
    """Let all tasks run that wait for no request."""
    for _ in range(100):
        await asyncio.sleep(0)


def test_children_are_listed_after_the_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a child depends on the objects that exist."""
    lists = Delayed(monkeypatch, MEMCACHEDS)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: lists.begun)
        await let_run()
        assert set(lists.begun) == {MEMCACHEDS}
        lists.may_end.set()
        await until(lambda: api.statuses)

    run_scenario(scenario, sync_period=3600)


def test_objects_wait_a_moment_for_the_list_of_those_that_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    check_waits_for(MEMCACHEDPROXIES, monkeypatch, PROXIES, sync_period=3600)


@pytest.mark.parametrize("code", [0, 403, 404, 500])
def test_failing_list_of_those_that_name_objects_stops_none(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.manager.START_GRACE", 0.01)
    fail_lists(monkeypatch, ApiError(code, "", "not now"), MEMCACHEDPROXIES)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)

    run_scenario(scenario, PROXIES, sync_period=3600)


def test_right_that_is_missing_in_one_namespace_concerns_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.manager.START_GRACE", 3600)
    list_all = Api.list

    async def listed(api: Api, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if (resource, namespace) == (MEMCACHEDPROXIES, "other"):
            raise ApiError(403, "Forbidden", "may not list them")
        if namespace == "test":
            async for page in list_all(api, resource, namespace, selector):
                yield page
        else:
            yield Page(iter(()), 0, 0, "100")

    monkeypatch.setattr(Api, "list", listed)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)
        known = vars(manager)["_knowledge"]
        states = [known[MEMCACHEDPROXIES, namespace].state for namespace in ("test", "other")]
        assert states == [State.LISTED, State.UNLISTED]

    run_scenario(scenario, PROXIES, sync_period=3600, namespaces=("test", "other"))


SERVED: dict[str, tuple[Object | ApiError, bool | None]] = {
    "served": ({"resources": [{"name": "memcacheds"}, {"name": "memcachedproxies"}]}, True),
    "only others": ({"resources": [{"name": "memcacheds"}]}, False),
    "no group": (ApiError(404, "", "the server could not find the requested resource"), False),
    "forbidden": (ApiError(403, "Forbidden", "may not get path"), None),
    "no response": (ApiError(0, "Timeout", "no response"), None),
}


@pytest.mark.parametrize(("reply", "expected"), SERVED.values(), ids=SERVED.keys())
def test_only_discovery_says_that_a_resource_is_not_served(reply: Object | ApiError, expected: bool | None) -> None:
    class Server:
        async def request(self, method: str, path: str) -> Object:
            assert (method, path) == ("GET", "/apis/cache.example.com/v1alpha1")
            if isinstance(reply, ApiError):
                raise reply
            return reply

    with nullcontext() if expected is not None else pytest.raises(ApiError):
        assert asyncio.run(is_served(cast("ApiClient", Server()), MEMCACHEDPROXIES)) is expected
