"""MemcachedProxy objects that must be rejected, with the expected parts of each error message."""

from typing import Any, Final

from support.invalid import Spec, Table, at, row
from support.invalid_memcached import IMAGE
from support.invalid_monitoring import INVALID as INVALID_MONITORING
from support.invalid_placing import INVALID_PLACING
from support.invalid_placing import VALID as VALID_PLACING
from support.invalid_shared import INVALID as INVALID_SHARED
from support.invalid_shared import VALID as VALID_SHARED
from support.invalid_tls import CLIENT_CA, SECRET

SIZE = "must be at least 1; to stop the proxies, delete the MemcachedProxy object instead"
PORT = "must be between 1024 and 65535; memcached does not run as root"
NAME = "must be the name of a Memcached in this namespace"
RELEASE = "must be release 1.6.45 of memcached or later"
TIME = "must be a time from 10ms to 60s in ms or s, such as 500ms or 2s; the default is 500ms"
MEMORY = "raise this limit, or lower spec.maxConnections or spec.threads"
TLS: Final[Spec] = {"secretName": "front-tls"}
AGENT_PORTS = "must not be 9150 or 9151 with spec.monitoring or spec.tls"


def refers_to(name: str) -> dict[str, Any]:
    """A spec that names a Memcached."""
    return {"memcachedRef": {"name": name}}


_OLD_IMAGES = (
    *("memcached:1.6.44", "memcached:1.6.9-alpine", "docker.io/library/memcached:1.6.38", "library/memcached:1.5.22"),
    *("index.docker.io/memcached:1.6.10-bookworm", "docker.io/memcached:0.9.1"),
)
_NEW_IMAGES = (
    *("memcached:1.6.45", "memcached:1.6.100-alpine", "memcached:1.7.0", "memcached:2.0.0", "memcached:10.6.38"),
    *("memcached", "memcached:1.6", "memcached:1", "memcached:alpine", "memcached:1.6.38.1"),
    *(
        "ghcr.io/memcached:1.6.38",
        "example/memcached:1.6.38",
        "localhost/library/memcached:1.6.38",
        "memcached:1.6.38@sha256:" + "0" * 64,
    ),
)

RULES: Final[Table] = (
    *(*INVALID_PLACING, *INVALID_MONITORING, *INVALID_SHARED),
    at("tls.secretName", "A/b", SECRET),
    at("tls.clientCASecretName", "", SECRET, clientAuth="Require", **TLS),
    row({"tls": {**TLS, "clientCASecretName": "clients-ca"}}, *CLIENT_CA),
    at("port", 11210, "must not be 11210 with spec.tls", given={"tls": TLS}),
    at("port", 9150, AGENT_PORTS, given={"monitoring": {}}),
    at("port", 9151, AGENT_PORTS, given={"tls": TLS}),
    at("size", 0, SIZE),
    at("port", 80, PORT),
    at("port", 65536, PORT),
    at("memcachedRef.name", "cache", "must differ from metadata.name", "or create the MemcachedProxy with another"),
    at("memcachedRef.name", "Sessions", NAME),
    at("memcachedRef.name", "1st", NAME),
    at("memcachedRef.name", "shop/a", NAME),
    at("image", "no such image", IMAGE),
    *(at("image", image, RELEASE) for image in _OLD_IMAGES),
    row({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, "spec.imagePullSecrets", "must be unique"),
    at("imagePullSecrets[0].name", "A", "must be the name of a Secret"),
    at("threads", 0, "must be between 1 and 64; the default is 2"),
    at("threads", 65, "must be between 1 and 64"),
    at("maxConnections", 14, "must be between 15 and 65536; the default is 4096", given={"threads": 1}),
    at("maxConnections", 65537, "must be between 15 and 65536"),
    *(
        at("resources.limits[memory]", limit, f"must be at least {minimum} for {load}; {MEMORY}", given=given)
        for limit, given, minimum, load in (
            ("16Mi", {}, "64Mi", "2 threads and 4096 connections"),
            ("66338815", {}, "64Mi", "2 threads and 4096 connections"),
            ("201Mi", {"threads": 64, "maxConnections": 15}, "202Mi", "64 threads and 15 connections"),
            ("538Mi", {"maxConnections": 65536}, "544Mi", "2 threads and 65536 connections"),
            ("300Mi", {"tls": TLS}, "390Mi", "2 threads and 4096 connections with TLS"),
        )
    ),
    *(
        at(f"timeouts.{field}", text, TIME)
        for field in ("connect", "read")
        for text in ("9ms", "60001ms", "0s", "61s", "1m", "0.5s", "500", "05s", "1s ")
    ),
)
"""Violations of our own rules."""

TYPES: Final[Table] = (
    at("memcachedRef", None, "Required value"),
    row({"memcachedRef": {}}, "spec.memcachedRef.name", "Required value"),
    row({"memcachedRef": "sessions"}, "spec.memcachedRef", "must be of type object"),
    row({"size": "3"}, "spec.size", "must be of type integer"),
    row({"timeouts": {"read": 1}}, "spec.timeouts.read", "must be of type string"),
    at("service.trafficDistribution", "Local", "PreferClose", "PreferSameZone", "PreferSameNode"),
    row({"replicas": 3}, 'unknown field "spec.replicas"'),
    row({"memcachedRef": {"name": "a", "namespace": "b"}}, 'unknown field "spec.memcachedRef.namespace"'),
    row({"tls": {**TLS, "port": 11212}}, 'unknown field "spec.tls.port"'),
    row({"monitoring": {"rules": {}}}, 'unknown field "spec.monitoring.rules"'),
)
"""Violations of the schema, with the API server's own messages."""

VALID: dict[str, dict[str, Any]] = {
    **VALID_SHARED,
    **VALID_PLACING,
    "the longest name": refers_to("a" * 52),
    "the lowest values": {"size": 1, "port": 1024, "threads": 1, "maxConnections": 15},
    "the lowest timeouts": {"timeouts": {"connect": "10ms", "read": "1s"}},
    "the highest values": {"port": 65535, "threads": 64, "maxConnections": 65536},
    "the highest timeouts": {"timeouts": {"connect": "60000ms", "read": "60s"}},
    "fewer connections than threads": {"threads": 64, "maxConnections": 15},
    "the lowest memory limit": {"resources": {"limits": {"memory": "66338816"}}},
    "the lowest memory limit with TLS": {"tls": TLS, "resources": {"limits": {"memory": "390Mi"}}},
    "a memory request below the lowest limit": {"resources": {"requests": {"memory": "1Mi"}}},
    **{f"image {image}": {"image": image} for image in _NEW_IMAGES},
    "TLS": {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": "clients-ca", "minVersion": "1.3"}},
    "ports of the agent without one": {"port": 9150, "monitoring": {"enabled": False}},
    "port of the agent's connection without TLS": {"port": 11210, "monitoring": {}},
    "surge of no pod": {"rollout": {"maxSurge": 0}},
    **{
        f"traffic distribution {value}": {"service": {"trafficDistribution": value}}
        for value in ("PreferClose", "PreferSameZone", "PreferSameNode")
    },
}
"""Valid specs that are close to a rule."""
