"""Parts of specs at the limits of each rule, on both sides. Random values rarely come close to them."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from memcached_api.memcached.memory import cache_bytes, minimum_limit
from memcached_operator.kube.resource import Object

Parts = st.SearchStrategy[Object]
HEX = "0123456789abcdef" * 4


def _one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _amounts(number: int) -> list[str | int]:
    """The same amount in several forms."""
    return [number, str(number), f"{number * 1000}m", f"{number * 10**6}u", f"{number}e0", f"+{number}."]


@st.composite
def _memory_limit(draw: st.DrawFn) -> Object:
    """A memory limit close to the minimum of the cache, or above what items need without their overhead."""
    cache = cache_bytes(draw(_one_of("2Mi", "64Mi", "65.5Mi", "1Gi", "100M")))
    minimum = minimum_limit(cache)
    limit = draw(_one_of(minimum - 1, minimum, minimum + 1, minimum - cache // 20, minimum - 2**20))
    return {
        "cache": {"memory": draw(st.sampled_from(_amounts(cache)))},
        "resources": {"limits": {"memory": draw(st.sampled_from(_amounts(limit)))}},
    }


IMAGES: Parts = st.fixed_dictionaries(
    {
        "image": _one_of(
            HEX,
            HEX[:-1],
            f"{HEX}0",
            HEX.upper(),
            f"a/{HEX}",
            f"{HEX}:1",
            f"a@sha256:{HEX}",
            f"a@sha256:{HEX[1:]}",
            "a" * 255,
        )
    }
)
SIZES: Parts = st.fixed_dictionaries({"size": _one_of(0, 1, 2**31 - 1, 2**31)})
PORT_NUMBERS: Parts = st.fixed_dictionaries({"containerPort": _one_of(1023, 1024, 65535, 65536)})
SECRETS: Parts = st.fixed_dictionaries(
    {"imagePullSecrets": _one_of([{"name": "a.b"}], [{"name": "a_b"}], [{"name": "a"}, {"name": "a"}], [{"name": "A"}])}
)
CACHES: Parts = st.fixed_dictionaries(
    {"cache": st.fixed_dictionaries({"memory": _one_of(*_amounts(2**21), *_amounts(2**21 - 1), "1Pi", 2**50 + 1)})}
)
SOURCES = (
    {"fieldRef": {"fieldPath": "metadata.name"}},
    {"secretKeyRef": {"name": "a", "key": "b"}},
    {"configMapKeyRef": {"name": "a", "key": "b"}},
    {"resourceFieldRef": {"resource": "limits.cpu"}},
)


@st.composite
def _environment(draw: st.DrawFn) -> Object:
    """Variables with names, values and sources at the limits."""
    sources: Object = {}
    for source in draw(st.lists(_one_of(*SOURCES), max_size=2, unique_by=str)):
        sources |= source
    value = draw(_one_of({}, {"value": ""}, {"value": "x"}))
    names = _one_of("A", ".", "..", "..a", ".a", "a..", "-", "0A", "A" * 253)
    others = draw(_one_of([], [], [{"name": "A"}], [{"name": "B", "value": "x"}]))
    given = draw(_one_of({}, {"valueFrom": sources}))
    return {"envs": [{"name": draw(names), **value, **given}, *others]}


@st.composite
def _ports(draw: st.DrawFn) -> Object:
    """Two or three ports whose numbers, names, protocols and targets collide, or nearly so."""
    names = _one_of("tcp-80", "udp-80", "tcp-80-2", "http", "0-1", "a" * 15, "a" * 16, None)
    targets = _one_of("http", "tcp-80", "0-1", "a" * 15, 8080, 0, 65536, None)

    def port(draw: st.DrawFn) -> Object:
        given: Mapping[str, Any] = {
            "port": draw(_one_of(80, 80, 81)),
            "name": draw(names),
            "protocol": draw(_one_of("TCP", "UDP", None)),
            "targetPort": draw(targets),
            "nodePort": draw(_one_of(None, None, 29999, 30000, 32767, 32768)),
        }
        return {name: value for name, value in given.items() if value is not None}

    return {"ports": [port(draw) for _ in range(draw(st.integers(1, 3)))]}


@st.composite
def _named_ports(draw: st.DrawFn) -> Object:
    """A port that refers to another one by its name, or to the same name of another protocol."""
    names, protocols = _one_of("http", "0-1", "a" * 15), _one_of("TCP", "UDP")
    name = draw(names)
    return {
        "ports": [
            {"name": name, "port": 80, "protocol": draw(protocols)},
            {"name": "second", "port": 81, "protocol": draw(protocols), "targetPort": draw(_one_of(name, "http"))},
        ]
    }


@st.composite
def _unnamed_ports(draw: st.DrawFn) -> Object:
    """Ports of which some have no name, while others have the names that these would be given."""
    taken = draw(st.lists(_one_of("tcp-80", "tcp-80-2", "udp-80"), max_size=2, unique=True))
    return {"ports": [{"port": 80}, *({"port": 90 + number, "name": name} for number, name in enumerate(taken))]}


PARTS: dict[str, Parts] = {
    "memcacheds": st.one_of(_memory_limit(), _memory_limit(), IMAGES, SIZES, PORT_NUMBERS, SECRETS, CACHES),
    "appservices": st.one_of(_environment(), _environment(), _ports(), _named_ports(), _unnamed_ports(), IMAGES, SIZES),
}
"""Parts of the specs of each kind, by its plural."""
