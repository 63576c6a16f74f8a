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

from faults.limits_metadata import inherited, mostly, random_metadata
from memcached_api.kind import Kind
from memcached_api.memcached.memory import (
    FIRST_NEED,
    Settings,
    exact_limit_for,
    exact_minimum,
    minimum_connections,
    needed,
)
from memcached_api.quantity import parse_quantity
from memcached_operator.kube.resource import Object
from support.placing_edges import CIDRS, EDGES, TOLERATIONS
from support.placing_edges import KEYS as LABEL_KEYS

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
    *("-o hashpower=17", "-o hashpower=30", "-o hot_lru_pct=40", "-o warm_max_factor=9.99", "-o idle_timeout=60"),
)
DENIED_ARGS = ("-o hashpower=31", "--threads=2", "--conn-limit=9", "-vt", "-o idle_timeout=59", "-h", "word", "")
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
    return {
        **_insight(rng),
        "cache": {"maxConnections": connections, **({} if threads is None else {"threads": threads})},
    }


def _insight(rng: Random) -> Object:
    return mostly(
        rng, {}, {"monitoring": {"insight": {}}}, {"monitoring": {"insight": {"enabled": rng.random() < 0.5}}}
    )


def _extra_args(rng: Random) -> Object:
    """Accepted items, and in most lists one that is denied, or that differs from an accepted one a little."""
    items = rng.sample(ACCEPTED_ARGS, rng.randint(0, 3))
    item = rng.choice(ACCEPTED_ARGS)
    spaces, parts = (f"{item} ", f" {item}", f"{item}\n"), (item[1:], item[:-1], item.upper())
    changed = (*spaces, *parts, f"{item}0", f"{item}=1", item, f"-o {item}")
    items += rng.choice(([], [rng.choice(DENIED_ARGS)], [rng.choice(changed)], [rng.choice(changed)]))
    return {**_insight(rng), "cache": {"extraArgs": items}}


def _cache(rng: Random) -> Object:
    return {"cache": {"memory": rng.choice((_amount(rng, 2**21), _amount(rng, 2**21 - 1), "1Pi", 2**50 + 1))}}


def _placing(rng: Random) -> Object:
    return rng.choice((_edge_tolerations, _edge, _edge, _edge, _cidr, _labels))(rng)


def _edge_tolerations(rng: Random) -> Object:
    return {"podTemplate": {"spec": {"tolerations": [each for each, _ in rng.choices(TOLERATIONS, k=2)]}}}


def _edge(rng: Random) -> Object:
    return rng.choice(list(EDGES.values()))[0]


def _cidr(rng: Random) -> Object:
    return _clients(rng, [{"ipBlock": {"cidr": _near(rng, rng.choice(CIDRS)[0])}}])


def _clients(rng: Random, peers: list[Object]) -> Object:
    """These clients, of the cache or of its metrics, mostly with metrics."""
    monitoring = mostly(rng, {"monitoring": {}}, {"monitoring": {"enabled": False}}, {})
    return {"networkPolicy": {rng.choice(("from", "metricsFrom")): peers}, **monitoring}


def _labels(rng: Random) -> Object:
    metadata = {rng.choice(("labels", "annotations")): {_near(rng, rng.choice(LABEL_KEYS)[0]): _near(rng, "a.b")}}
    sections = {"service": metadata}, {"podTemplate": {"metadata": metadata}}, {"inheritedMetadata": metadata}
    return rng.choice(sections)


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
            "nodePort": rng.choice((None, None, None, None, 0, 1, 65535, 65536)),
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


def _many(item: Any, limit: int) -> list[list[Any]]:
    """Lists of an item that are as long as allowed, and longer."""
    return [[item] * limit, [item] * (limit + 1)]


def _pod(rng: Random) -> Object:
    """One field of the pod spec."""
    part = rng.choice((_grace, _context, _names, _tolerations, _constraints, _affinity))
    return {"podTemplate": {"spec": part(rng)}}


def _grace(rng: Random) -> Object:
    return {"terminationGracePeriodSeconds": rng.choice((0, 9, 10, 86400, 86401))}


IDENTIFIERS = (-1, 0, 1, 2**31 - 1, 2**31)
PROFILES: tuple[Object, ...] = (
    *({}, {"type": "RuntimeDefault"}, {"type": "Unconfined"}),
    *({"type": "Localhost", "localhostProfile": "a" * size} for size in (0, 4096, 4097)),
)


