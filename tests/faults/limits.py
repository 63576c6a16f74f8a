"""Objects that are valid except for values at the limits of one rule, on both sides. Random values rarely come close.

Each value is drawn independently: hypothesis would vary few examples.
"""

from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

from memcached_api.kinds import Kind
from memcached_api.memcached.memory import cache_bytes, minimum_limit
from memcached_operator.kube.resource import Object

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


def _amount(rng: Random, number: int) -> str | int:
    """The amount in one of several forms."""
    return rng.choice((number, str(number), f"{number * 1000}m", f"{number * 10**6}u", f"{number}e0", f"+{number}."))


def _one_of(name: str, *values: Any) -> Part:
    return lambda rng: {name: rng.choice(values)}


def _memory_limit(rng: Random) -> Object:
    """A memory limit close to the minimum of the cache, or without the overhead of its items."""
    cache = cache_bytes(rng.choice(("2Mi", "64Mi", "65.5Mi", "1Gi", "100M")))
    minimum = minimum_limit(cache)
    limit = rng.choice((minimum - 1, minimum, minimum + 1, minimum - cache // 20, minimum - 2**20))
    return {"cache": {"memory": _amount(rng, cache)}, "resources": {"limits": {"memory": _amount(rng, limit)}}}


def _cache(rng: Random) -> Object:
    return {"cache": {"memory": rng.choice((_amount(rng, 2**21), _amount(rng, 2**21 - 1), "1Pi", 2**50 + 1))}}


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
        *(_memory_limit, _memory_limit, _cache),
        _one_of("containerPort", 1023, 1024, 65535, 65536),
        _one_of("imagePullSecrets", *SECRETS),
    ),
    "appservices": (*COMMON, _environment, _environment, _ports, _ports, _named_targets, _unnamed_ports),
}
"""The fields of each kind, by its plural. A field that is listed twice is drawn twice as often."""
