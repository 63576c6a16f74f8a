"""What a MemcachedProxy reads of a Memcached, and whether memcached's proxy can use it."""

from typing import Any

import pytest

from memcached_api.memcached import memory
from memcached_api.memcached.rules.spec import MAX_SLOTS
from memcached_api.memcachedproxy.limits import DEFAULT_ITEM_SIZE, MAX_ITEM_SIZE, server_connections
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS as REAL
from memcached_operator.memcachedproxy import references
from memcached_operator.memcachedproxy.references import names, notices
from memcached_operator.parts import ring
from memcached_operator.parts.ring import Use
from memcached_operator.world.knowledge import NOT_SERVED
from memcached_operator.world.snapshot import Snapshot
from unit.builders import memcached, memcachedproxy, slots

KEY = Key(references.MEMCACHEDS, "test", "cache")
LABELS = {
    "app.kubernetes.io/component": "proxy",
    "app.kubernetes.io/instance": "front",
    "app.kubernetes.io/managed-by": "memcached-operator",
    "app.kubernetes.io/name": "memcached-proxy",
}


def test_resource_is_that_of_the_other_kind() -> None:
    assert references.MEMCACHEDS == REAL
    assert ring.MAX_SLOTS == MAX_SLOTS


@pytest.mark.parametrize("spec", [None, 1, {}, {"memcachedRef": 1}, {"memcachedRef": {"name": 1}}])
def test_object_without_a_valid_reference_names_nothing(spec: Any) -> None:
    assert list(names({**memcachedproxy(), "spec": spec})) == []
    assert list(names({**memcachedproxy(), "spec": {"memcachedRef": {"name": "A/b"}}})) == []
    assert list(names(memcachedproxy())) == ["cache"]
    caches = [{"name": name, "servers": 3} for name in ("cache", "other", "A/b")]
    assert list(names({**memcachedproxy(), "status": {"caches": caches}})) == ["cache", "other"]


@pytest.mark.parametrize("part", [None, 1, "", [], {"tls": 1, "networkPolicy": 1, "image": 1, "servers": "a"}])
def test_object_of_any_form_is_read(part: Any) -> None:
    found = references.reads(
        {"metadata": {"name": "cache"}, "spec": part or {}, "status": part or {}} if part != 1 else memcached()
    )
    assert (found.slots, found.servers) == (None, 0)


def test_form_and_number_of_the_addresses() -> None:
    found = references.reads(slots(3))
    assert (found.slots, found.servers) == (references.Slots("cache", "cache.test.svc.cluster.local", 11211), 3)


CACHES: dict[str, tuple[Any, int, int]] = {
    "none": (None, 2**20, 995),
    "settings": ({"maxItemSize": "1.5Mi", "maxConnections": 100, "threads": 1}, 3 * 2**19, 86),
    "a number": ({"maxItemSize": 2**21}, 2**21, 995),
    "other types": ({"maxItemSize": [], "maxConnections": "a", "threads": True}, 2**20, 995),
    "no quantity": ({"maxItemSize": "big", "maxConnections": -1, "threads": 0}, 2**20, 995),
    "no size": ({"maxItemSize": "0"}, 2**20, 995),
    "too large": ({"maxItemSize": "2Gi"}, 2**20, 995),
    "no object": (1, 2**20, 995),
}
"""`spec.cache`, the largest item, and the clients that a server accepts."""


@pytest.mark.parametrize(("cache", "item", "clients"), CACHES.values(), ids=CACHES.keys())
def test_largest_item_and_clients_of_a_server(cache: Any, item: int, clients: int) -> None:
    found = references.reads(slots(3, spec={"cache": cache}))
    assert (found.item_size, found.connections) == (item, clients)


def test_default_item_is_that_of_the_other_kind() -> None:
    assert (DEFAULT_ITEM_SIZE, MAX_ITEM_SIZE) == (memory.DEFAULT_ITEM_SIZE, memory.MAX_ITEM_SIZE)
    for connections, threads in ((None, None), (50, 1), (4096, None), (None, 64)):
        settings = memory.settings_of(connections, threads, tls=False)
        accepted = settings.connections - memory.minimum_connections(settings.threads) + 1
        assert server_connections(connections, threads) == accepted


