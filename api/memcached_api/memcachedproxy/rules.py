"""The rules of MemcachedProxy, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcachedproxy import limits
from memcached_api.memcachedproxy.agent import NO_AGENT, asks_for_agent
from memcached_api.shared.rules.images import IMAGE_RULES
from memcached_api.shared.rules.monitoring import (
    AGENT_IMAGE,
    AGENT_RESOURCES,
    INTERVAL,
    METRICS_CLIENTS,
    POD_MONITOR_LABELS,
)
from memcached_api.shared.rules.placing import PLACING_RULES
from memcached_api.shared.rules.tls import CLIENT_CA, SECRETS, agent_ports_rule, loopback_port_rule
from memcached_api.shared.tls import MIN_PORT
from memcached_api.validation.common_rules import (
    LABEL,
    MAX_NAME_LENGTH,
    MAX_PORT,
    NAME,
    RESOURCES,
    matches,
    range_rule,
    size_rule,
)
from memcached_api.validation.rules import Rule, Violation, blocking, value_rule
from memcached_api.values import nested_field

SIZE: Final = size_rule("to stop the proxies, delete the MemcachedProxy object instead")

PORT: Final = range_rule(
    "spec.port",
    MIN_PORT,
    MAX_PORT,
    "; memcached does not run as root and cannot bind a lower port; use 11211, its default",
)

MEMCACHED_NAME: Final = value_rule(
    "spec.memcachedRef.name",
    lambda name: len(name) <= MAX_NAME_LENGTH and matches(LABEL, name),
    f"size(self) <= {MAX_NAME_LENGTH} && self.matches('{LABEL}')",
    "must be the name of a Memcached in this namespace: lower-case letters, digits and '-', starting with a letter, at "
    f"most {MAX_NAME_LENGTH} characters",
)

_SAME_NAME: Final = (
    "must differ from metadata.name, because both objects have a Service of their own name; refer to another "
    "Memcached, or create the MemcachedProxy with another name"
)


def _same_name(obj: Mapping[str, Any]) -> Iterable[Violation]:
    name = nested_field(obj, "spec", "memcachedRef", "name")
    if name is not None and name == nested_field(obj, "metadata", "name"):
        yield Violation("spec.memcachedRef.name", name, _SAME_NAME)


OTHER_NAME: Final = Rule(
    "",
    _same_name,
    "self.metadata.name != self.spec.memcachedRef.name",
    _SAME_NAME,
    field_path=".spec.memcachedRef.name",
)

_RELEASE: Final = ".".join(map(str, limits.MIN_RELEASE))
_OLD_IMAGE: Final = (
    r"^((index[.])?docker[.]io/)?(library/)?memcached:(0[.][0-9]+[.][0-9]+|1[.][0-5][.][0-9]+"
    r"|1[.]6[.]([0-9]|[1-3][0-9]|4[0-4]))([^0-9.@][^@]*)?$"
)
"""The tags of the official image for releases before MIN_RELEASE."""

RELEASE: Final = value_rule(
    "spec.image",
    lambda image: not matches(_OLD_IMAGE, image),
    f"!self.matches('{_OLD_IMAGE}')",
    f"must be release {_RELEASE} of memcached or later, because the proxy of earlier ones loses requests or memory; "
    "correct the tag, or omit the field to use the operator's default",
)

THREADS: Final = range_rule(
    "spec.threads",
    1,
    limits.MAX_THREADS,
    f"; the default is {limits.DEFAULT_THREADS}; more threads than CPUs make memcached slower",
)

_LOWEST: Final = limits.lowest_connections(1)
MAX_CONNECTIONS: Final = range_rule(
    "spec.maxConnections",
    _LOWEST,
    limits.MAX_CONNECTIONS,
    f"; the default is {limits.DEFAULT_CONNECTIONS}; for more clients, add proxies with spec.size",
)

_THREADS_CEL: Final = f"self.?threads.orValue({limits.DEFAULT_THREADS})"
_MINIMUM_CEL: Final = f"{limits.CONNECTIONS_PER_THREAD} * {_THREADS_CEL} + {limits.INTERNAL_CONNECTIONS}"


def _too_few(minimum: str, threads: str) -> str:
    return (
        f"must be at least {minimum} for {threads} threads ({limits.CONNECTIONS_PER_THREAD} times spec.threads plus "
        f"{limits.INTERNAL_CONNECTIONS}); raise it or lower spec.threads"
    )


def _too_few_connections(spec: Mapping[str, Any]) -> Iterable[Violation]:
    connections, threads = spec.get("maxConnections"), spec.get("threads")
    threads = limits.DEFAULT_THREADS if threads is None else threads
    minimum = limits.lowest_connections(threads)
    if connections is not None and connections < minimum:
        yield Violation(".maxConnections", connections, _too_few(str(minimum), str(threads)))


CONNECTIONS: Final = Rule(
    "spec",
    _too_few_connections,
    f"!has(self.maxConnections) || self.maxConnections >= {_MINIMUM_CEL}",
    "must be large enough for spec.threads; raise it or lower spec.threads",
    message_expression=f"'%d {_too_few('%d', '%d')}'.format([self.maxConnections, {_MINIMUM_CEL}, {_THREADS_CEL}])",
    field_path=".maxConnections",
)

TIMEOUTS: Final = tuple(
    value_rule(
        f"spec.timeouts.{name}",
        lambda text: matches(limits.TIMEOUT, text),
        f"self.matches('{limits.TIMEOUT}')",
        f"must be a time from {limits.MIN_TIMEOUT_TEXT} to {limits.MAX_TIMEOUT_TEXT} in ms or s, such as 500ms or 2s; "
        f"the default is {limits.DEFAULT_TIMEOUT}",
    )
    for name in ("connect", "read")
)

AGENT_PORTS_IN_USE: Final = agent_ports_rule("port", asks_for_agent, NO_AGENT, "spec.monitoring or spec.tls")
LOOPBACK_PORT_IN_USE: Final = loopback_port_rule("port")

RULES: Final = (
    *blocking(
        NAME,
        OTHER_NAME,
        SIZE,
        MEMCACHED_NAME,
        PORT,
        *IMAGE_RULES,
        RELEASE,
        *RESOURCES,
        THREADS,
        MAX_CONNECTIONS,
        CONNECTIONS,
        *TIMEOUTS,
    ),
    *PLACING_RULES,
    *blocking(
        INTERVAL,
        AGENT_IMAGE,
        *POD_MONITOR_LABELS,
        *AGENT_RESOURCES,
        *SECRETS,
        CLIENT_CA,
        AGENT_PORTS_IN_USE,
        LOOPBACK_PORT_IN_USE,
    ),
    METRICS_CLIENTS,
)
