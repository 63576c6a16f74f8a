"""Slots that proxies use are kept after the size of a Memcached has been reduced."""

import pytest

from memcached_api.images import Images
from memcached_operator.engine.kind import Plan
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, Resource, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.parts.ring import Use
from memcached_operator.world.kept_objects import Retention
from memcached_operator.world.knowledge import LISTED, NOT_SERVED, UNLISTED, Knowledge
from memcached_operator.world.store import Store
from unit.builders import NOW, slots, snapshot_of

KIND = memcached(Images("docker.io/library/memcached:1.6.45"))
PROXIES = Resource("cache.example.com", "v1alpha1", "MemcachedProxy", "memcachedproxies")


def proxy(name: str = "front") -> Key:
    """The key of a proxy."""
    return Key(PROXIES, "test", name)


def plan(
    size: int,
    existing: int | None,
    used: dict[str, int],
    known: Knowledge = LISTED,
    kind: Resource = PROXIES,
    **spec: object,
) -> Plan:
    """The plan for a size while a StatefulSet has another one. `used`: the slots that each proxy uses, or each pod.

    `known`: of proxies.
    """
    cr = slots(size, spec=spec)
    children: dict[Key, Object] = {}
    if existing is not None:
        live = workload(KIND.plan(snapshot_of(slots(existing, spec=spec)), NOW))
        children[key_of(STATEFULSETS, live)] = build_intent(cr, live)
    return KIND.plan(
        snapshot_of(
            cr,
            children,
            naming={PROXIES: known},
            referrers={Key(kind, "test", name): {"cache": Use(count)} for name, count in used.items()},
        ),
        NOW,
    )


def workload(found: Plan) -> Object:
    """The StatefulSet of a plan."""
    (child,) = [child for child in found.children or () if child["kind"] == "StatefulSet"]
    return child


HELD: dict[str, tuple[int, int | None, dict[str, int], int]] = {
    "no proxies": (3, 4, {}, 3),
    "a proxy with fewer": (3, 4, {"front": 3}, 3),
    "a proxy with more": (3, 4, {"front": 4}, 4),
    "the proxy with the most": (1, 4, {"a": 2, "b": 3}, 3),
    "a proxy with more slots than exist": (3, 4, {"front": 9}, 4),
    "a proxy of a StatefulSet that does not exist": (3, None, {"front": 4}, 3),
    "a larger size": (5, 4, {"front": 4}, 5),
}


@pytest.mark.parametrize(("size", "existing", "used", "replicas"), HELD.values(), ids=HELD.keys())
def test_number_of_slots(size: int, existing: int | None, used: dict[str, int], replicas: int) -> None:
    found = plan(size, existing, used)
    assert workload(found)["spec"]["replicas"] == replicas
    waiting = [each for each in found.problems if each.reason == "WaitingForProxies"]
    assert len(waiting) == (replicas > size)


FAILED = UNLISTED.failed(500, "etcd\nis away")
UNKNOWN: dict[str, tuple[Knowledge, dict[str, int], int, str]] = {
    "not listed yet": (
        UNLISTED,
        {},
        4,
        "Slot 3 is kept, because a proxy may use it: memcachedproxies are not listed yet",
    ),
    "failed": (
        FAILED,
        {"front": 2},
        4,
        "Slot 3 is kept, because a proxy may use it: memcachedproxies in namespace test cannot be listed: "
        '"etcd\\nis away"',
    ),
    "no right": (
        UNLISTED.failed(403, "x" * 600),
        {},
        4,
        "Slot 3 is kept, because a proxy may use it: memcachedproxies in namespace test cannot be listed: "
        f'"{"x" * 375}…{"x" * 125}". Restore the operator\'s roles: install its release again',
    ),
    "failed later": (
        LISTED.failed(500, "away"),
        {"front": 4},
        4,
        "Slot 3 is kept until MemcachedProxy front stops using it. memcachedproxies in namespace test cannot be "
        "listed: away",
    ),
    "failed later, without proxies": (LISTED.failed(403, "away"), {}, 3, ""),
    "not served": (NOT_SERVED, {}, 3, ""),
    "not served any more, and then failed": (NOT_SERVED.failed(403, "away"), {}, 4, "Slot 3 is kept, because a proxy"),
}


@pytest.mark.parametrize(("known", "used", "replicas", "message"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_slots_are_kept_while_proxies_are_not_listed(
    known: Knowledge, used: dict[str, int], replicas: int, message: str
) -> None:
    found = plan(3, 4, used, known)
    assert workload(found)["spec"]["replicas"] == replicas
    assert "".join(each.message for each in found.problems).startswith(message)
    assert found.needs_users is (replicas == 3)
    assert plan(3, 3, {}, known).problems == ()
    assert not plan(5, 4, {}, known).needs_users


def test_message_of_a_failed_list_changes_only_with_the_kind_of_its_code() -> None:
    for code in (500, 503, 0, 429):
        assert FAILED.failed(code, "another") == FAILED
        assert UNLISTED.failed(code, "first").failed(500, "another").error == "first"
    denied = FAILED.failed(403, "denied")
    assert (denied.code, denied.error) == (403, "denied")
    assert denied.failed(403, "another") == denied
    assert denied.failed(503, "away").error == denied.failed(404, "away").error == "away"
    assert len(FAILED.failed(403, "x" * 100_000).error) == 4000


MESSAGES: dict[str, tuple[int, dict[str, int], str]] = {
    "one": (3, {"front": 4}, "Slot 3 is kept until MemcachedProxy front stops using it"),
    "two slots": (2, {"front": 4}, "Slots 2 to 3 are kept until MemcachedProxy front stops using them"),
    "two proxies": (3, {"a": 4, "b": 4, "c": 3}, "Slot 3 is kept until MemcachedProxy a and 1 more stop using it"),
}


def test_message_names_pods_if_their_proxy_does_not_exist() -> None:
    found = plan(3, 4, {"front-a": 4, "front-b": 4}, kind=PODS)
    assert [each.message for each in found.problems] == ["Slot 3 is kept until Pod front-a and 1 more stop using it"]


@pytest.mark.parametrize(("size", "used", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_message_names_slots_and_proxies(size: int, used: dict[str, int], message: str) -> None:
    assert [each.message for each in plan(size, 4, used).problems] == [message]


def test_proxy_of_another_memcached_does_not_count() -> None:
    found = KIND.plan(snapshot_of(slots(3), referrers={proxy(): {"other": 9}}), NOW)
    assert found.problems == ()


def test_services_of_kept_slots_stay_and_the_published_addresses_do_not() -> None:
    found = plan(3, 4, {"front": 4}, service={"perPod": True})
    children = found.children or ()
    names = [child["metadata"]["name"] for child in children if child["kind"] == "Service"]
    assert names == ["cache", "cache-0", "cache-1", "cache-2", "cache-3"]
    (connection,) = [child for child in children if child["kind"] == "ConfigMap"]
    assert "cache-3" not in str(connection["data"])


def test_plan_without_a_proxy_that_uses_removed_slots_is_as_without_proxies() -> None:
    assert plan(3, 3, {"front": 3}).children == plan(3, 3, {}).children
    assert plan(3, 4, {"front": 3}).children == plan(3, 4, {}).children


def test_children_of_kept_slots_are_cached_as_a_whole() -> None:
    """Otherwise, each reconcile would read them."""
    cache = Store(Retention([KIND]))
    cr = slots(3)
    cache.put(MEMCACHEDS, {**cr, "status": {**cr["status"], "replicas": 4}})
    entry = cache.entry(Key(MEMCACHEDS, "test", "cache"))
    assert entry is not None
    assert entry.size == 4