FOREIGN = {
    "another name": ["other-0.cache.test.svc:11211"],
    "a quotation mark": ['cache-0.cache".. os.exit() ..".svc:11211'],
    "a new line": ["cache-0.cache.svc:11211\n"],
    "no port": ["cache-0.cache.svc"],
    "a port that is too long": ["cache-0.cache.svc:112110"],
    "a slot twice": ["cache-0.cache.svc:11211", "cache-0.cache.svc:11211"],
    "another port": ["cache-0.cache.svc:11211", "cache-1.cache.svc:11212"],
    "no text": [1],
    "nothing": [],
}


@pytest.mark.parametrize("addresses", FOREIGN.values(), ids=FOREIGN.keys())
def test_addresses_of_another_form_are_not_used(addresses: Any) -> None:
    cr = slots(2)
    assert references.reads({**cr, "status": {**cr["status"], "servers": addresses}}).slots is None


READY: dict[str, tuple[Object, bool]] = {
    "all": (slots(3), True),
    "more, while a slot is kept": ({**slots(2), "status": {**slots(2)["status"], "readyReplicas": 3}}, True),
    "one less": (slots(3, ready=2), False),
    "all of an earlier spec": (slots(3, generation=2), False),
}


@pytest.mark.parametrize(("cr", "ready"), READY.values(), ids=READY.keys())
def test_slots_are_ready_for_the_current_spec(cr: Object, ready: bool) -> None:
    assert references.reads(cr).ready is ready


def conditioned(ready: int, available: str) -> Object:
    """A Memcached with 3 slots and the condition Available."""
    cr = slots(3, ready=ready)
    condition = {"type": "Available", "status": available, "message": f"{ready} of 3 pods are ready"}
    return {**cr, "status": {**cr["status"], "conditions": [{"type": "Ready", "status": "False"}, condition]}}


def test_flapping_pods_change_only_whether_all_or_enough_are_ready() -> None:
    assert references.reads(conditioned(1, "False")) == references.reads(conditioned(2, "False"))


def test_shown_slots_by_cache() -> None:
    status = {"caches": [{"name": "cache", "servers": 4}, {"name": "old", "servers": 2}]}
    assert references.shows({**memcachedproxy(), "status": status}) == {"cache": Use(4), "old": Use(2)}
    assert references.shows(memcachedproxy()) == {}


@pytest.mark.parametrize(("size", "servers"), [(4, 3), (2, 2), (0, 3), ("2", 3), (None, 3)])
def test_slots_that_the_spec_removes_do_not_count(size: object, servers: int) -> None:
    assert references.reads(slots(3, spec={"size": size})).servers == servers


UNUSABLE: dict[str, tuple[Object | None, str, str]] = {
    "is missing": (
        None,
        "ReferenceNotFound",
        "Memcached cache does not exist in namespace test; create it, or correct spec.memcachedRef.name",
    ),
    "is being deleted": (
        slots(3, deletionTimestamp="2030-01-01T12:00:00Z"),
        "ReferenceNotFound",
        "Memcached cache is being deleted; create it, or correct spec.memcachedRef.name",
    ),
    "is Pooled": (
        memcached(size=3),
        "ReferenceInvalid",
        "Memcached cache has identity: Pooled; a proxy needs slots. Create a second Memcached with identity: Stable",
    ),
    "has passwords": (
        slots(3, spec={"auth": {"secretName": "users"}}),
        "ReferenceInvalid",
        "Memcached cache requires passwords; memcached's proxy cannot log in to servers",
    ),
    "has only TLS": (
        slots(3, spec={"tls": {"secretName": "tls"}}),
        "ReferenceInvalid",
        "Memcached cache serves only TLS; the official image's proxy cannot connect to servers with TLS. Create "
        "a second Memcached without TLS that admits only the proxies with its spec.networkPolicy, and refer to it. Or "
        "set its spec.tls.plaintext: Enabled and another spec.tls.port, which clients with TLS must then use. If this "
        "replaces its pods, their items are lost",
    ),
    "has disabled plaintext": (
        slots(3, spec={"tls": {"secretName": "tls", "plaintext": "Disabled"}}),
        "ReferenceInvalid",
        "Memcached cache serves only TLS",
    ),
    "is too old": (
        slots(3, spec={"image": "docker.io/library/memcached:1.6.39-alpine"}),
        "ReferenceInvalid",
        "Memcached cache runs memcached 1.6.39; a proxy needs servers of at least 1.6.40. Set its spec.image. If "
        "this replaces its pods, their items are lost",
    ),
    "has not published its addresses": (
        memcached(identity="Stable", image="docker.io/library/memcached:1.6.45"),
        "RollingOut",
        "Memcached cache has not published the addresses of its slots yet",
    ),
}


