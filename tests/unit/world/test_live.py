"""Children are recreated only if their owner still exists; a live read overrides the cache."""

import asyncio
from typing import Any

from memcached_operator.engine.kind import DesiredStatus, Plan, ReconciledKind
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.resource import SERVICES, Key, Object, key_of
from memcached_operator.parts.workloads.deployment import DEPLOYMENT
from memcached_operator.world.live import FIRST_RECHECK, RECHECK_BURST, Rechecks, get_live
from support.stores import whole_store
from unit.builders import MEMCACHEDS, memcached
from unit.fakes import Api

STATUS: dict[str, Any] = {"observedGeneration": 1, "conditions": []}
CHILD: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "cache", "namespace": "test", "labels": {}},
}
KIND = ReconciledKind(
    resource=MEMCACHEDS,
    app_name="memcached",
    owns=(SERVICES,),
    workloads=(DEPLOYMENT,),
    plan=lambda snapshot, now: Plan((CHILD,)),
    status=lambda snapshot, outcome, now: DesiredStatus(STATUS),
)
CACHED: Object = {**memcached(), "status": STATUS}
KEY = key_of(MEMCACHEDS, CACHED)


def requests(live: Object | None, cached: Object = CACHED, *children: Object) -> list[str]:
    """The verbs of two reconciles. `live`: the object in the API server. `cached`: the one in the cache.

    `children`: Services in the cache.
    """
    api, cache, queue = Api(), whole_store(), Queue[Key]("test")
    cache.put(MEMCACHEDS, cached)
    for child in children:
        cache.put(SERVICES, child)
    if live is not None:
        api.objects[KEY] = live

    async def run() -> None:
        reconciler = Reconciler(api.client, cache, queue, [KIND])
        for _ in range(2):
            assert await reconciler.reconcile(KEY), "each reconcile has a result"

    asyncio.run(run())
    return api.verbs()


def test_child_is_not_created_for_an_outdated_spec() -> None:
    changed: Object = {**CACHED, "metadata": {**CACHED["metadata"], "resourceVersion": "9", "generation": 2}}
    # The first reconcile ends after the live read. The second one has the new spec.
    assert requests(changed)[:4] == ["get", "get", "get", "create"]


def test_event_of_a_version_that_was_read_live_is_not_ignored() -> None:
    api, cache = Api(), whole_store()
    api.objects[KEY] = {**CACHED, "metadata": {**CACHED["metadata"], "resourceVersion": "9"}}
    cache.put(MEMCACHEDS, CACHED)
    live = asyncio.run(get_live(api.client, cache, KEY))
    assert live is not None
    assert not cache.put(MEMCACHEDS, live)  # the response to a write without effect
    assert cache.put_event(MEMCACHEDS, live)
    assert not cache.put_event(MEMCACHEDS, live)


def test_children_of_a_new_object_are_created_without_a_live_read() -> None:
    new = memcached()
    assert requests(new, new)[:2] == ["create", "status"]


def test_live_read_restores_an_object_that_a_list_missed() -> None:
    api, cache = Api(), whole_store()
    api.objects[KEY] = CACHED
    cache.put(MEMCACHEDS, CACHED)
    listing = cache.listing(MEMCACHEDS, None)
    listing.add([], 1000)
    assert list(listing.end()) == [KEY]
    assert asyncio.run(get_live(api.client, cache, KEY)) is not None


class Waiting:
    """The reads of objects whose deletion is awaited, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.rechecks = Rechecks()
        self.rechecks.clock = lambda: self.now

    def reads(self, keys: list[Key], seconds: int) -> int:
        """The number of reads in a time, in which each object is reconciled when its delay has passed."""
        reads = 0
        due = dict.fromkeys(keys, 0.0)
        for _ in range(10 * seconds):
            for key in [key for key, at in due.items() if at <= self.now]:
                reads += self.rechecks.is_due(key)
                due[key] = self.now + self.rechecks.seconds(key)
            self.now += 0.1
        return reads


def services(number: int, namespace: str = "test") -> list[Key]:
    """The keys of Services."""
    return [Key(SERVICES, namespace, f"cache-{index}") for index in range(number)]


def test_one_namespace_causes_few_reads_and_does_not_delay_those_of_another() -> None:
    waiting = Waiting()
    both = [key for pair in zip(services(1000), services(1000, "second"), strict=True) for key in pair]
    assert waiting.reads(both, 60) <= 2 * (RECHECK_BURST + 60)
    (other,) = services(1, "other")
    assert waiting.rechecks.is_due(other) is False
    waiting.now += FIRST_RECHECK
    assert waiting.rechecks.is_due(other)


def test_every_object_is_read_in_the_end() -> None:
    waiting, keys = Waiting(), services(1000)
    read: set[Key] = set()
    for _ in range(20):
        for key in keys:
            if waiting.rechecks.is_due(key):
                read.add(key)
            waiting.now += 1
    assert read == set(keys)


def test_objects_that_do_not_exist_any_more_are_forgotten() -> None:
    waiting, (first, second) = Waiting(), services(2)
    for key in (first, second):
        waiting.rechecks.is_due(key)
    waiting.rechecks.keep(lambda key: key == second)
    waiting.rechecks.forget(second)
    assert vars(waiting.rechecks)["_waits"] == {}
