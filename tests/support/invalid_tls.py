"""Specs that violate a rule about TLS or passwords, each with the field and a part of the message."""

from typing import Any, Final

from support.invalid import Spec, Table, at, row

TLS: Final[Spec] = {"secretName": "sessions-tls"}
SECRET: Final = "must be the name of a Secret in this namespace"
RESERVED: Final = "must not be 11210, 9150 or 9151"
AGENT_PORTS: Final = "must not be 9150 or 9151 with spec.monitoring"
PLAINTEXT: Final = ("spec.tls.plaintext", "must not be Enabled unless spec.tls.port differs from spec.containerPort")
CLIENT_CA: Final = ("spec.tls.clientCASecretName", "must be set only with clientAuth Request or Require")


def _tls(**fields: Any) -> dict[str, Any]:
    return {"tls": {**TLS, **fields}}


INVALID: Final[Table] = (
    at("tls.secretName", "Sessions", SECRET),
    at("tls.clientCASecretName", "", SECRET, **TLS, clientAuth="Require"),
    at("auth.secretName", "a/b", SECRET),
    at("tls.port", 443, "must be between 1024 and 65535", **TLS),
    *(at("tls.port", port, RESERVED, **TLS) for port in (9150, 9151, 11210)),
    at("containerPort", 11210, "must not be 11210 with spec.tls", given={"tls": TLS}),
    at("containerPort", 9150, AGENT_PORTS, given={"tls": TLS}),
    at("containerPort", 9150, AGENT_PORTS, given={"auth": {"secretName": "a"}, "monitoring": {"enabled": False}}),
    row(_tls(plaintext="Enabled"), *PLAINTEXT),
    row({"tls": {**TLS, "plaintext": "Enabled", "port": 11300}, "containerPort": 11300}, *PLAINTEXT),
    row(_tls(clientCASecretName="clients-ca"), *CLIENT_CA),
    row(_tls(clientAuth="None", clientCASecretName="clients-ca"), *CLIENT_CA),
    at("monitoring.tls", {}, "must not be enabled without spec.tls"),
    row(
        {"auth": {"secretName": "a"}, "cache": {"extraArgs": ["--disable-cas", "--protocol=auto"]}},
        *("spec.cache.extraArgs", "must not contain --protocol=auto with spec.auth"),
    ),
    at("rollout.warmUp", {}, "must not be set without spec.identity Stable"),
    at("rollout.warmUp.timeout", "1d", "must be a time in hours, minutes and seconds", given={"identity": "Stable"}),
    at("rollout.warmUp.hitRatio", 0, "must be between 1 and 100", given={"identity": "Stable"}),
    at("rollout.warmUp.minRequests", -1, "must be between 0 and 1000000000", given={"identity": "Stable"}),
    row(
        {"tls": TLS, "cache": {"memory": "1Gi"}, "resources": {"limits": {"memory": "1260Mi"}}},
        *("spec.resources.limits", "connections with TLS", "raise this limit"),
    ),
)

VALID: Final[dict[str, dict[str, Any]]] = {
    "TLS": {"tls": TLS},
    "TLS on another port": _tls(port=11212),
    "TLS on the same port, named": _tls(port=11211, plaintext="Disabled"),
    "TLS and plaintext": _tls(port=11212, plaintext="Enabled"),
    "client certificates": _tls(clientAuth="Require", clientCASecretName="a.b"),
    "client certificates of the same CA": _tls(clientAuth="Request", minVersion="1.3"),
    "passwords": {"auth": {"secretName": "a"}, "cache": {"extraArgs": ["--protocol=ascii"]}},
    "HTTPS": {"tls": TLS, "monitoring": {"tls": {"enabled": True}}},
    "HTTPS switched off": {"monitoring": {"tls": {"enabled": False}}},
    "reserved ports without TLS": {"containerPort": 11210},
    "port of the metrics without an agent": {"containerPort": 9150},
    "port beside those of the agent": {"tls": {**TLS, "port": 9152}, "containerPort": 9149},
}
"""Valid specs that are close to a rule."""