def snapshot(cache: Object | None) -> Snapshot:
    """A proxy and the Memcached that it names."""
    return Snapshot(memcachedproxy(), referenced={} if cache is None else {KEY: references.reads(cache)})


@pytest.mark.parametrize(("cache", "reason", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_memcached_that_cannot_be_used(cache: Object | None, reason: str, message: str) -> None:
    observed = snapshot(cache)
    found = references.obstacle(observed, "cache", references.cache_of(observed, "cache"))
    assert found is not None
    assert found.reason == reason
    assert found.message.startswith(message)


def test_api_server_without_the_other_kind() -> None:
    found = references.obstacle(
        Snapshot(memcachedproxy(), knowledge={references.MEMCACHEDS: NOT_SERVED}), "cache", None
    )
    assert found is not None
    assert found.reason == "ReferenceNotFound"
    assert "install its CustomResourceDefinition" in found.message


USABLE = {
    "slots": slots(3),
    "TLS beside plaintext": slots(3, spec={"tls": {"secretName": "a", "port": 11212, "plaintext": "Enabled"}}),
    "the oldest release": slots(3, spec={"image": "memcached:1.6.40"}),
    "an unknown release": slots(3, spec={"image": "example.com/memcached:1.6.38"}),
    "pods that are not ready": slots(3, ready=0),
}


@pytest.mark.parametrize("cache", USABLE.values(), ids=USABLE.keys())
def test_memcached_that_can_be_used(cache: Object) -> None:
    observed = snapshot(cache)
    assert references.obstacle(observed, "cache", references.cache_of(observed, "cache")) is None


def noticed(**spec: Any) -> list[str]:
    """The notices about a Memcached with this spec."""
    return list(notices("cache", references.reads(slots(3, spec=spec)), LABELS))


UNKNOWN = ("memcached:latest", "memcached@sha256:" + "0" * 64, "example.com/memcached:1.6.45", "memcached:1.6", "")


@pytest.mark.parametrize("image", UNKNOWN)
def test_notice_of_a_release_that_is_not_known(image: str) -> None:
    (text,) = noticed(image=image or None)
    assert text.endswith("; a proxy needs servers of memcached 1.6.40 or later")
    assert (image or "no image in spec.image") in text


@pytest.mark.parametrize(("available", "expected"), [("False", 1), ("True", 0), ("Unknown", 0)])
def test_problem_of_a_memcached_that_is_not_available(available: str, expected: int) -> None:
    found = list(references.unavailable("cache", references.reads(conditioned(0, available))))
    assert found == [Problem("WaitingForMemcached", "Memcached cache is not available; see its conditions")] * expected


def test_notice_of_a_pause_until_it_ends() -> None:
    (text,) = noticed(rollout={"paused": True})
    remedy = "Set its spec.rollout.paused to false. If this replaces its pods, their items are lost"
    assert text.endswith(f"such as tls or auth. {remedy}")
    assert noticed(rollout={"paused": False}) == []


def of_front(**labels: str) -> Object:
    """A client of a NetworkPolicy."""
    return {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": "front", **labels}}}


ADMITTING: dict[str, Object | None] = {
    "no policy": None,
    "all pods of the namespace": {},
    "the labels": {"from": [{"podSelector": {"matchLabels": {"app": "web"}}}, of_front()]},
    "any pod of some namespaces": {"from": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]},
    "addresses": {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
}


@pytest.mark.parametrize("policy", ADMITTING.values(), ids=ADMITTING.keys())
def test_no_notice_of_a_policy_that_may_admit_the_proxies(policy: Object | None) -> None:
    assert noticed(networkPolicy=policy) == []


@pytest.mark.parametrize("peer", [{"podSelector": {"matchLabels": {"app": "web"}}}, of_front(app="web")])
def test_notice_of_a_policy_that_does_not_admit_the_proxies(peer: Object) -> None:
    assert noticed(networkPolicy={"from": [peer]}) == [
        "spec.networkPolicy.from of Memcached cache does not admit these proxies. Add the entry {podSelector: "
        "{matchLabels: {app.kubernetes.io/instance: front, app.kubernetes.io/name: memcached-proxy}}}"
    ]
    entry = {key: LABELS[key] for key in ("app.kubernetes.io/instance", "app.kubernetes.io/name")}
    assert noticed(networkPolicy={"from": [peer, {"podSelector": {"matchLabels": entry}}]}) == []
