"""MemcachedProxy objects that must be rejected, with the expected parts of each error message."""

from typing import Any

from support.invalid_memcached import IMAGE, RESOURCE, Table, invalid_objects
from support.invalid_metadata import INVALID as INVALID_METADATA
from support.invalid_metadata import VALID as VALID_METADATA
from support.invalid_monitoring import INVALID as INVALID_MONITORING
from support.invalid_placing import INVALID_PLACING
from support.invalid_tls import SECRET

SIZE = "must be at least 1; to stop the proxies, delete the MemcachedProxy object instead"
PORT = "must be between 1024 and 65535; memcached does not run as root"
NAME = "must be the name of a Memcached in this namespace"
RELEASE = "must be release 1.6.45 of memcached or later"
TIME = "must be a time from 10ms to 60s in ms or s, such as 500ms or 2s; the default is 500ms"
MEMORY = "raise this limit, or lower spec.maxConnections or spec.threads"
OTHER_KIND = ("slots: ", "own label of a PrometheusRule", "key of a label of a PrometheusRule")
OTHER_FIELDS = ("value of a label of a PrometheusRule", "port of the", "insight", "enabled insight")
"""The first words of the names of rows that are about fields of Memcached."""
TLS = {"secretName": "front-tls"}
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
    *(
        "memcached",
        "memcached:1.6",
        "memcached:1",
        "memcached:alpine",
        "memcached:1.6.38.1",
        "ghcr.io/memcached:1.6.38",
    ),
    *("example/memcached:1.6.38", "localhost/library/memcached:1.6.38", "memcached:1.6.38@sha256:" + "0" * 64),
)

