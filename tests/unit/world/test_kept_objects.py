"""What the cache keeps of objects that anyone may write, in any number and size."""

import asyncio
import logging
from typing import Any, cast

import pytest

from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.engine.manager import Manager
from memcached_operator.kube import labels
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    key_of,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.controller import memcached as memcached_kind
from memcached_operator.world import allowances
from memcached_operator.world.kept_objects import MAX_POD, MAX_SLOT, SURGE, Retention
from memcached_operator.world.store import Store
from unit.builders import LABELS, deleted, memcached, owned, pod
from unit.fakes import Api

KIND = memcached_kind(Images("example.com/memcached:1"))
LARGE = "x" * 100_000
JUNK: dict[str, Any] = {"annotations": {"a": LARGE}, "finalizers": [LARGE]}


def made(*crs: Object) -> Store:
    """A cache with these Memcacheds."""
    cache = Store(Retention([KIND, appservice()]))
    for cr in crs:
        cache.put(MEMCACHEDS, cr)
    return cache


def large(resource: Resource, name: str, **meta: Any) -> Object:
    """An object with our labels and 300 KB that nobody reads."""
    return {**owned(resource=resource, name=name, **meta, **JUNK), "data": {"a": LARGE}}


NAMES: dict[str, tuple[Resource, str, bool]] = {
    "workload": (DEPLOYMENTS, "cache", True),
    "other workload": (STATEFULSETS, "cache", True),
    "workload of another": (DEPLOYMENTS, "other", False),
    "Service": (SERVICES, "cache", True),
    "large Service of a slot": (SERVICES, "cache-1", False),
    "slot that does not exist": (SERVICES, "cache-2", False),
    "slot with a long number": (SERVICES, "cache-" + "0" * 200, False),
    "slot in another form": (SERVICES, "cache-00", False),
    "slot of another": (SERVICES, "other-0", False),
    "ConfigMap": (CONFIG_MAPS, "cache-connection", True),
    "another ConfigMap": (CONFIG_MAPS, "cache", False),
    "budget": (POD_DISRUPTION_BUDGETS, "cache", True),
}


@pytest.mark.parametrize(("resource", "name", "is_needed"), NAMES.values(), ids=NAMES.keys())
def test_only_children_of_existing_objects_are_kept_in_any_case(resource: Resource, name: str, is_needed: bool) -> None:
    cache = made(memcached(size=2))
    obj = large(resource, name)
    cache.put(resource, obj)
    entry = cache.entry(key_of(resource, obj))
    assert entry is not None
    assert entry.needed == is_needed
    assert len(entry.json) > 300_000


SLOTS = {"first": ("cache-0", True), "last": ("cache-1", True), "none": ("cache-2", False), "other": ("b-0", False)}


@pytest.mark.parametrize(("name", "is_needed"), SLOTS.values(), ids=SLOTS.keys())
def test_services_of_slots_are_kept_in_any_case_if_they_are_small(name: str, is_needed: bool) -> None:
    cache = made(memcached(size=2))
    cache.put(SERVICES, owned(resource=SERVICES, name=name))
    assert needed(cache, SERVICES) == is_needed
    entry = cache.entry(Key(SERVICES, "test", name))
    assert entry is not None
    for more, expected in ((0, is_needed), (1, False)):
        text = "x" * (MAX_SLOT - len(entry.json) - len(',"a":""') + more)
        cache.put(SERVICES, {**owned(resource=SERVICES, name=name, version=11 + more), "a": text})
        assert needed(cache, SERVICES) == expected


def with_meta(obj: Object, **meta: Any) -> Object:
    """The object with other metadata."""
    return {**obj, "metadata": {**obj["metadata"], **meta}}


def test_used_fields_of_a_pod_are_kept() -> None:
    cache = made(memcached())
    ours = {"memcached-operator.example.com/args": "-m 64"}
    spec: Object = {
        "containers": [{"name": "memcached", "image": "a", "env": [LARGE], "resources": {"limits": {}}}],
        "volumes": [{"name": "a", "configMap": {"name": LARGE}}, {"name": "b", "secret": {"secretName": "c"}}],
        "initContainers": [{"name": "proxy", "image": "b", "restartPolicy": "Always", "env": [LARGE]}],
        "ephemeralContainers": [{"name": LARGE}],
        "schedulingGates": [{"name": "d"}],
        "readinessGates": [{"conditionType": "e"}],
        "nodeName": "f",
        "hostname": LARGE,
    }
    obj = {**with_meta(pod("cache-0"), annotations={**ours, "theirs": LARGE}), "spec": spec}
    cache.put(PODS, obj)
    found = cache.get(key_of(PODS, obj))
    assert found is not None
    assert found["metadata"]["annotations"] == ours
    assert found["spec"] == {
        "containers": [{"name": "memcached", "image": "a", "resources": {"limits": {}}}],
        "volumes": [{"name": "b", "secret": {"secretName": "c"}}],
        "initContainers": [{"name": "proxy", "image": "b", "restartPolicy": "Always"}],
        "schedulingGates": [{"name": "d"}],
        "readinessGates": [{"conditionType": "e"}],
        "nodeName": "f",
    }
    assert found["status"] == obj["status"]


