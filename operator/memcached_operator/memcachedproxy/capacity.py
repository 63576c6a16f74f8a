"""What the proxies need for the largest items of a Memcached, and what its servers need for the proxies."""

from collections.abc import Iterator

from memcached_api.memcachedproxy.limits import MIN_ITEMS_PER_THREAD, mebibytes, memory_for
from memcached_api.memcachedproxy.resolved import buffers, load_of, requirements
from memcached_api.memcachedproxy.types import MemcachedProxySpec
from memcached_api.shared.budgets import pods_of
from memcached_operator.memcachedproxy.desired.deployment import surge
from memcached_operator.memcachedproxy.references import Cache


def notices(spec: MemcachedProxySpec, name: str, cache: Cache) -> Iterator[str]:
    """Settings of the proxies that do not fit those of the Memcached with this name, each with the remedy."""
    yield from _memory(spec, name, cache.item_size)
    yield from _connections(spec, name, cache.connections)


def _memory(spec: MemcachedProxySpec, name: str, item_size: int) -> Iterator[str]:
    """Too little memory for the largest items."""
    load = load_of(spec)
    share = buffers(spec, item_size) // load.threads
    if share * 1024 >= MIN_ITEMS_PER_THREAD * item_size:
        return
    limit = requirements(spec, item_size)["limits"]["memory"]
    yield (
        f"spec.resources.limits.memory of {limit} leaves {share // 1024}Mi for values in flight in each thread, less "
        f"than {MIN_ITEMS_PER_THREAD} items of Memcached {name}, whose largest item is {mebibytes(item_size // 1024)}. "
        "A value that is too large is stored, but its client and others get SERVER_ERROR. Raise the limit to at least "
        f"{mebibytes(memory_for(load, item_size))}: each connection of a client is closed once"
    )


def _connections(spec: MemcachedProxySpec, name: str, accepted: int) -> Iterator[str]:
    """Too few connections to each server during a rollout, when old and new proxies run."""
    threads = load_of(spec).threads
    pods = spec.size + pods_of(surge(spec.rollout), spec.size, round_up=True)
    needed = pods * threads
    if needed > accepted:
        yield (
            f"During a rollout, {pods} proxies of {threads} threads need {needed} connections to each server, but "
            f"servers of Memcached {name} accept {accepted}. Requests then get SERVER_ERROR. Lower spec.size, "
            "spec.rollout.maxSurge or spec.threads: connections of clients are closed once. Or raise its "
            f"spec.cache.maxConnections by {needed - accepted}. If this replaces its pods, their items are lost"
        )
