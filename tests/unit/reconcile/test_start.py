"""The order of the first lists: kinds, then their children, and kinds that name each other."""

import asyncio
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES, memcachedproxy
from memcached_operator.reconcile.manager import Manager
from unit.fakes import Api
from unit.reconcile.test_manager import check_waits_for, fail_lists, run_scenario, until

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


def test_objects_wait_for_the_list_of_those_that_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    check_waits_for(MEMCACHEDPROXIES, monkeypatch, PROXIES, sync_period=3600)


@pytest.mark.parametrize("code", [403, 404])
def test_objects_do_not_wait_for_those_that_this_installation_has_never_served(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_lists(monkeypatch, ApiError(code, "", "not now"), MEMCACHEDPROXIES)

    async def scenario(api: Api, manager: Manager) -> None:
        await until(lambda: api.statuses)

    run_scenario(scenario, PROXIES, sync_period=3600)
