"""Specs that violate a rule about TLS or passwords, each with the field and a part of the message."""

from typing import Any, Final

TLS: Final = {"secretName": "sessions-tls"}

SECRET: Final = "must be the name of a Secret in this namespace"
RESERVED: Final = "must not be 11210, 9150 or 9151"
AGENT_PORTS: Final = "must not be 9150 or 9151 with spec.monitoring"
PLAINTEXT: Final = ("spec.tls.plaintext", "must not be Enabled unless spec.tls.port differs from spec.containerPort")
CLIENT_CA: Final = ("spec.tls.clientCASecretName", "must be set only with clientAuth Request or Require")


def _warm_up(**fields: Any) -> dict[str, Any]:
    return {"identity": "Stable", "rollout": {"warmUp": fields}}


INVALID: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "name of the Secret of a certificate": ({"tls": {"secretName": "Sessions"}}, ("spec.tls.secretName", SECRET)),
    "name of the Secret of a client CA": (
        {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": ""}},
        ("spec.tls.clientCASecretName", SECRET),
    ),
    "name of the Secret of passwords": ({"auth": {"secretName": "a/b"}}, ("spec.auth.secretName", SECRET)),
    "privileged port for TLS": ({"tls": {**TLS, "port": 443}}, ("spec.tls.port", "must be between 1024 and 65535")),
    "port of the agent's connection for TLS": ({"tls": {**TLS, "port": 11210}}, ("spec.tls.port", RESERVED)),
    "port of the metrics for TLS": ({"tls": {**TLS, "port": 9150}}, ("spec.tls.port", RESERVED)),
    "port of the probes for TLS": ({"tls": {**TLS, "port": 9151}}, ("spec.tls.port", RESERVED)),
    "port of the agent's connection": (
        {"tls": TLS, "containerPort": 11210},
        ("spec.containerPort", "must not be 11210 with spec.tls"),
    ),
    "port of the metrics with TLS": ({"tls": TLS, "containerPort": 9150}, ("spec.containerPort", AGENT_PORTS)),
    "port of the metrics with passwords": (
        {"auth": {"secretName": "a"}, "monitoring": {"enabled": False}, "containerPort": 9150},
        ("spec.containerPort", AGENT_PORTS),
    ),
    "plaintext without a port for TLS": ({"tls": {**TLS, "plaintext": "Enabled"}}, PLAINTEXT),
    "plaintext on the port for TLS": (
        {"tls": {**TLS, "plaintext": "Enabled", "port": 11300}, "containerPort": 11300},
        PLAINTEXT,
    ),
    "client CA without verification": ({"tls": {**TLS, "clientCASecretName": "clients-ca"}}, CLIENT_CA),
    "client CA with verification switched off": (
        {"tls": {**TLS, "clientAuth": "None", "clientCASecretName": "clients-ca"}},
        CLIENT_CA,
    ),
    "metrics over HTTPS without a certificate": (
        {"monitoring": {"tls": {}}},
        ("spec.monitoring.tls", "must not be enabled without spec.tls"),
    ),
    "binary protocol with passwords": (
        {"auth": {"secretName": "a"}, "cache": {"extraArgs": ["--disable-cas", "--protocol=auto"]}},
        ("spec.cache.extraArgs", "must not contain --protocol=auto with spec.auth"),
    ),
    "warm-up without slots": (
        {"rollout": {"warmUp": {}}},
        ("spec.rollout.warmUp", "must not be set without spec.identity Stable"),
    ),
    "warm-up with an invalid timeout": (
        _warm_up(timeout="1d"),
        ("spec.rollout.warmUp.timeout", "must be a time in hours, minutes and seconds"),
    ),
    "warm-up of no requests": (_warm_up(hitRatio=0), ("spec.rollout.warmUp.hitRatio", "must be between 1 and 100")),
    "warm-up with too many requests": (
        _warm_up(minRequests=-1),
        ("spec.rollout.warmUp.minRequests", "must be between 0 and 1000000000"),
    ),
    "memory limit for connections with TLS": (
        {
            "tls": TLS,
            "cache": {"memory": "1Gi"},
            "resources": {"limits": {"memory": "1260Mi"}},
        },
        ("spec.resources.limits", "connections with TLS", "raise this limit"),
    ),
}

VALID: Final[dict[str, dict[str, Any]]] = {
    "TLS": {"tls": TLS},
    "TLS on another port": {"tls": {**TLS, "port": 11212}},
    "TLS on the same port, named": {"tls": {**TLS, "port": 11211, "plaintext": "Disabled"}},
    "TLS and plaintext": {"tls": {**TLS, "port": 11212, "plaintext": "Enabled"}},
    "client certificates": {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": "a.b"}},
    "client certificates of the same CA": {"tls": {**TLS, "clientAuth": "Request", "minVersion": "1.3"}},
    "passwords": {"auth": {"secretName": "a"}, "cache": {"extraArgs": ["--protocol=ascii"]}},
    "HTTPS": {"tls": TLS, "monitoring": {"tls": {"enabled": True}}},
    "HTTPS switched off": {"monitoring": {"tls": {"enabled": False}}},
    "reserved ports without TLS": {"containerPort": 11210},
    "port of the metrics without an agent": {"containerPort": 9150},
    "port beside those of the agent": {"tls": {**TLS, "port": 9152}, "containerPort": 9149},
}
"""Valid specs that are close to a rule."""
