"""The rules about TLS, passwords and the ports that these and the agent use, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached.agent import asks_for_agent
from memcached_api.shared.monitoring import AGENT_PORTS
from memcached_api.shared.rules.secrets import secret_rule
from memcached_api.shared.rules.tls import CLIENT_CA, SECRETS, agent_ports_rule, loopback_port_rule
from memcached_api.shared.tls import LOOPBACK_PORT, MIN_PORT
from memcached_api.validation.common_rules import MAX_PORT, range_rule
from memcached_api.validation.rules import Rule, Violation, blocking, field_rule, value_rule
from memcached_api.values import is_array, is_object, nested_field

Spec = Mapping[str, Any]

DEFAULT_PORT: Final = 11211
"""The value of `containerPort` if it is absent."""


TLS_PORT: Final = range_rule(
    "spec.tls.port",
    MIN_PORT,
    MAX_PORT,
    "; memcached does not run as root and cannot bind a lower port; omit it to serve TLS on spec.containerPort",
)

_RESERVED_PORTS: Final = (LOOPBACK_PORT, *AGENT_PORTS)
_RESERVED: Final = (
    f"must not be {LOOPBACK_PORT}, {AGENT_PORTS[0]} or {AGENT_PORTS[1]}: memcached serves the agent on the first, and "
    "the agent listens on the others; use another port, such as 11212"
)

RESERVED_TLS_PORTS: Final = value_rule(
    "spec.tls.port",
    lambda port: port not in _RESERVED_PORTS,
    f"!(self in {list(_RESERVED_PORTS)})",
    _RESERVED,
)

_NO_AGENT: Final = (
    "!has(self.tls) && !has(self.auth) && !(has(self.rollout) && has(self.rollout.warmUp))"
    " && !(has(self.cache) && has(self.cache.warmRestart) && self.cache.warmRestart)"
    " && (!has(self.monitoring) || (has(self.monitoring.enabled) && !self.monitoring.enabled))"
)


AGENT_PORTS_IN_USE: Final = agent_ports_rule(
    "containerPort",
    asks_for_agent,
    _NO_AGENT,
    "spec.monitoring, spec.tls, spec.auth, spec.rollout.warmUp or spec.cache.warmRestart",
)

LOOPBACK_PORT_IN_USE: Final = loopback_port_rule("containerPort")

_SAME_PORT: Final = (
    "must not be Enabled unless spec.tls.port differs from spec.containerPort, which serves clients without TLS; set "
    "spec.tls.port, for example to 11212"
)


def _has_two_ports(spec: Spec) -> bool:
    container, port = spec.get("containerPort"), nested_field(spec, "tls", "port")
    return port is not None and port != (DEFAULT_PORT if container is None else container)


PLAINTEXT: Final = field_rule(
    "spec",
    "tls.plaintext",
    lambda spec: nested_field(spec, "tls", "plaintext") != "Enabled" or _has_two_ports(spec),
    "!has(self.tls) || !has(self.tls.plaintext) || self.tls.plaintext != 'Enabled' || (has(self.tls.port)"
    f" && self.tls.port != (has(self.containerPort) ? self.containerPort : {DEFAULT_PORT}))",
    _SAME_PORT,
)

_NO_CERTIFICATE: Final = "must not be enabled without spec.tls, whose certificate it uses; set spec.tls, or remove it"


def _serves_https(spec: Spec) -> bool:
    monitoring_tls = nested_field(spec, "monitoring", "tls")
    return is_object(monitoring_tls) and monitoring_tls.get("enabled") is not False


MONITORING_TLS: Final = field_rule(
    "spec",
    "monitoring.tls",
    lambda spec: not _serves_https(spec) or is_object(spec.get("tls")),
    "has(self.tls) || !has(self.monitoring) || !has(self.monitoring.tls)"
    " || (has(self.monitoring.tls.enabled) && !self.monitoring.tls.enabled)",
    _NO_CERTIFICATE,
)

_ANY_PROTOCOL: Final = "--protocol=auto"
_PROTOCOL: Final = (
    f"must not contain {_ANY_PROTOCOL} with spec.auth, because clients log in through memcached's text protocol; "
    "remove it"
)


def _any_protocol(spec: Spec) -> Iterable[Violation]:
    extra_args = nested_field(spec, "cache", "extraArgs")
    if is_object(spec.get("auth")) and is_array(extra_args) and _ANY_PROTOCOL in extra_args:
        yield Violation(".cache.extraArgs", _ANY_PROTOCOL, _PROTOCOL)


PROTOCOL: Final = Rule(
    "spec",
    _any_protocol,
    "!has(self.auth) || !has(self.cache) || !has(self.cache.extraArgs)"
    f" || !('{_ANY_PROTOCOL}' in self.cache.extraArgs)",
    _PROTOCOL,
    field_path=".cache.extraArgs",
)

TLS_RULES: Final = blocking(
    *SECRETS,
    secret_rule("spec.auth.secretName"),
    TLS_PORT,
    RESERVED_TLS_PORTS,
    AGENT_PORTS_IN_USE,
    LOOPBACK_PORT_IN_USE,
    PLAINTEXT,
    CLIENT_CA,
    MONITORING_TLS,
    PROTOCOL,
)