def _context(rng: Random) -> Object:
    """A user, groups and a seccomp profile."""
    given: Object = {
        "runAsUser": rng.choice(IDENTIFIERS),
        "runAsGroup": rng.choice(IDENTIFIERS),
        "runAsNonRoot": rng.choice((True, False)),
        "supplementalGroups": rng.choice(([], [0, 2**31 - 1], [-1], *_many(1, 64))),
        "seccompProfile": rng.choice(PROFILES),
    }
    return {"securityContext": {name: given[name] for name in rng.sample(list(given), rng.choice((1, 1, 1, 0, 2)))}}


def _names(rng: Random) -> Object:
    """Names as long as allowed, and longer."""
    field = rng.choice(("priorityClassName", "serviceAccountName", "runtimeClassName"))
    names = {field: "a" * rng.choice((0, 253, 254))}
    return rng.choice((names, {"nodeSelector": {"a" * 317: "a" * rng.choice((0, 63, 64))}}))


def _tolerations(rng: Random) -> Object:
    item: Object = {
        "key": "a" * mostly(rng, 1, 0, 317, 318),
        "operator": mostly(rng, "Exists", "Equal", "", "In"),
        "tolerationSeconds": rng.choice((-(2**53), 1 - 2**53, 0, 2**53 - 1, 2**53)),
    }
    return {"tolerations": mostly(rng, [item], [item, {}], *_many({}, 64))}


def _constraints(rng: Random) -> Object:
    """Constraints that are equal in both parts of their key, in one or in none."""

    def constraint(key: str) -> Object:
        policy = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
        return {"maxSkew": rng.choice((1, 2)), "topologyKey": key, "whenUnsatisfiable": policy}

    keys = rng.choice((["a", "b"], ["a", "a"], ["a", "A"], ["a" * 317], ["a" * 318], [f"{n}" for n in range(15)]))
    found = [constraint(key) for key in (*keys, *rng.choice(((), ("c",), ("c", "d"))))]
    changes = ({"maxSkew": 2**31 - 1}, {"maxSkew": 0}, {"minDomains": 0}, {"minDomains": 1})
    found[0] |= mostly(rng, {}, *changes)
    return {"topologySpreadConstraints": found}