_RULES: Table = {
    **{
        name: row
        for name, row in {**INVALID_PLACING, **INVALID_MONITORING}.items()
        if not name.startswith((*OTHER_KIND, *OTHER_FIELDS))
    },
    "name of the Secret of a certificate": ({"tls": {"secretName": "A/b"}}, ("spec.tls.secretName", SECRET)),
    "name of the Secret of a client CA": (
        {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": ""}},
        ("spec.tls.clientCASecretName", SECRET),
    ),
    "client CA without verification": (
        {"tls": {**TLS, "clientCASecretName": "clients-ca"}},
        ("spec.tls.clientCASecretName", "must be set only with clientAuth Request or Require"),
    ),
    "port of the agent's connection": ({"tls": TLS, "port": 11210}, ("spec.port", "must not be 11210 with spec.tls")),
    "port of the metrics": ({"monitoring": {}, "port": 9150}, ("spec.port", "9150", AGENT_PORTS)),
    "port of the probes with TLS": ({"tls": TLS, "port": 9151}, ("spec.port", "9151", AGENT_PORTS)),
    **INVALID_METADATA,
    "size 0": ({"size": 0}, ("spec.size", "0", SIZE)),
    "port 80": ({"port": 80}, ("spec.port", "80", PORT)),
    "port 65536": ({"port": 65536}, ("spec.port", "65536", PORT)),
    "reference to its own name": (
        refers_to("cache"),
        (
            "spec.memcachedRef.name",
            "cache",
            "must differ from metadata.name",
            "or create the MemcachedProxy with another",
        ),
    ),
    "reference in upper case": (refers_to("Sessions"), ("spec.memcachedRef.name", "Sessions", NAME)),
    "reference that starts with a digit": (refers_to("1st"), ("spec.memcachedRef.name", "1st", NAME)),
    "reference to another namespace": (refers_to("shop/a"), ("spec.memcachedRef.name", "shop/a", NAME)),
    "image with spaces": ({"image": "no such image"}, ("spec.image", "no such image", IMAGE)),
    **{f"image {image}": ({"image": image}, ("spec.image", image, RELEASE)) for image in _OLD_IMAGES},
    "two equal pull secrets": (
        {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
        ("spec.imagePullSecrets", "must be unique"),
    ),
    "name of a pull secret": (
        {"imagePullSecrets": [{"name": "A"}]},
        ("spec.imagePullSecrets[0].name", "must be the name of a Secret"),
    ),
    "unknown resource": ({"resources": {"limits": {"memroy": "1Gi"}}}, ("spec.resources.limits", "memroy", RESOURCE)),
    "unknown requested resource": (
        {"resources": {"requests": {"memroy": "1Gi"}}},
        ("spec.resources.requests", "memroy", RESOURCE),
    ),
    "negative limit": (
        {"resources": {"limits": {"cpu": "-1"}}},
        ("spec.resources.limits", "cpu", "-1", "must be at least 0"),
    ),
    "negative request": (
        {"resources": {"requests": {"cpu": "-1"}}},
        ("spec.resources.requests", "cpu", "-1", "must be at least 0"),
    ),
    "request above its limit": (
        {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
        ("spec.resources.requests", "750m", "250m", "request or raise the limit"),
    ),
    "no threads": ({"threads": 0}, ("spec.threads", "0", "must be between 1 and 64; the default is 2")),
    "too many threads": ({"threads": 65}, ("spec.threads", "65", "must be between 1 and 64")),
    "too few connections": (
        {"threads": 1, "maxConnections": 14},
        ("spec.maxConnections", "14", "must be between 15 and 65536; the default is 4096"),
    ),
    "too many connections": (
        {"maxConnections": 65537},
        ("spec.maxConnections", "65537", "must be between 15 and 65536"),
    ),
    **{
        f"memory limit {name}": (
            {"resources": {"limits": {"memory": limit}}, **spec},
            ("spec.resources.limits", limit, f"must be at least {minimum} for {load}; {MEMORY}"),
        )
        for name, limit, spec, minimum, load in (
            ("of the process", "16Mi", {}, "64Mi", "2 threads and 4096 connections"),
            ("just below the lowest", "66338815", {}, "64Mi", "2 threads and 4096 connections"),
            (
                "for many threads",
                "201Mi",
                {"threads": 64, "maxConnections": 15},
                "202Mi",
                "64 threads and 15 connections",
            ),
            ("for many connections", "538Mi", {"maxConnections": 65536}, "544Mi", "2 threads and 65536 connections"),
            ("with TLS", "300Mi", {"tls": TLS}, "390Mi", "2 threads and 4096 connections with TLS"),
        )
    },
    **{
        f"{field} timeout of {text}": ({"timeouts": {field: text}}, (f"spec.timeouts.{field}", text, TIME))
        for field in ("connect", "read")
        for text in ("9ms", "60001ms", "0s", "61s", "1m", "0.5s", "500", "05s", "1s ")
    },
}
"""Violations of our own rules."""

_TYPES: Table = {
    "no reference": ({"memcachedRef": None}, ("spec.memcachedRef", "Required value")),
    "reference without a name": ({"memcachedRef": {}}, ("spec.memcachedRef.name", "Required value")),
    "reference as text": ({"memcachedRef": "sessions"}, ("spec.memcachedRef", "must be of type object")),
    "string as size": ({"size": "3"}, ("spec.size", "must be of type integer")),
    "number as timeout": ({"timeouts": {"read": 1}}, ("spec.timeouts.read", "must be of type string")),
    "unknown traffic distribution": (
        {"service": {"trafficDistribution": "Local"}},
        ("spec.service.trafficDistribution", "Local", "PreferClose"),
    ),
    "unknown field": ({"replicas": 3}, ('unknown field "spec.replicas"',)),
    "namespace of the reference": (
        {"memcachedRef": {"name": "a", "namespace": "b"}},
        ('unknown field "spec.memcachedRef.namespace"',),
    ),
    "port of TLS": ({"tls": {**TLS, "port": 11212}}, ('unknown field "spec.tls.port"',)),
    "alerts": ({"monitoring": {"rules": {}}}, ('unknown field "spec.monitoring.rules"',)),
}
"""Violations of the schema, with the API server's own messages."""

RULES = invalid_objects(_RULES)
TYPES = invalid_objects(_TYPES)

VALID: dict[str, dict[str, Any]] = {
    **VALID_METADATA,
    "the longest name": refers_to("a" * 52),
    "the lowest values": {
        "size": 1,
        "port": 1024,
        "threads": 1,
        "maxConnections": 15,
        "timeouts": {"connect": "10ms", "read": "1s"},
    },
    "the highest values": {
        "port": 65535,
        "threads": 64,
        "maxConnections": 65536,
        "timeouts": {"connect": "60000ms", "read": "60s"},
    },
    "fewer connections than threads": {"threads": 64, "maxConnections": 15},
    "the lowest memory limit": {"resources": {"limits": {"memory": "66338816"}}},
    "the lowest memory limit with TLS": {"tls": TLS, "resources": {"limits": {"memory": "390Mi"}}},
    "a memory request below the lowest limit": {"resources": {"requests": {"memory": "1Mi"}}},
    **{f"image {image}": {"image": image} for image in _NEW_IMAGES},
    "TLS": {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": "clients-ca", "minVersion": "1.3"}},
    "ports of the agent without one": {"port": 9150, "monitoring": {"enabled": False}},
    "port of the agent's connection without TLS": {"port": 11210, "monitoring": {}},
    "surge of no pod": {"rollout": {"maxSurge": 0}},
    "proxies in the zone of the client": {"service": {"trafficDistribution": "PreferClose"}},
}
"""Valid specs that are close to a rule."""
