"""The period of the lists that find what watches have missed."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import cast

from memcached_api.images import Images
from memcached_operator.engine.manager import Manager
from memcached_operator.kube.client import ApiClient, Page
from memcached_operator.kube.resource import SERVICES, Resource
from memcached_operator.memcached.controller import memcached
from simulation import clock
from unit.fakes import Api

PERIOD = 1000.0
LISTS = 11


class Timed(Api):
    """An API server that records the times of the lists of Services. `complete`: there were LISTS of them."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []
        self.complete = asyncio.Event()

    async def list(self, resource: Resource, namespace: str | None, selector: str = "") -> AsyncGenerator[Page]:
        """An empty list."""
        if resource == SERVICES:
            self.times.append(asyncio.get_running_loop().time())
            if len(self.times) == LISTS:
                self.complete.set()
        async for page in super().list(resource, namespace, selector):
            yield page


def test_everything_is_listed_once_per_period_with_a_jitter() -> None:
    async def run() -> list[float]:
        api = Timed()
        manager = Manager(cast("ApiClient", api), [memcached(Images("example.com/memcached:1"))], (), PERIOD)
        work = asyncio.create_task(manager.run(asyncio.Event()))
        await api.complete.wait()
        work.cancel()
        await asyncio.wait((work,))
        return api.times

    gaps = [later - earlier for earlier, later in pairwise(clock.run(run()))]
    assert len(gaps) >= 9
    assert all(0.9 * PERIOD <= gap <= 1.11 * PERIOD for gap in gaps), gaps
    assert len(set(gaps)) > 1
