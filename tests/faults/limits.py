"""Objects that are valid except for values at the limits of one rule, on both sides. Random values rarely come close.

Each value is drawn independently: hypothesis would vary few examples.
"""

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from itertools import combinations
from math import ceil
from random import Random
from typing import Any

from memcached_api.kinds import Kind
from memcached_api.memcached.memory import (
    FIRST_NEED,
    Settings,
    exact_limit_for,
    exact_minimum,
    minimum_connections,
    needed,
)
from memcached_api.quantity import parse
from memcached_operator.kube.resource import Object
from support.placing_edges import CIDRS, EDGES, KEYS, TOLERATIONS

Part = Callable[[Random], Object]
"""Draws fields of a spec."""
HEX = "0123456789abcdef" * 4
IMAGES = (
    *(HEX, HEX[:-1], f"{HEX}0", HEX.upper(), f"a/{HEX}", f"{HEX}:1"),
    *(f"a@sha256:{HEX}", f"a@sha256:{HEX[1:]}", "a" * 255),
)
SECRETS = ([{"name": "a.b"}], [{"name": "a_b"}], [{"name": "a"}, {"name": "a"}], [{"name": "A"}])
SOURCES: tuple[Object, ...] = (
    {"fieldRef": {"fieldPath": "metadata.name"}},
    {"secretKeyRef": {"name": "a", "key": "b"}},
    {"configMapKeyRef": {"name": "a", "key": "b"}},
    {"resourceFieldRef": {"resource": "limits.cpu"}},
)
ENV_NAMES = ("A", "B", ".", "..", "..a", ".a", "a..", "-", "0A", "A" * 253)
ACCEPTED_ARGS = (
    *("--disable-cas", "--listen-backlog=1000", "--slab-growth-factor=1.25", "--protocol=auto", "-o modern"),
    *("-o hashpower=17", "-o hashpower=18", "-o hot_lru_pct=40", "-o warm_max_factor=9.99", "-o temporary_ttl=300"),
)
DENIED_ARGS = ("-o hashpower=19", "--threads=2", "--conn-limit=9", "-vt", "-o idle_timeout=5", "-h", "word", "")
PORT_NAMES = ("tcp-80", "udp-80", "tcp-80-2", "http", "0-1", "a" * 15, "a" * 16)


def objects(kind: Kind[Any], number: int, count: int) -> list[Object]:
    """`count` objects; the same number gives the same objects."""
    rng = Random(number)  # noqa: S311 - not a secret
    return [
        {
            "apiVersion": f"{kind.group}/{rng.choice(kind.versions)}",
            "kind": kind.name,
            "metadata": {"name": "cache"},
            "spec": {"image": "a", **rng.choice(PARTS[kind.plural])(rng)},
        }
        for _ in range(count)
    ]


def _amount(rng: Random, number: Decimal | int) -> str | int:
    """The amount in one of several forms."""
    exact = Decimal(number).normalize()
    forms: list[str | int] = [f"{exact:f}", f"{exact * 1000:f}m", f"{exact * 10**6:f}u", f"{exact:f}e0"]
    if exact == int(exact):
        forms += [int(exact), f"+{int(exact)}."]
    return rng.choice(forms)


def _one_of(name: str, *values: Any) -> Part:
    return lambda rng: {name: rng.choice(values)}


CACHES = ("2Mi", "64Mi", "65.5Mi", "80Mi", "1Gi", "100M", "67108864.9", "2097152.4")


def _memory_limit(rng: Random) -> Object:
    """A memory limit close to the minimum of the cache and its settings, or without the overhead of its items."""
    cache = parse(rng.choice(CACHES))
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
    settings = Settings(rng.choice((1024, 1024, 30, 1025, 65536)), rng.choice((4, 4, 1, 3, 5, 64)))
    given: Object = {"maxConnections": settings.connections, "threads": settings.threads}
    return settings, {name: value for name, value in given.items() if value not in (1024, 4)}


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
    """Connections close to the minimum of the threads, and to the limits of both."""
    threads = rng.choice((None, 0, 1, 4, 64, 65))
    minimum = minimum_connections(threads or 4)
    connections = rng.choice((minimum - 1, minimum, minimum + 1, 14, 15, 65536, 65537))
    return {"cache": {"maxConnections": connections, **({} if threads is None else {"threads": threads})}}


