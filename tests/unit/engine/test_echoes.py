"""Which events of a custom resource, while its status is being written, and of children cause a reconcile."""

import asyncio
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator.engine.manager import SETTLE_PERIOD, Manager
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from simulation import clock
from unit import builders
from unit.fakes import Api

STATUS: Object = {"observedGeneration": 1, "conditions": []}
APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
KEY = Key(MEMCACHEDS, "test", "cache")


def cr(version: int, status: Object, **meta: Any) -> Object:
    """A Memcached that kubectl has applied."""
    found = builders.memcached("cache", version=version)
    return {**found, "metadata": {**found["metadata"], "annotations": APPLIED, **meta}, "status": status}


def managed() -> tuple[Manager, "Queue[Key]"]:
    """A manager that knows a Memcached, and its queue."""
    manager = Manager(cast("ApiClient", Api()), [memcached(Images("example.com/memcached:1"))])
    vars(manager)["_store"].put(MEMCACHEDS, cr(1, {}))
    return manager, vars(manager)["_queue"]


@pytest.mark.parametrize(
    ("event", "sent", "enqueued"),
    [
        (cr(2, STATUS), STATUS, False),
        (cr(2, STATUS), None, True),
        (cr(2, {**STATUS, "size": 2}), STATUS, True),
        (cr(2, STATUS, labels={"a": "b"}), STATUS, True),
        (cr(2, STATUS, generation=2), STATUS, True),
        (cr(2, STATUS, deletionTimestamp="2030-01-01T00:00:00Z"), STATUS, True),
        ({**cr(2, STATUS), "spec": {"size": 9}}, STATUS, True),
    ],
)
def test_only_the_event_of_the_status_that_is_being_written_is_no_news(
    event: Object, sent: Object | None, enqueued: bool
) -> None:
    async def run() -> int:
        manager, queue = managed()
        if sent is not None:
            reconciler: Any = vars(manager)["_reconciler"]
            reconciler._status._sent[KEY] = sent
        manager.handle_event(MEMCACHEDS, "updated", event)
        return len(queue)

    assert asyncio.run(run()) == enqueued
    assert key_of(MEMCACHEDS, event) == KEY


def test_events_of_children_are_one_reconcile_that_none_of_them_postpones() -> None:
    async def run() -> list[int]:
        manager, queue = managed()
        timers = asyncio.create_task(queue.run_timers())
        seen: list[int] = []
        for version in range(2, 8):
            child = builders.owned(cr(1, {}), DEPLOYMENTS, name="cache", version=version)
            manager.handle_event(DEPLOYMENTS, "updated", child)
            await asyncio.sleep(0.3 * SETTLE_PERIOD)
            seen.append(len(queue))
        timers.cancel()
        return seen

    assert clock.run(run(), 0) == [0, 0, 0, 1, 1, 1]