def _affinity(rng: Random) -> Object:
    """A preferred term with a weight and a requirement, of nodes or of pods."""
    weight, key = rng.choice((0, 1, 100, 101)), "a" * mostly(rng, 1, 317, 318)
    requirement = {"key": key, "operator": mostly(rng, "In", "Exists", "Gt", "in")}
    requirement |= {"values": mostly(rng, [], ["a" * 63], ["a" * 64], ["a" * 253], ["a" * 254], *_many("a", 64))}
    expressions = {"matchExpressions": [requirement]}
    pods = {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": expressions}}
    nodes = {"weight": weight, "preference": expressions}
    kind, term = rng.choice((("nodeAffinity", nodes), ("podAffinity", pods), ("podAntiAffinity", pods)))
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


AMOUNTS = (
    *(-1, 0, 0, 1, 2**31 - 1, 2**31, "0%", "0%", "1%", "99%", "100%", "101%", "999%", "1000%"),
    *("00%", "01%", "1", "0", "%", "", "-1%", "1%%", " 1%", "1%\n", "1.5%", "\u0661%"),
)
"""Numbers of pods and percentages. Each field has other limits."""


def _rollout(rng: Random) -> Object:
    """Both amounts, which must not be zero together, or only one."""
    one = {rng.choice(("maxUnavailable", "maxSurge")): rng.choice(AMOUNTS)}
    zeros = {"maxUnavailable": rng.choice((0, "0%", 1)), "maxSurge": rng.choice((0, "0%", "00%"))}
    return {"rollout": rng.choice((one, zeros))}


TIMES = (
    *("2026-11-22T10:00:00Z", "2026-12-31T23:59:59+23:59", "0000-01-01T00:00:00-00:00", "2026-02-31T10:00:00Z"),
    *("2026-13-22T10:00:00Z", "2026-00-22T10:00:00Z", "2026-11-32T10:00:00Z", "2026-11-00T10:00:00Z"),
    *("2026-11-22T24:00:00Z", "2026-11-22T10:60:00Z", "2026-11-22T10:00:60Z", "2026-11-22T10:00:00+24:00"),
    *("2026-11-22T10:00:00.1Z", "2026-11-22T10:00:00.123456789Z", "2026-11-22T10:00:00.1234567890Z"),
    *("2026-11-22T10:00:00.Z", "2026-11-22 10:00:00Z", "2026-11-22t10:00:00z", "2026-11-22T10:00:00", ""),
    *("2026-11-22T10:00:00Z\n", " 2026-11-22T10:00:00Z", "2026-11-22T10:00:00.123456789+23:590", "0" * 40, "0" * 41),
)


def _restart(rng: Random) -> Object:
    """A time of a restart, and seconds for which a new pod must be ready."""
    seconds = {"minReadySeconds": rng.choice((-1, 0, 86400, 86401))}
    return {"rollout": rng.choice((seconds, {"restartedAt": rng.choice(TIMES)}))}


def _budget(rng: Random) -> Object:
    enabled = rng.choice(({}, {"enabled": True}, {"enabled": False}))
    return {"podDisruptionBudget": {**enabled, "maxUnavailable": rng.choice(AMOUNTS)}}


SELECTORS: tuple[Object, ...] = (
    {},
    {"matchLabels": {"a": "b"}},
    {"matchLabels": {"a": "a" * 64}},
    *({"matchExpressions": found} for found in _many({"key": "a", "operator": "Exists"}, 64)),
)
BLOCKS: tuple[Object, ...] = (
    {"cidr": "192.0.2.0/24"},
    {},
    *({"cidr": "a" * size} for size in (0, 64, 65)),
    *({"cidr": "192.0.2.0/24", "except": found} for found in ([], ["a" * 64], ["a" * 65], *_many("a", 64))),
)


def _peers(rng: Random) -> Object:
    """Peers with each combination of their fields, and lists as long as allowed, or empty."""
    fields: Object = {
        "podSelector": mostly(rng, *SELECTORS),
        "namespaceSelector": mostly(rng, *SELECTORS),
        "ipBlock": mostly(rng, *BLOCKS),
    }
    peer = {name: fields[name] for name in rng.sample(list(fields), rng.choice((0, 1, 1, 2, 2, 3)))}
    any_pod: Object = {"podSelector": {}}
    lists: tuple[list[Object], ...] = (
        [],
        [peer],
        [peer],
        [peer, any_pod],
        [any_pod, peer],
        [any_pod, peer],
        *_many(any_pod, 64),
        *_many(any_pod, 16),
    )
    return _clients(rng, rng.choice(lists))


def _monitoring(rng: Random) -> Object:
    """An interval, an agent, or a port close to those that are denied."""
    interval = _near(rng, rng.choice(("30s", "1m30s", "1h", "500ms", "0s", "1s1m")))
    monitoring = rng.choice(({}, {"enabled": True}, {"enabled": False}, {"podMonitor": {"interval": interval}}))
    port = rng.choice((9149, 9150, 9151, 9152))
    agent: Object = {"resources": {"limits": {"memory": rng.choice(("48Mi", "-1"))}, "requests": {"memory": "47Mi"}}}
    return {"monitoring": monitoring, **rng.choice(({}, {"containerPort": port}, {"agent": agent}))}


COMMON: tuple[Part, ...] = (_one_of("image", *IMAGES), _one_of("size", 0, 1, 2**31 - 1, 2**31))
PARTS: dict[str, tuple[Part, ...]] = {
    "memcacheds": (
        *COMMON,
        *(_memory_limit, _memory_limit, _derived_memory, _cache, _item_size, _connections, _extra_args, _extra_args),
        *(_placing, _placing, _placing),
        *(_monitoring, _monitoring),
        _one_of("cache", *({"verbosity": value} for value in (-1, 0, 2, 3))),
        _one_of("containerPort", 1023, 1024, 65535, 65536),
        _one_of("imagePullSecrets", *SECRETS),
        *(random_metadata, random_metadata, _pod, _pod, _pod, _rollout, _restart, _budget, _peers),
    ),
    "appservices": (
        *(*COMMON, _environment, _environment, _ports, _ports, _named_targets, _unnamed_ports),
        *(inherited, inherited),
    ),
}
"""The fields of each kind, by its plural. A field that is listed twice is drawn twice as often."""


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
