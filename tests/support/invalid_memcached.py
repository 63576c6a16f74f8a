"""Memcached objects that must be rejected, with the expected parts of each error message."""

from typing import Final

from support.invalid import Spec, Table, at, row
from support.invalid_extstore import INVALID as INVALID_EXTSTORE
from support.invalid_extstore import VALID as VALID_EXTSTORE
from support.invalid_monitoring import INVALID as INVALID_MONITORING
from support.invalid_monitoring import INVALID_OF_CACHES
from support.invalid_monitoring import VALID as VALID_MONITORING
from support.invalid_placing import INVALID_PLACING, INVALID_SLOTS
from support.invalid_placing import VALID as VALID_PLACING
from support.invalid_shared import INVALID as INVALID_SHARED
from support.invalid_shared import VALID as VALID_SHARED
from support.invalid_tls import AGENT_PORTS, SECRET
from support.invalid_tls import INVALID as INVALID_TLS
from support.invalid_tls import VALID as VALID_TLS

SIZE = "must be at least 1; to stop the cache, delete the Memcached object instead"
PORT = "must be between 1024 and 65535; memcached does not run as root"
IMAGE = "must be an image reference such as docker.io/library/memcached:1.6.45"
MEMORY = "must be a quantity from 2Mi (memcached does not start with less) to 1Pi; the default is 64Mi"
LIMIT = "must be at least 126Mi for spec.cache.memory of 64Mi"
DERIVED = "must be at least 53Mi, because spec.cache.memory is derived from it"
RAISE = "raise this limit or lower spec.cache.memory"
STABLE = "must not be true without spec.identity Stable"

OPTIONS_OF_FIELDS = [
    *("--threads=2", "--threads", "--thr=2", "-t", "-t8", "-t 8", "--port=1", "-l 0.0.0.0", "-U 0", "-m 64", "-I2m"),
    *("--conn-limit=9", "-c9", "-M", "-vt 2"),
]
FIELDS_OF_OPTIONS = (
    *("must not set --threads; use spec.cache.threads", "use spec.containerPort", "use spec.cache.memory"),
    *("must not set --listen; use spec.containerPort", "serves TCP only, on spec.containerPort"),
    *("use spec.cache.maxItemSize", "use spec.cache.maxConnections", "use spec.cache.evictions: false"),
    "use spec.cache.verbosity",
)
NEED_AGENT: Final[tuple[Spec, ...]] = ({"cache": {"warmRestart": True}}, {"rollout": {"warmUp": {}}})
MOST: Final[Spec] = {"maxConnections": 65536, "threads": 64}
HASH_TABLE: Final[Spec] = {"extraArgs": ["-o modern", "-o hashpower=24"]}

