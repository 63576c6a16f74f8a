"""Objects at the limits of the rules, on both sides: near the rows of their tables, or at limits that are computed.

Random values rarely come close.
"""

from copy import deepcopy
from decimal import Decimal
from math import ceil
from random import Random
from typing import Any

from faults.rows import Draft, at_limits_of_schema, near_rows
from memcached_api.kind import Kind
from memcached_api.memcached.memory import (
    FIRST_NEED,
    Settings,
    exact_limit_for,
    exact_minimum,
    minimum_connections,
    needed,
)
from memcached_api.memcached.types import MEMCACHED
from memcached_api.quantity import parse_quantity
from memcached_operator.kube.resource import Object


def objects(kind: Kind[Any], number: int, count: int) -> list[Object]:
    """`count` objects. The same number gives the same objects, and the next one goes on with the next drafts."""
    rng = Random(number)  # noqa: S311 - not a secret
    drafts = _drafts(kind)
    return [
        {
            "apiVersion": f"{kind.group}/{rng.choice(kind.versions)}",
            "kind": kind.name,
            "metadata": {"name": "cache"},
            "spec": {"image": "a", **drafts[at % len(drafts)](rng)},
        }
        for at in range(number * count, (number + 1) * count)
    ]


def _drafts(kind: Kind[Any]) -> list[Draft]:
    """All drafts, in an order that is random, but always the same."""
    found = [*near_rows(kind), *at_limits_of_schema(kind), *(COMPUTED * 60 if kind is MEMCACHED else ())]
    Random(0).shuffle(found)  # noqa: S311 - not a secret
    return found


def _amount(rng: Random, number: Decimal | int) -> str | int:
    """The amount in one of several forms."""
    exact = Decimal(number).normalize()
    forms: list[str | int] = [f"{exact:f}", f"{exact * 1000:f}m", f"{exact * 10**6:f}u", f"{exact:f}e0"]
    if exact == int(exact):
        forms += [int(exact), f"+{int(exact)}."]
    return rng.choice(forms)


CACHES = ("2Mi", "64Mi", "65.5Mi", "80Mi", "1Gi", "100M", "67108864.9", "2097152.4")


