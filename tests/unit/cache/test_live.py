"""What is made again is made for an object that is still there; what is read anew is believed."""

import asyncio
from typing import Any

import pytest

from memcached_operator.cache.cache import Cache
from memcached_operator.cache.live import get_live
from memcached_operator.kind import DesiredStatus, Kind
from memcached_operator.kube.resource import SERVICES, Key, Object, key_of
from memcached_operator.reconcile.reconciler import Reconciler
from memcached_operator.runtime.queue import Queue
from unit.builders import MEMCACHEDS, memcached
from unit.fakes import Api

STATUS: dict[str, Any] = {"observedGeneration": 1, "conditions": []}
CHILD: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "cache", "namespace": "test", "labels": {}},
}
KIND = Kind(
    MEMCACHEDS,
    "memcached",
    (SERVICES,),
    desired=lambda cr, seen: [CHILD],
    status=lambda cr, seen, now: DesiredStatus(STATUS),
)
SEEN: Object = {**memcached(), "status": STATUS}
KEY = key_of(MEMCACHEDS, SEEN)


def asked(there: Object | None, seen: Object = SEEN) -> list[str]:
    """What the API server is asked where an object is as given, and was seen with a status but without its child."""
    api, cache, queue = Api(), Cache(), Queue[Key]("test")
    cache.put(MEMCACHEDS, seen)
    if there is not None:
        api.objects[KEY] = there

    async def run() -> None:
        reconciler = Reconciler(api.client, cache, queue, {"Memcached": KIND})
        for _ in range(2):
            await reconciler.reconcile(KEY)

    asyncio.run(run())
    return api.asked()


GONE: dict[str, Object | None] = {
    "deleted": None,
    "being deleted": {**SEEN, "metadata": {**SEEN["metadata"], "resourceVersion": "9", "deletionTimestamp": "now"}},
}


@pytest.mark.parametrize("there", GONE.values(), ids=GONE.keys())
def test_the_children_of_an_object_that_is_gone_are_not_made_again(there: Object | None) -> None:
    assert asked(there) == ["get"]


def test_a_lost_child_of_an_object_that_is_there_is_made_again() -> None:
    assert asked(SEEN)[:3] == ["get", "get", "create"]


def test_the_children_of_a_new_object_are_made_without_a_question() -> None:
    new = memcached()
    assert asked(new, new)[:2] == ["create", "status"]


def test_a_status_that_cannot_be_found_ends_the_work_on_an_object_that_is_gone() -> None:
    assert asked(None, memcached()) == ["create", "status", "get"]


def test_what_is_read_is_believed_although_a_list_lacked_it() -> None:
    api, cache = Api(), Cache()
    api.objects[KEY] = SEEN
    cache.put(MEMCACHEDS, SEEN)
    assert cache.replace(MEMCACHEDS, None, [], 1000) == [KEY]
    assert asyncio.run(get_live(api.client, cache, KEY)) is not None