def needed(cache: Store, resource: Resource) -> int:
    """How many objects of a resource are kept whatever their number."""
    return sum(entry.needed for key in cache.keys(resource) if (entry := cache.entry(key)) is not None)


def test_pods_are_needed_as_far_as_their_object_can_have_them() -> None:
    cache = made(memcached(size=3))
    for number in range(100):
        cache.put(PODS, pod(f"a-{number}"))
        cache.put(PODS, with_meta(pod(f"b-{number}"), labels={**LABELS, "app.kubernetes.io/instance": "other"}))
    assert needed(cache, PODS) == 2 * 3 + SURGE + 1


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_completed_pods_do_not_displace_others(phase: str) -> None:
    """Evicted pods keep their owner and stay until they are deleted: a node under pressure can leave thousands."""
    cache = made(memcached(size=3))
    for number in range(allowances.MAX_BYTES // allowances.OVERHEAD):
        assert not cache.put(PODS, pod(f"a-{number}", phase=phase)), "no reconcile needs it"
    for number in range(3):
        assert cache.put(PODS, pod(f"b-{number}"))
    assert (needed(cache, PODS), len(cache.keys(PODS))) == (3, 3)


def test_only_the_newest_pod_that_its_node_has_rejected_is_kept() -> None:
    """Of each instance, whatever the order of the events: the status reports its reason."""
    cache = made(memcached(size=3))
    rejected: dict[str, Any] = {"phase": "Failed", "reason": "OutOfcpu"}
    for name, second in (("a-1", 1), ("a-0", 0), ("a-3", 2), ("a-2", 2)):  # two in the same second
        cache.put(PODS, with_meta(pod(name, **rejected), creationTimestamp=f"2030-01-01T12:00:0{second}Z"))
    others: dict[str, Any] = {
        "b": {"labels": {**LABELS, labels.INSTANCE: "b"}},
        "c": {"labels": {**LABELS, labels.NAME: "c"}},
        "d": {"namespace": "elsewhere"},
        "e": {"ownerReferences": [{"kind": "Job", "name": "e", "uid": "e", "controller": True}]},
    }
    for name, meta in others.items():
        cache.put(PODS, with_meta(pod(name, **rejected), creationTimestamp="2030-01-01T13:00:00Z", **meta))
    assert sorted(key.name for key in cache.keys(PODS)) == ["a-3", *others]
    cache.put(PODS, deleted(pod("a-3", version=2, **rejected)))
    assert sorted(key.name for key in cache.keys(PODS)) == [*others]


@pytest.mark.parametrize(("finalizers", "kept"), [(["example.com/hold"], 1), ([], 0)])
def test_completed_pod_that_finalizers_hold_still_exists(finalizers: list[str], kept: int) -> None:
    cache = made(memcached(size=3))
    cache.put(PODS, with_meta(deleted(pod("a", phase="Succeeded")), finalizers=finalizers))
    assert len(cache.keys(PODS)) == kept


def test_completed_pod_counts_as_deleted() -> None:
    cache = made(memcached(size=3))
    assert cache.put_event(PODS, pod("a", version=1))
    assert cache.put_event(PODS, pod("a", version=3, phase="Failed"))
    assert not cache.put(PODS, pod("a", version=2)), "the response to a write can arrive later"
    assert not cache.put_event(PODS, pod("a", version=4, phase="Failed"))
    assert cache.keys(PODS) == []


def test_large_pod_is_not_needed() -> None:
    cache = made(memcached())
    cache.put(PODS, with_meta(pod("a"), annotations={"memcached-operator.example.com/a": "x" * MAX_POD}))
    assert needed(cache, PODS) == 0


def junk(resource: Resource, name: str, namespace: str = "test") -> Object:
    """An object that nothing needs."""
    meta = {"name": name, "namespace": namespace, "uid": "u" * 36, "resourceVersion": "1"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": {}}


def kept_bytes(cache: Store, resource: Resource, namespace: str) -> int:
    """The bytes of the objects of a resource in a namespace, as they are counted."""
    keys = [key for key in cache.keys(resource) if key.namespace == namespace]
    return sum(cache.bytes_of(key) + allowances.OVERHEAD for key in keys)


def test_what_nothing_needs_is_limited_per_namespace(caplog: pytest.LogCaptureFixture) -> None:
    cache, limit = made(memcached()), allowances.MAX_BYTES
    namespaces = ("test", "other")
    for namespace in namespaces:
        for number in range(limit // allowances.OVERHEAD):
            cache.put(CONFIG_MAPS, junk(CONFIG_MAPS, f"b{number}", namespace))
        largest = max(map(cache.bytes_of, cache.keys(CONFIG_MAPS))) + allowances.OVERHEAD
        assert limit - largest < kept_bytes(cache, CONFIG_MAPS, namespace) <= limit
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [f"namespace '{each}'" in text for each, text in zip(namespaces, warnings, strict=True)] == [True, True]
    # Children are stored in any case.
    cache.put(SERVICES, large(SERVICES, "cache"))
    assert len(cache.keys(SERVICES)) == 1
    # There is room for others after the next list.
    listing = cache.listing(CONFIG_MAPS, "test")
    listing.add([], 100)
    listing.end()
    cache.put(CONFIG_MAPS, junk(CONFIG_MAPS, "new"))
    assert [key.name for key in cache.keys(CONFIG_MAPS) if key.namespace == "test"] == ["new"]


def test_children_of_a_deleted_object_count_until_it_is_created_again() -> None:
    cache = made(memcached())
    keys = [Key(resource, "test", "cache") for resource in (SERVICES, DEPLOYMENTS)]
    for key in keys:
        cache.put(key.resource, large(key.resource, "cache"))
    cr = memcached()
    cache.remove(key_of(MEMCACHEDS, cr), 1000)
    cache.release(Retention([KIND]).of_deleted(cache, KIND, cr))
    assert [cache.bytes_of(key) > 300_000 for key in keys] == [True, True]
    assert (needed(cache, SERVICES), needed(cache, DEPLOYMENTS)) == (0, 0)
    cache.put(MEMCACHEDS, memcached(uid="later", version=1001))
    assert not cache.put(SERVICES, large(SERVICES, "cache")), "it is no news"
    assert (needed(cache, SERVICES), needed(cache, DEPLOYMENTS)) == (1, 0)


@pytest.mark.parametrize(("name", "is_needed"), [("cache", False), ("other", True)])
def test_event_of_a_deletion_limits_the_children(name: str, is_needed: bool) -> None:
    manager = Manager(cast("ApiClient", Api()), [KIND])
    cache: Store = vars(manager)["_store"]
    for cr in (memcached(), memcached("other", uid="other")):
        cache.put(MEMCACHEDS, cr)
    cache.put(SERVICES, large(SERVICES, "cache"))

    async def delete() -> None:
        manager.handle_event(MEMCACHEDS, "deleted", memcached(name, version=1000))

    asyncio.run(delete())
    assert needed(cache, SERVICES) == is_needed


def test_children_of_deleted_objects_are_limited() -> None:
    crs = [memcached(f"cache-{number}", uid=f"cr-{number}") for number in range(20)]
    cache = made(*crs)
    for cr in crs:
        cache.put(SERVICES, {**large(SERVICES, cr["metadata"]["name"]), "more": LARGE * 3})
    for cr in crs:
        cache.remove(key_of(MEMCACHEDS, cr), 1000)
        cache.release(Retention([KIND]).of_deleted(cache, KIND, {**cr, "metadata": {**cr["metadata"], "uid": "cr"}}))
    assert kept_bytes(cache, SERVICES, "test") <= allowances.MAX_BYTES
    assert needed(cache, SERVICES) == 0


def test_budget_of_an_earlier_object_is_kept_whole() -> None:
    """It may become needed."""
    cache = made()
    cache.put(POD_DISRUPTION_BUDGETS, large(POD_DISRUPTION_BUDGETS, "cache"))
    assert cache.bytes_of(Key(POD_DISRUPTION_BUDGETS, "test", "cache")) > 300_000


def test_children_of_every_kind_are_found() -> None:
    cache = Store(Retention([KIND, appservice()]))
    cache.put(APPSERVICES, memcached("web"))
    cache.put(SERVICES, large(SERVICES, "web"))
    entry = cache.entry(Key(SERVICES, "test", "web"))
    assert entry is not None
    assert entry.needed
