"""What the cache keeps of objects that anyone may write, in any number and size."""

import logging
from typing import Any

import msgspec
import pytest

from memcached_api.images import Images
from memcached_operator import metrics
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.cache import allowances
from memcached_operator.cache.cache import Cache
from memcached_operator.kube.resource import (
    AUTOSCALERS,
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
from memcached_operator.reconcile.manager import Manager
from memcached_operator.reconcile.retention import MAX_POD, SURGE, Retention
from unit.builders import LABELS, memcached, owned, pod
from unit.fakes import Api

KIND = memcached_kind(Images("example.com/memcached:1"))
LARGE = "x" * 100_000
JUNK: dict[str, Any] = {"annotations": {"a": LARGE}, "finalizers": [LARGE]}


def made(*crs: Object) -> Cache:
    """A cache with these Memcacheds."""
    cache = Cache(Retention([KIND, appservice()]))
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
    "first slot": (SERVICES, "cache-0", True),
    "last slot": (SERVICES, "cache-1", True),
    "slot that does not exist": (SERVICES, "cache-2", False),
    "slot with a long number": (SERVICES, "cache-" + "0" * 200, False),
    "slot of another": (SERVICES, "other-0", False),
    "ConfigMap": (CONFIG_MAPS, "cache-connection", True),
    "another ConfigMap": (CONFIG_MAPS, "cache", False),
    "budget": (POD_DISRUPTION_BUDGETS, "cache", True),
}


@pytest.mark.parametrize(("resource", "name", "is_whole"), NAMES.values(), ids=NAMES.keys())
def test_only_children_of_existing_objects_are_kept_whole(resource: Resource, name: str, is_whole: bool) -> None:
    cache = made(memcached(size=2))
    obj = large(resource, name)
    cache.put(resource, obj)
    entry = cache.entry(key_of(resource, obj))
    assert entry is not None
    assert (entry.needed, entry.complete, len(entry.json) > 300_000) == (is_whole, is_whole, is_whole)


def test_owner_and_labels_of_other_objects_are_kept() -> None:
    cache = made(memcached())
    cache.put(SERVICES, large(SERVICES, "other", labels={**LABELS, "theirs": LARGE}))
    (key,) = cache.owned_by(SERVICES, "cr")
    (entry,) = cache.entries_of_instance(SERVICES, "test", "memcached", "cache")
    found = entry.object()
    assert (key.name, found["metadata"]["name"], found["metadata"]["labels"]) == ("other", "other", LABELS)
    assert found["metadata"]["resourceVersion"]
    assert found["metadata"]["uid"]


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        (POD_DISRUPTION_BUDGETS, {"selector": {"matchLabels": LABELS}}),
        (AUTOSCALERS, {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cache"}}),
    ],
    ids=["budget", "autoscaler"],
)
def test_only_what_is_read_of_foreign_objects_is_kept(resource: Resource, spec: Object) -> None:
    cache = made(memcached())
    meta = {"name": "theirs", "namespace": "test", "uid": "u", "resourceVersion": "1", **JUNK}
    cache.put(resource, {"metadata": meta, "spec": {**spec, "other": LARGE}, "status": {"other": LARGE}})
    (key,) = cache.foreign(resource, "test")
    found = cache.get(key) or {}
    assert found["spec"] == spec
    assert len(msgspec.json.encode(found)) < 1000


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


def needed(cache: Cache, resource: Resource) -> int:
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
    for number in range(allowances.MAX_OBJECTS + 100):
        assert not cache.put(PODS, pod(f"a-{number}", phase=phase)), "no reconcile needs it"
    for number in range(3):
        assert cache.put(PODS, pod(f"b-{number}"))
    assert (needed(cache, PODS), len(cache.keys(PODS)), cache.ignored("test")) == (3, 3, 0)


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


@pytest.mark.parametrize(
    ("size", "kept", "expected"),
    [(10, allowances.MAX_OBJECTS, 2000), (1_000_000, 8, 8)],
    ids=["many", "large"],
)
def test_what_nothing_needs_is_limited_per_namespace(
    size: int, kept: int, expected: int, caplog: pytest.LogCaptureFixture
) -> None:
    """`size`: bytes of what is read of each."""
    cache = made(memcached())
    for namespace in ("test", "other"):
        for number in range(kept + 3):
            meta = {"name": f"b{number}", "namespace": namespace, "resourceVersion": "1"}
            cache.put(POD_DISRUPTION_BUDGETS, {"metadata": meta, "spec": {"selector": {"a": "x" * size}}})
    own = [sum(key.namespace == each for key in cache.keys(POD_DISRUPTION_BUDGETS)) for each in ("test", "other")]
    assert own[0] == own[1]
    assert expected - 1 <= own[0] <= expected
    assert cache.ignored("test") == kept + 3 - own[0]
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 2  # one per namespace
    # Children are stored in any case.
    cache.put(SERVICES, large(SERVICES, "cache"))
    assert cache.get(Key(SERVICES, "test", "cache")) is not None
    # Room is found again by the next list.
    listing = cache.listing(POD_DISRUPTION_BUDGETS, "test")
    listing.add([], 100)
    listing.end()
    assert (list(cache.foreign(POD_DISRUPTION_BUDGETS, "test")), cache.ignored("test")) == ([], 0)