def _memory_limit(rng: Random) -> Object:
    """A memory limit close to the minimum of the cache and its settings, or without the overhead of its items."""
    cache = parse_quantity(rng.choice(CACHES))
    settings, given = _settings(rng)
    minimum = exact_minimum(cache, settings)
    limit = rng.choice((*_around(minimum), minimum - cache // 20, minimum - 2**20))
    return {"cache": {"memory": _amount(rng, cache), **given}, **_limit(rng, limit)}


def _around(limit: Decimal) -> tuple[Decimal, ...]:
    """Amounts close to a limit. The limit itself only if it is whole: CEL rounds fractions that are not binary."""
    return (*(limit + Decimal(offset) for offset in ("-1", "-0.4", "0.4")), Decimal(ceil(limit)))


def _derived_memory(rng: Random) -> Object:
    """A memory limit close to the smallest from which a cache for the largest item is derived."""
    settings, given = _settings(rng)
    size = rng.choice((None, 2**19, 2**20, 2**21, 2**25))
    minimum = exact_limit_for(max(2**21, 2 * (size or 0)), settings)
    given |= {} if size is None else {"maxItemSize": _amount(rng, size)}
    return {"cache": given, **_limit(rng, rng.choice((*_around(minimum), minimum - 2**20)))}


def _settings(rng: Random) -> tuple[Settings, Object]:
    """Settings, and the fields of those that are not memcached's defaults."""
    connections, threads = rng.choice((1024, 1024, 30, 1025, 65536)), rng.choice((4, 4, 1, 3, 5, 64))
    settings = Settings(connections, threads, hashpower=rng.choice((16, 16, 17, 18, 24, 30)))
    given: Object = {"maxConnections": settings.connections, "threads": settings.threads}
    items = [] if settings.hashpower == 16 else ["--disable-cas", f"-o hashpower={settings.hashpower}"]
    return settings, {name: value for name, value in given.items() if value not in (1024, 4)} | (
        {"extraArgs": items} if items else {}
    )


def _limit(rng: Random, limit: Decimal | int) -> Object:
    return {"resources": {"limits": {"memory": _amount(rng, limit)}}}


def _item_size(rng: Random) -> Object:
    """An item size close to its own limits, or to half of the memory."""
    memory = rng.choice((None, 2**21, 2**22 - 1, 2**26, 2**31, 2**32))
    half = (memory or 2**26) // 2
    size = rng.choice(
        (2**19, 2**19 - 1, 2**19 + 1, half, half - 2**19, half + 2**19, 2**30, 2**30 + 2**19, 0, 1100 * 2**10)
    )
    given = {} if memory is None else {"memory": _amount(rng, memory)}
    return {"cache": {**given, "maxItemSize": _amount(rng, size)}}


def _connections(rng: Random) -> Object:
    """Connections close to the minimum of the threads, without and with insight, and to the limits of both."""
    threads = rng.choice((None, 0, 1, 4, 64, 65))
    minimum = minimum_connections(threads or 4)
    connections = rng.choice((minimum - 1, minimum, minimum + 1, minimum + 2, 14, 15, 65536, 65537))
    insight: Object = rng.choice(({}, {}, {"monitoring": {"insight": {}}}))
    return {
        **insight,
        "cache": {"maxConnections": connections, **({} if threads is None else {"threads": threads})},
    }


COMPUTED: tuple[Draft, ...] = (
    *(_memory_limit, _memory_limit, _derived_memory),
    *(_item_size, _connections),
)
"""What draws the fields of a Memcached at computed limits. One that is listed twice is drawn twice as often."""


def updates(number: int, count: int) -> list[tuple[Object, Object]]:
    """`count` specs of Memcached that earlier rules accepted, each with a changed one; the same for the same number.

    Most of the memory limits and clients of metrics are valid only because they are not changed.
    """
    rng = Random(number)  # noqa: S311 - not a secret
    return [(old, _changed(rng, old)) for old in (_first_release(rng) | _without_metrics(rng) for _ in range(count))]


def _first_release(rng: Random) -> Object:
    """A spec whose memory limit meets the minimum of release 0.1.0; the explicit defaults do not change it."""
    cache = parse_quantity(rng.choice(CACHES))
    first, minimum = ceil(needed(FIRST_NEED, cache, Settings())), ceil(exact_minimum(cache))
    defaults: Object = rng.choice(({}, {}, {"maxConnections": 1024}, {"threads": 4}))
    limit = rng.choice((first, first, (first + minimum) // 2, minimum - 1, minimum))
    return {"image": "a", "cache": {"memory": _amount(rng, cache), **defaults}, **_limit(rng, limit)}


METRICS_CLIENTS: tuple[Object, ...] = ({"podSelector": {}}, {"ipBlock": {"cidr": "192.0.2.0/24"}})


def _without_metrics(rng: Random) -> Object:
    """Clients of metrics without metrics, or nothing."""
    return rng.choice(({}, {}, {"networkPolicy": {"metricsFrom": [rng.choice(METRICS_CLIENTS)]}}))


NEW_FIELDS: dict[str, tuple[Any, ...]] = {
    "maxConnections": (1024, 1024, 1000, 1023, 1025, 30, 65536),
    "threads": (4, 4, 1, 3, 5, 64),
    "maxItemSize": ("512Ki", "1Mi", "32Mi", "33Mi"),
    "evictions": (True, False),
    "verbosity": (0, 2),
    "extraArgs": ([], ["-o modern"], ["-o hashpower=18"], ["--threads=4"]),
}
"""Fields of `spec.cache` that release 0.1.0 did not have."""


def _changed(rng: Random, old: Object) -> Object:
    """The spec with one or two changes of `cache`, the memory limit, or other fields."""
    spec = deepcopy(old)
    changes = (_change_setting, _change_setting, _change_amount, _change_other, _change_metrics)
    for change in rng.choices(changes, k=rng.choice((1, 2))):
        change(rng, spec)
    return spec


def _change_setting(rng: Random, spec: Object) -> None:
    name = rng.choice(list(NEW_FIELDS))
    if spec["cache"].pop(name, None) is None:
        spec["cache"][name] = rng.choice(NEW_FIELDS[name])


def _change_amount(rng: Random, spec: Object) -> None:
    """Write the memory or its limit in another form, change it a little, or remove it."""
    parent = rng.choice((spec["cache"], spec["resources"]["limits"]))
    amount = parse_quantity(parent.pop("memory", "64Mi"))
    change = rng.choice((None, 0, 0, -1, 1, -(2**20), 2**24))
    if change is not None:
        parent["memory"] = _amount(rng, amount + change)


def _change_metrics(rng: Random, spec: Object) -> None:
    """Enable metrics, or change their clients or others."""
    peers = [rng.choice(METRICS_CLIENTS)]
    policy = {**spec.get("networkPolicy", {}), rng.choice(("from", "metricsFrom")): peers}
    spec |= rng.choice(({"monitoring": {}}, {"networkPolicy": policy}))


def _change_other(rng: Random, spec: Object) -> None:
    name, value = rng.choice((("size", 3), ("size", 0), ("containerPort", 12000), ("containerPort", 80)))
    spec[name] = value
    spec["resources"] |= rng.choice(({}, {"requests": {"cpu": "1"}}, {"requests": {"memory": "8Gi"}}))
