"""A change of the spec that first appears in the reply to a status write is not lost."""

import asyncio
from typing import Any, cast

from memcached_operator.cache.cache import Cache
from memcached_operator.kind import DesiredStatus, Kind, Plan
from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import Key, Object, key_of
from memcached_operator.reconcile.reconciler import Reconciler
from memcached_operator.runtime.queue import Queue
from memcached_operator.workloads.deployment import DEPLOYMENT
from unit.builders import MEMCACHEDS, memcached

STATUS: dict[str, Any] = {"observedGeneration": 1, "conditions": []}
KIND = Kind(
    MEMCACHEDS,
    "memcached",
    (),
    (DEPLOYMENT,),
    plan=lambda snapshot, now: Plan(()),
    status=lambda snapshot, outcome, now: DesiredStatus(STATUS),
)


IMMEDIATELY = 0.1
"""Seconds; shorter than every delay of the queue."""


class FixedReply:
    """A client whose patches always return the same reply."""

    def __init__(self, reply: Object) -> None:
        self._reply = reply

    async def patch(self, *_: object, **__: object) -> Object:
        return self._reply


def requeued(reply: Object) -> bool:
    """True if the object is requeued immediately after a status patch with this reply."""

    async def run() -> bool:
        cr, cache, queue = memcached(), Cache(), Queue[Key]("test")
        cache.put(MEMCACHEDS, cr)
        key = key_of(MEMCACHEDS, cr)
        reconciler = Reconciler(cast("Client", FixedReply(reply)), cache, queue, [KIND])
        timers = asyncio.create_task(queue.run_timers())
        await reconciler.reconcile(key)
        try:
            async with asyncio.timeout(IMMEDIATELY):
                return await queue.get() == key
        except TimeoutError:
            return False
        finally:
            timers.cancel()

    return asyncio.run(run())


def reply(generation: int, status: dict[str, Any]) -> Object:
    """The object after the patch."""
    cr = memcached(version=2)
    return {**cr, "metadata": {**cr["metadata"], "generation": generation}, "status": status}


def test_reply_with_our_status_does_not_requeue() -> None:
    assert not requeued(reply(1, STATUS))


def test_reply_with_a_newer_spec_requeues() -> None:
    assert requeued(reply(2, STATUS))


def test_reply_with_another_status_requeues() -> None:
    assert requeued(reply(1, {**STATUS, "nodes": ["not-ours"]}))