def junk(name: str, version: int = 1, **meta: Any) -> Object:
    """A ConfigMap that nothing needs."""
    return {"metadata": {"name": name, "namespace": "test", "resourceVersion": str(version), **meta}}


def ignored() -> float | None:
    """The metric of the namespace."""
    return metrics.REGISTRY.get_sample_value("memcached_operator_ignored_objects", {"namespace": "test"})


def test_ignored_object_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    cache = made(memcached())
    names = [f"a{number}" for number in range(allowances.MAX_OBJECTS + 50)]
    for version in (1, 2, 3):
        for name in names:
            cache.put_event(CONFIG_MAPS, junk(name, version))
    assert (cache.ignored("test"), ignored()) == (50, 50)
    for name in names[-20:]:
        cache.remove(Key(CONFIG_MAPS, "test", name), 4)
    assert (cache.ignored("test"), ignored()) == (30, 30)
    for name in names[: allowances.MAX_OBJECTS]:
        cache.remove(Key(CONFIG_MAPS, "test", name), 4)
    for name in names[-50:-20]:
        cache.put_event(CONFIG_MAPS, junk(name, 5))
    assert (cache.ignored("test"), ignored()) == (0, None)
    for name in names:
        cache.put_event(CONFIG_MAPS, junk(name, 6))
    assert cache.ignored("test") == 50
    assert len(caplog.records) == 1, "one message until the next list"
    listing = cache.listing(CONFIG_MAPS, "test")
    listing.add([], 100)
    listing.end()
    for name in names:
        cache.put_event(CONFIG_MAPS, junk(name, 101))
    assert len(caplog.records) == 2


def test_ignored_pod_that_has_completed_does_not_count() -> None:
    cache = made()
    for number in range(allowances.MAX_OBJECTS + 2):
        cache.put(PODS, pod(f"a{number}", version=1))
    assert cache.ignored("test") == 2
    cache.put(PODS, pod(f"a{allowances.MAX_OBJECTS}", version=2, phase="Failed"))
    assert cache.ignored("test") == 1


def test_ignored_object_that_becomes_needed_does_not_count() -> None:
    cache = made()
    for name in [*(f"a{number}" for number in range(allowances.MAX_OBJECTS)), "cache-connection"]:
        cache.put(CONFIG_MAPS, junk(name))
    assert cache.ignored("test") == 1
    cache.put(MEMCACHEDS, memcached())
    cache.put(CONFIG_MAPS, junk("cache-connection"))
    assert cache.ignored("test") == 0


def test_number_of_ignored_objects_that_are_remembered_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowances, "MAX_OBJECTS", 0)
    monkeypatch.setattr(allowances, "MAX_COUNTED", 5)
    cache = made()
    for number in range(20):
        cache.put(CONFIG_MAPS, junk(f"a{number}"))
    assert cache.ignored("test") == 5


def test_object_is_kept_whole_when_it_becomes_needed() -> None:
    cache = made()
    child = large(SERVICES, "cache")
    cache.put(SERVICES, child)
    cr = memcached()
    retention = Retention([KIND])
    assert retention.incomplete(cache, KIND, cr) == []
    cache.put(MEMCACHEDS, cr)
    assert retention.incomplete(cache, KIND, cr) == [key_of(SERVICES, child)]
    assert not cache.put(SERVICES, child)  # it is no news, but stored
    assert retention.incomplete(cache, KIND, cr) == []
    cache.remove(key_of(MEMCACHEDS, cr), 1000)
    cache.reconsider(retention.of_deleted(cache, KIND, cr))
    entry = cache.entry(key_of(SERVICES, child))
    assert entry is not None
    assert (entry.needed, len(entry.json) < 1000) == (False, True)


def test_children_of_a_deleted_object_are_not_kept_whole() -> None:
    manager = Manager(Api().client, [KIND])
    cache: Cache = vars(manager)["_cache"]
    child = large(SERVICES, "cache")
    kept: list[bool | None] = []
    events: list[tuple[Resource, Any, Object]] = [
        (MEMCACHEDS, "updated", memcached()),
        (SERVICES, "updated", child),
        (MEMCACHEDS, "deleted", memcached()),
    ]
    for event in events:
        manager.handle_event(*event)
        entry = cache.entry(key_of(SERVICES, child))
        kept.append(entry and entry.complete)
    assert kept == [None, True, False]


def test_oversized_object_keeps_its_owner_and_is_read_if_it_is_needed() -> None:
    cr = memcached()
    cache = made(cr)
    cache.put(SERVICES, large(SERVICES, "cache", version=5))
    meta = {"name": "cache", "namespace": "test", "uid": "u", "resourceVersion": "6"}
    assert cache.put_oversized(SERVICES, {"metadata": meta})
    assert not cache.put_oversized(SERVICES, {"metadata": meta})
    assert [key.name for key in cache.owned_by(SERVICES, "cr")] == ["cache"]
    assert Retention([KIND]).incomplete(cache, KIND, cr) == [Key(SERVICES, "test", "cache")]


def test_children_of_every_kind_are_found() -> None:
    cache = Cache(Retention([KIND, appservice()]))
    cache.put(APPSERVICES, memcached("web"))
    cache.put(SERVICES, large(SERVICES, "web"))
    entry = cache.entry(Key(SERVICES, "test", "web"))
    assert entry is not None
    assert entry.complete
