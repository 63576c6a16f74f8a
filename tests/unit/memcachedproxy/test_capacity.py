"""Notices of proxies that are too small for the items of a Memcached, or too many for its servers."""

from decimal import Decimal
from typing import Any

import pytest

from memcached_api.memcachedproxy.limits import MIN_ITEMS_PER_THREAD, Load, buffers, memory_for
from memcached_api.memcachedproxy.types import decode_spec
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.capacity import notices
from memcached_operator.memcachedproxy.references import reads
from unit.builders import memcachedproxy, slots


def noticed(cache: Object, **spec: Any) -> list[str]:
    """The notices about proxies with this spec in front of a Memcached with this `spec.cache`."""
    return list(notices(decode_spec(memcachedproxy(**spec)), "cache", reads(slots(3, spec={"cache": cache}))))


def limited(memory: str, **spec: Any) -> Object:
    """A spec with a memory limit."""
    return {**spec, "resources": {"limits": {"memory": memory}}}


MEMORY: dict[str, tuple[Object, str, str, str]] = {
    "the lowest limit": (limited("64Mi"), "2Mi", "64Mi leaves 2Mi", "79Mi"),
    "large items": (limited("200Mi"), "32Mi", "200Mi leaves 52Mi", "229Mi"),
    "many threads": (limited("1Gi", threads=64), "8Mi", "1Gi leaves 4Mi", "1969Mi"),
    "TLS": (limited("1Gi", tls={"secretName": "a"}), "512Mi", "1Gi leaves 251Mi", "2955Mi"),
}


@pytest.mark.parametrize(("spec", "item", "leaves", "needed"), MEMORY.values(), ids=MEMORY.keys())
def test_notice_of_too_little_memory_until_the_limit_is_raised(
    spec: Object, item: str, leaves: str, needed: str
) -> None:
    (text,) = noticed({"maxItemSize": item}, **spec)
    assert text == (
        f"spec.resources.limits.memory of {leaves} for values in flight in each thread, less than 2 items of Memcached "
        f"cache, whose largest item is {item}. A value that is too large is stored, but its client and others get "
        f"SERVER_ERROR. Raise the limit to at least {needed}: each connection of a client is closed once"
    )
    assert noticed({"maxItemSize": item}, **limited(needed, **spec)) == []


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, 5, 7, 16, 33, 64])
@pytest.mark.parametrize("item_size", [2**20 + 1, 2**20 + 511, 3 * 2**20 + 513, 12345679, 2**26 + 7, 2**30 - 1])
def test_threads_have_space_for_items_with_the_memory_for_them(threads: int, item_size: int, tls: bool) -> None:
    """The remedy of the notice ends it, also for sizes that are no whole kibibytes."""
    load = Load(1000, threads, tls)
    share = buffers(load, Decimal(memory_for(load, item_size) * 1024)) // threads
    assert share * 1024 >= MIN_ITEMS_PER_THREAD * item_size


@pytest.mark.parametrize("item", [None, "512Ki", "2Mi", "32Mi", "1Gi"])
@pytest.mark.parametrize(
    "spec", [{}, {"threads": 1, "maxConnections": 15}, {"threads": 64, "tls": {"secretName": "a"}}]
)
def test_default_memory_suffices_for_each_item(item: str | None, spec: Object) -> None:
    assert noticed({"maxItemSize": item, "maxConnections": 10000}, **spec) == []


MANY: dict[str, tuple[Object, str, Object]] = {
    "default surge": (
        {"size": 40, "threads": 16},
        "During a rollout, 80 proxies of 16 threads need 1280 connections to each server, but servers of Memcached "
        "cache accept 995.",
        {"size": 31},
    ),
    "a surge": ({"size": 60, "threads": 16, "rollout": {"maxSurge": "5%"}}, "63 proxies of 16", {"threads": 15}),
    "no surge": ({"size": 63, "threads": 16, "rollout": {"maxSurge": 0}}, "63 proxies of 16", {"size": 62}),
}


@pytest.mark.parametrize(("spec", "text", "change"), MANY.values(), ids=MANY.keys())
def test_notice_of_too_few_connections_until_a_field_is_changed(spec: Object, text: str, change: Object) -> None:
    (found,) = noticed({}, **spec)
    assert text in found
    assert noticed({}, **{**spec, **change}) == []
    more = int(found.partition("spec.cache.maxConnections by ")[2].partition(".")[0])
    assert noticed({"maxConnections": 1024 + more}, **spec) == []
    assert noticed({"maxConnections": 1023 + more}, **spec) != []