def _extra_args(rng: Random) -> Object:
    """Accepted items, and in most lists one that is denied, or that differs from an accepted one a little."""
    items = rng.sample(ACCEPTED_ARGS, rng.randint(0, 3))
    item = rng.choice(ACCEPTED_ARGS)
    spaces, parts = (f"{item} ", f" {item}", f"{item}\n"), (item[1:], item[:-1], item.upper())
    changed = (*spaces, *parts, f"{item}0", f"{item}=1", item, f"-o {item}")
    items += rng.choice(([], [rng.choice(DENIED_ARGS)], [rng.choice(changed)], [rng.choice(changed)]))
    return {"cache": {"extraArgs": items}}


def _cache(rng: Random) -> Object:
    return {"cache": {"memory": rng.choice((_amount(rng, 2**21), _amount(rng, 2**21 - 1), "1Pi", 2**50 + 1))}}


def _placing(rng: Random) -> Object:
    return rng.choice((_tolerations, _edge, _edge, _cidr, _labels))(rng)


def _tolerations(rng: Random) -> Object:
    return {"podTemplate": {"spec": {"tolerations": [each for each, _ in rng.choices(TOLERATIONS, k=2)]}}}


def _edge(rng: Random) -> Object:
    return rng.choice(list(EDGES.values()))[0]


def _cidr(rng: Random) -> Object:
    return {"networkPolicy": {"from": [{"ipBlock": {"cidr": _near(rng, rng.choice(CIDRS)[0])}}]}}


def _labels(rng: Random) -> Object:
    metadata = {rng.choice(("labels", "annotations")): {_near(rng, rng.choice(KEYS)[0]): _near(rng, "a.b")}}
    return rng.choice(({"service": metadata}, {"podTemplate": {"metadata": metadata}}))


def _near(rng: Random, text: str) -> str:
    """The text, mostly with another character at one position, one more, or one less."""
    at = rng.randint(0, len(text))
    other = rng.choice(("", "", "0", "A", "-", "_", ".", ":", "/", "\n", "ä", "\u212a"))
    return rng.choice((text, text[:at] + other + text[at + rng.randint(0, 1) :]))


def _environment(rng: Random) -> Object:
    """Variables with names, values and sources at the limits."""
    sources: Object = {}
    for source in rng.choice([pair for size in (0, 1, 1, 2) for pair in combinations(SOURCES, size)]):
        sources |= source
    variable: Object = {"name": rng.choice(ENV_NAMES) if rng.random() < 0.5 else "A"}
    variable |= rng.choice(({}, {"value": ""}, {"value": "x"}))
    variable |= rng.choice(({}, {"valueFrom": sources}, {"valueFrom": sources}))
    return {"envs": [variable, *rng.choice(([], [], [{"name": "A"}], [{"name": "B", "value": "x"}]))]}


def _ports(rng: Random) -> Object:
    """Ports whose numbers, names, protocols and targets collide, or nearly so."""

    def port() -> Object:
        given = {
            "port": rng.choice((80, 80, 81)),
            "name": rng.choice((*PORT_NAMES, None)),
            "protocol": rng.choice(("TCP", "UDP", None)),
            "targetPort": rng.choice((None, None, None, 8080, 0, 65535, 65536, *PORT_NAMES[3:])),
            "nodePort": rng.choice((None, None, None, None, 29999, 30000, 32767, 32768)),
        }
        return {name: value for name, value in given.items() if value is not None}

    return {"ports": [port() for _ in range(rng.randint(1, 3))]}


def _named_targets(rng: Random) -> Object:
    """A port that refers to another one by its name, or to the same name of another protocol."""
    name, protocols = rng.choice(PORT_NAMES[3:]), ("TCP", "UDP")
    first = {"name": name, "port": 80, "protocol": rng.choice(protocols)}
    target = rng.choice((name, name, "http"))
    return {"ports": [first, {"name": "b", "port": 81, "protocol": rng.choice(protocols), "targetPort": target}]}


