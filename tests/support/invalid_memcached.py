"""Memcached objects that must be rejected, with the expected parts of each error message."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from support.invalid_metadata import INVALID as INVALID_METADATA
from support.invalid_metadata import VALID as VALID_METADATA
from support.invalid_monitoring import INVALID as INVALID_MONITORING
from support.invalid_monitoring import VALID as VALID_MONITORING
from support.invalid_placing import INVALID_PLACING
from support.invalid_tls import INVALID as INVALID_TLS
from support.invalid_tls import VALID as VALID_TLS

Spec = dict[str, Any]
Table = Mapping[str, tuple[Spec, tuple[str, ...]]]


class InvalidObject(NamedTuple):
    """A spec that violates rules, and what the error must contain: field, value and remedy of each violation."""

    spec: Spec
    expected: tuple[str, ...]


def invalid_objects(table: Table) -> dict[str, InvalidObject]:
    """The rows of a table."""
    return {name: InvalidObject(*row) for name, row in table.items()}


SIZE = "must be at least 1; to stop the cache, delete the Memcached object instead"
PORT = "must be between 1024 and 65535; memcached does not run as root"
IMAGE = "must be an image reference such as docker.io/library/memcached:1.6.45"
MEMORY = "must be a quantity from 2Mi (memcached does not start with less) to 1Pi; the default is 64Mi"
LIMIT = "must be at least 126Mi for spec.cache.memory of 64Mi"
DERIVED = "must be at least 53Mi, because spec.cache.memory is derived from it"
RAISE = "raise this limit or lower spec.cache.memory"
RESOURCE = "must name one of cpu, memory, ephemeral-storage"
REQUEST = "request or raise the limit"

OPTIONS_OF_FIELDS = [
    *("--threads=2", "--threads", "--thr=2", "-t", "-t8", "-t 8", "--port=1", "-l 0.0.0.0", "-U 0", "-m 64", "-I2m"),
    *("--conn-limit=9", "-c9", "-M", "-vt 2"),
]
FIELDS_OF_OPTIONS = (
    "must not set --threads; use spec.cache.threads",
    "use spec.containerPort",
    "must not set --listen; use spec.containerPort",
    "serves TCP only, on spec.containerPort",
    "use spec.cache.memory",
    "use spec.cache.maxItemSize",
    "use spec.cache.maxConnections",
    "use spec.cache.evictions: false",
    "use spec.cache.verbosity",
)

_RULES: Table = {
    **INVALID_PLACING,
    **INVALID_METADATA,
    **INVALID_MONITORING,
    **INVALID_TLS,
    "size 0": ({"size": 0}, ("spec.size", "0", SIZE)),
    "size null and port 80": ({"size": None, "containerPort": 80}, ("spec.containerPort", "80", PORT)),
    "port 1023": ({"containerPort": 1023}, ("spec.containerPort", "1023", PORT, "use 11211")),
    "port 65536": ({"containerPort": 65536}, ("spec.containerPort", "65536", PORT)),
    "memory limit below the minimum": (
        {"cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": "125Mi"}}},
        ("spec.resources.limits", "memory", "125Mi", LIMIT, RAISE),
    ),
    "cache memory in bytes": (
        {"cache": {"memory": 67108864}, "resources": {"limits": {"memory": "125Mi"}}},
        ("spec.resources.limits", "memory", "125Mi", "126Mi for spec.cache.memory of 67108864, 1024", RAISE),
    ),
    "memory limit in bytes": (
        {"cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": 32000000}}},
        ("spec.resources.limits", "memory", "32000000", LIMIT, RAISE),
    ),
    "memory limit without room for a cache": (
        {"resources": {"limits": {"memory": "52Mi"}}},
        ("spec.resources.limits", "memory", "52Mi", DERIVED, "with spec.cache.memory set, a lower limit can be enough"),
    ),
    "memory limit below the minimum, which is the derived limit": (
        {"cache": {"memory": "73Mi"}, "resources": {"limits": {"memory": "130Mi"}}},
        ("spec.resources.limits", "memory", "130Mi", "must be at least 131Mi for spec.cache.memory of 73Mi", RAISE),
    ),
    "memory limit below the minimum of many connections and threads": (
        {
            "cache": {"memory": "64Mi", "maxConnections": 65536, "threads": 64},
            "resources": {"limits": {"memory": "631Mi"}},
        },
        ("spec.resources.limits", "memory", "631Mi", "at least 638Mi for", "65536 connections and 64 threads", RAISE),
    ),
    "memory limit without room for a cache beside many connections": (
        {"cache": {"maxConnections": 65536}, "resources": {"limits": {"memory": "557Mi"}}},
        ("spec.resources.limits", "memory", "557Mi", "must be at least 663Mi, because spec.cache.memory is derived"),
    ),
    "memory limit without room for a cache for a large item": (
        {"cache": {"maxItemSize": "1Gi"}, "resources": {"limits": {"memory": "2467Mi"}}},
        ("spec.resources.limits", "memory", "2467Mi", "must be at least 2846Mi, because spec.cache.memory is derived"),
    ),
    "memory limit without room for the hash table": (
        {
            "cache": {"memory": "64Mi", "extraArgs": ["-o modern", "-o hashpower=24"]},
            "resources": {"limits": {"memory": "253Mi"}},
        },
        ("spec.resources.limits", "memory", "253Mi", "at least 254Mi for", "4 threads, with -o hashpower in", RAISE),
    ),
    "memory limit without room for a cache beside the hash table": (
        {"cache": {"extraArgs": ["-o hashpower=24"]}, "resources": {"limits": {"memory": "192Mi"}}},
        ("spec.resources.limits", "memory", "192Mi", "must be at least 193Mi, because spec.cache.memory is derived"),
    ),
    "item size that is no multiple": (
        {"cache": {"maxItemSize": "1100Ki"}},
        ("spec.cache.maxItemSize", "1100Ki", "must be a multiple of 512Ki"),
    ),
    "item size above half of the memory": (
        {"cache": {"memory": "3Mi", "maxItemSize": "2Mi"}},
        ("spec.cache.maxItemSize", "must be at most half of spec.cache.memory"),
    ),
    "connections below the minimum of the threads": (
        {"cache": {"threads": 64, "maxConnections": 329}},
        ("spec.cache.maxConnections", "329", "must be at least 330 for 64 threads", "lower spec.cache.threads"),
    ),
    "too many threads": ({"cache": {"threads": 65}}, ("spec.cache.threads", "65", "between 1 and 64")),
    "too many connections": (
        {"cache": {"maxConnections": 65537}},
        ("spec.cache.maxConnections", "65537", "between 15 and 65536"),
    ),
    "verbosity 3": ({"cache": {"verbosity": 3}}, ("spec.cache.verbosity", "3", "between 0 and 2")),
    "options that fields set": (
        {"cache": {"extraArgs": OPTIONS_OF_FIELDS}},
        (*(f"spec.cache.extraArgs[{index}]" for index in range(len(OPTIONS_OF_FIELDS))), *FIELDS_OF_OPTIONS),
    ),
    "unknown option": (
        {"cache": {"extraArgs": ["--thread-count=2"]}},
        ("spec.cache.extraArgs[0]", "--thread-count=2", "must be a supported option", "--disable-cas, "),
    ),
    "option twice": (
        {"cache": {"extraArgs": ["-o hashpower=16", "-o hashpower=17"]}},
        ("spec.cache.extraArgs", "must not repeat an option of an earlier item"),
    ),
    "image with spaces": (
        {"image": "no such image"},
        ("spec.image", "no such image", IMAGE, "omit the field on create"),
    ),
    "cache memory too small": ({"cache": {"memory": "1Mi"}}, ("spec.cache.memory", "1Mi", MEMORY)),
    "unknown resource": ({"resources": {"limits": {"memroy": "1Gi"}}}, ("spec.resources.limits", "memroy", RESOURCE)),
    "unknown requested resource": (
        {"resources": {"requests": {"memroy": "1Gi"}}},
        ("spec.resources.requests", "memroy", RESOURCE),
    ),
    "request above its limit": (
        {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
        ("spec.resources.requests", "cpu", "750m", "250m", REQUEST),
    ),
    "negative request": (
        {"resources": {"requests": {"cpu": "-1"}}},
        ("spec.resources.requests", "cpu", "-1", "must be at least 0"),
    ),
    "negative limit": (
        {"resources": {"limits": {"cpu": "-1"}}},
        ("spec.resources.limits", "cpu", "-1", "must be at least 0"),
    ),
    "invalid secret name": (
        {"imagePullSecrets": [{"name": "Not_A_Name"}]},
        ("spec.imagePullSecrets[0].name", "Not_A_Name", "must be the name of a Secret in this namespace"),
    ),
    "slots: Services for too many": (
        {"identity": "Stable", "size": 101, "service": {"perPod": True}},
        ("spec.size", "must be at most 100 with spec.service.perPod true"),
    ),
    "warm restart without slots": (
        {"cache": {"warmRestart": True}},
        ("spec.cache.warmRestart", "must not be true without spec.identity Stable", "remove it"),
    ),
    "warm restart of a pooled cache": (
        {"identity": "Pooled", "cache": {"warmRestart": True}},
        ("spec.cache.warmRestart", "must not be true without spec.identity Stable", "remove it"),
    ),
    "warm restart with too little memory": (
        {"identity": "Stable", "cache": {"warmRestart": True, "memory": "65535Ki"}},
        ("spec.cache.memory", "must be at least 64Mi with spec.cache.warmRestart", "raise it"),
    ),
    "warm restart with a limit for too little memory": (
        {"identity": "Stable", "cache": {"warmRestart": True}, "resources": {"limits": {"memory": "125Mi"}}},
        ("spec.resources.limits", "memory", "125Mi", "must be at least 126Mi", "less than 64Mi or twice"),
    ),
    "port of the metrics with a warm restart": (
        {"identity": "Stable", "cache": {"warmRestart": True}, "containerPort": 9150},
        ("spec.containerPort", "must not be 9150 or 9151 with spec.monitoring"),
    ),
    "port of the metrics with a warm gate": (
        {"identity": "Stable", "rollout": {"warmUp": {}}, "containerPort": 9150},
        ("spec.containerPort", "must not be 9150 or 9151 with spec.monitoring"),
    ),
    "several violations": (
        {"size": 0, "containerPort": 80, "image": "no such image", "cache": {"memory": "1Mi"}},
        ("spec.size", SIZE, "spec.containerPort", PORT, "spec.image", IMAGE, "spec.cache.memory", MEMORY),
    ),
}
"""Violations of our own rules."""

_TYPES: Table = {
    "size three": ({"size": "three"}, ("spec.size", "must be of type integer")),
    "size 1.5": ({"size": 1.5}, ("spec.size", "must be of type integer")),
    "cache memory that is not a quantity": ({"cache": {"memory": "lots"}}, ("spec.cache.memory", "lots", MEMORY)),
    "number as image": ({"image": 1}, ("spec.image", "must be of type string")),
    "list as resources": ({"resources": []}, ("spec.resources", "must be of type object")),
    "unknown pull policy": ({"imagePullPolicy": "Sometimes"}, ("spec.imagePullPolicy", "Sometimes", "Always")),
    "unknown field": ({"replicas": 3}, ('unknown field "spec.replicas"',)),
    "unknown nested field": ({"cache": {"size": "1Gi"}}, ('unknown field "spec.cache.size"',)),
}
"""Violations of the schema, with the API server's own messages, and of types that only CEL checks there."""

RULES = invalid_objects(_RULES)
TYPES = invalid_objects(_TYPES)

VALID: dict[str, Spec] = {
    **VALID_TLS,
    **VALID_METADATA,
    **VALID_MONITORING,
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
    "the largest hash table": {"cache": {"extraArgs": ["-o hashpower=30"]}},
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