RULES: Final[Table] = (
    *(*INVALID_PLACING, *INVALID_SLOTS, *INVALID_SHARED, *INVALID_MONITORING, *INVALID_OF_CACHES, *INVALID_TLS),
    *INVALID_EXTSTORE,
    at("scaling.warm", {"duration": "30m"}, "must not be set without spec.identity Stable"),
    *(
        at("scaling.warm.duration", time, "must be a time in hours", "at most 168h", given={"identity": "Stable"})
        for time in ("0", "0m", "1d", "30", "1h30", "169h", "168h1m", "10081m", "604801s", "-5m", "1.5h")
    ),
    at("size", 0, SIZE),
    at("containerPort", 80, PORT, given={"size": None}),
    at("containerPort", 1023, PORT, "use 11211"),
    at("containerPort", 65536, PORT),
    *(
        at("resources.limits[memory]", limit, *message, given={"cache": cache} if cache else {})
        for limit, cache, *message in (
            ("125Mi", {"memory": "64Mi"}, LIMIT, RAISE),
            ("125Mi", {"memory": 67108864}, "126Mi for spec.cache.memory of 67108864, 1024", RAISE),
            (32000000, {"memory": "64Mi"}, LIMIT, RAISE),
            ("52Mi", {}, DERIVED, "with spec.cache.memory set, a lower limit can be enough"),
            ("130Mi", {"memory": "73Mi"}, "must be at least 131Mi for spec.cache.memory of 73Mi", RAISE),
            ("631Mi", {"memory": "64Mi", **MOST}, "at least 638Mi for", "65536 connections and 64 threads", RAISE),
            ("557Mi", {"maxConnections": 65536}, "must be at least 663Mi, because spec.cache.memory is derived"),
            ("2467Mi", {"maxItemSize": "1Gi"}, "must be at least 2846Mi, because spec.cache.memory is derived"),
            ("253Mi", {"memory": "64Mi", **HASH_TABLE}, "at least 254Mi for", "4 threads, with -o hashpower in", RAISE),
            (
                "192Mi",
                {"extraArgs": ["-o hashpower=24"]},
                "must be at least 193Mi, because spec.cache.memory is derived",
            ),
        )
    ),
    at("cache.maxItemSize", "1100Ki", "must be a multiple of 512Ki"),
    row(
        {"cache": {"memory": "3Mi", "maxItemSize": "2Mi"}},
        *("spec.cache.maxItemSize", "must be at most half of spec.cache.memory"),
    ),
    at("cache.maxConnections", 329, "must be at least 330 for 64 threads", "lower spec.cache.threads", threads=64),
    at("cache.threads", 65, "between 1 and 64"),
    at("cache.maxConnections", 65537, "between 15 and 65536"),
    at("cache.verbosity", 3, "between 0 and 2"),
    row(
        {"cache": {"extraArgs": OPTIONS_OF_FIELDS}},
        *(f"spec.cache.extraArgs[{index}]" for index in range(len(OPTIONS_OF_FIELDS))),
        *FIELDS_OF_OPTIONS,
    ),
    at("cache.extraArgs[0]", "--thread-count=2", "must be a supported option", "--disable-cas, "),
    *(
        row({"cache": {"extraArgs": ["-o modern", item]}}, "spec.cache.extraArgs[1]", "must be")
        for item in (" --disable-cas", "-o modern\n", "")
    ),
    row(
        {"cache": {"extraArgs": ["-o hashpower=16", "-o hashpower=17"]}},
        *("spec.cache.extraArgs", "must not repeat an option of an earlier item"),
    ),
    at("image", "no such image", IMAGE, "omit the field on create"),
    at("cache.memory", "1Mi", MEMORY),
    at("cache.memory", 2**21 - 1, MEMORY),
    at("cache.memory", 2**50 + 1, MEMORY),
    at("imagePullSecrets[0].name", "Not_A_Name", SECRET),
    row({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "spec.imagePullSecrets", "must be unique"),
    row({"cache": {"warmRestart": True}}, "spec.cache.warmRestart", STABLE, "remove it"),
    row({"identity": "Pooled", "cache": {"warmRestart": True}}, "spec.cache.warmRestart", STABLE, "remove it"),
    row(
        {"identity": "Stable", "cache": {"warmRestart": True, "memory": "65535Ki"}},
        *("spec.cache.memory", "must be at least 64Mi with spec.cache.warmRestart", "raise it"),
    ),
    at(
        *("resources.limits[memory]", "125Mi", "must be at least 126Mi", "less than 64Mi or twice"),
        given={"identity": "Stable", "cache": {"warmRestart": True}},
    ),
    *(
        row({"identity": "Stable", "containerPort": 9150, **needs_agent}, "spec.containerPort", AGENT_PORTS)
        for needs_agent in NEED_AGENT
    ),
    row(
        {"size": 0, "containerPort": 80, "image": "no such image", "cache": {"memory": "1Mi"}},
        *("spec.size", SIZE, "spec.containerPort", PORT, "spec.image", IMAGE, "spec.cache.memory", MEMORY),
    ),
)
"""Violations of our own rules."""

TYPES: Final[Table] = (
    row({"size": "three"}, "spec.size", "must be of type integer"),
    row({"size": 1.5}, "spec.size", "must be of type integer"),
    at("cache.memory", "lots", MEMORY),
    row({"image": 1}, "spec.image", "must be of type string"),
    at("resources", [], "must be of type object"),
    at("imagePullPolicy", "Sometimes", "Always"),
    row({"replicas": 3}, 'unknown field "spec.replicas"'),
    row({"cache": {"size": "1Gi"}}, 'unknown field "spec.cache.size"'),
)
"""Violations of the schema, with the API server's own messages, and of types that only CEL checks there."""

VALID: dict[str, Spec] = {
    **VALID_TLS,
    **VALID_SHARED,
    **VALID_PLACING,
    **VALID_MONITORING,
    **VALID_EXTSTORE,
    "nothing": {},
    "the highest size and the lowest port": {"size": 2**31 - 1, "containerPort": 1024},
    "the highest port": {"containerPort": 65535},
    "an image with a digest, and a Secret for it": {
        "image": f"h:5000/a/b:1@sha256:{'a' * 64}",
        "imagePullPolicy": "Never",
        "imagePullSecrets": [{"name": "a.b"}],
    },
    "the smallest memory in bytes": {"cache": {"memory": 2097152}},
    "the largest memory": {"cache": {"memory": "1Pi"}},
    "memory with a fraction of a byte": {"cache": {"memory": "2500000.5"}},
    "the fewest connections for 4 threads": {"cache": {"maxConnections": 30}},
    **{
        f"option {item}": {"cache": {"extraArgs": [item]}}
        for item in (
            *("--disable-cas", "--listen-backlog=4096", "--slab-growth-factor=1.25", "--protocol=auto"),
            *("-o idle_timeout=60", "-o hot_lru_pct=40", "-o warm_max_factor=9.99", "-o hashpower=30"),
        )
    },
    "a limit with room for the hash table": {
        "cache": {"memory": "64Mi", "extraArgs": ["-o hashpower=24"]},
        "resources": {"limits": {"memory": "254Mi"}},
    },
    "limits": {"resources": {"limits": {"memory": "95Mi", "cpu": 1}}},
    "a limit in bytes": {"resources": {"limits": {"memory": "98985575"}}},
    "requests": {"resources": {"requests": {"memory": "2Gi", "example.com/device": 1, "hugepages-2Mi": "2Mi"}}},
    "a request that equals its limit": {"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "0.5"}}},
}
"""Valid specs that are close to a rule."""

NAME = "must be a DNS-1035 label of at most 52 characters"
NAMES = {"too long": "a" * 53, "leading digit": "1cache", "with a dot": "my.cache"}
"""Names that are invalid for a Service, or too long for the names of pods."""