def _unnamed_ports(rng: Random) -> Object:
    """A port without a name, while others have the names that it would be given."""
    taken = rng.sample(PORT_NAMES[:3], rng.randint(0, 2))
    return {"ports": [{"port": 80}, *({"port": 90 + number, "name": name} for number, name in enumerate(taken))]}


COMMON: tuple[Part, ...] = (_one_of("image", *IMAGES), _one_of("size", 0, 1, 2**31 - 1, 2**31))
PARTS: dict[str, tuple[Part, ...]] = {
    "memcacheds": (
        *COMMON,
        *(_memory_limit, _memory_limit, _derived_memory, _cache, _item_size, _connections, _extra_args, _extra_args),
        _placing,
        _one_of("cache", *({"verbosity": value} for value in (-1, 0, 2, 3))),
        _one_of("containerPort", 1023, 1024, 65535, 65536),
        _one_of("imagePullSecrets", *SECRETS),
    ),
    "appservices": (*COMMON, _environment, _environment, _ports, _ports, _named_targets, _unnamed_ports),
}
"""The fields of each kind, by its plural. A field that is listed twice is drawn twice as often."""


def updates(number: int, count: int) -> list[tuple[Object, Object]]:
    """`count` specs of Memcached that release 0.1.0 accepted, each with a changed one; the same for the same number.

    Most of the memory limits are valid only because they are not changed.
    """
    rng = Random(number)  # noqa: S311 - not a secret
    return [(old, _changed(rng, old)) for old in (_first_release(rng) for _ in range(count))]


def _first_release(rng: Random) -> Object:
    """A spec whose memory limit meets the minimum of release 0.1.0; the explicit defaults do not change it."""
    cache = parse(rng.choice(CACHES))
    first, minimum = ceil(needed(FIRST_NEED, cache, Settings())), ceil(exact_minimum(cache))
    defaults: Object = rng.choice(({}, {}, {"maxConnections": 1024}, {"threads": 4}))
    limit = rng.choice((first, first, (first + minimum) // 2, minimum - 1, minimum))
    return {"image": "a", "cache": {"memory": _amount(rng, cache), **defaults}, **_limit(rng, limit)}


NEW_FIELDS: dict[str, tuple[Any, ...]] = {
    "maxConnections": (1024, 1024, 1000, 1023, 1025, 30, 65536),
    "threads": (4, 4, 1, 3, 5, 64),
    "maxItemSize": ("512Ki", "1Mi", "32Mi", "33Mi"),
    "evictions": (True, False),
    "verbosity": (0, 2),
    "extraArgs": ([], ["-o modern"], ["--threads=4"]),
}
"""Fields of `spec.cache` that release 0.1.0 did not have."""


def _changed(rng: Random, old: Object) -> Object:
    """The spec with one or two changes of `cache`, the memory limit, or other fields."""
    spec = deepcopy(old)
    for change in rng.choices((_change_setting, _change_setting, _change_amount, _change_other), k=rng.choice((1, 2))):
        change(rng, spec)
    return spec


def _change_setting(rng: Random, spec: Object) -> None:
    name = rng.choice(list(NEW_FIELDS))
    if spec["cache"].pop(name, None) is None:
        spec["cache"][name] = rng.choice(NEW_FIELDS[name])


def _change_amount(rng: Random, spec: Object) -> None:
    """Write the memory or its limit in another form, change it a little, or remove it."""
    parent = rng.choice((spec["cache"], spec["resources"]["limits"]))
    amount = parse(parent.pop("memory", "64Mi"))
    change = rng.choice((None, 0, 0, -1, 1, -(2**20), 2**24))
    if change is not None:
        parent["memory"] = _amount(rng, amount + change)


def _change_other(rng: Random, spec: Object) -> None:
    name, value = rng.choice((("size", 3), ("size", 0), ("containerPort", 12000), ("containerPort", 80)))
    spec[name] = value
    spec["resources"] |= rng.choice(({}, {"requests": {"cpu": "1"}}, {"requests": {"memory": "8Gi"}}))
