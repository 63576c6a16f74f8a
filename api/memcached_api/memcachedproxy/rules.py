"""The rules of MemcachedProxy, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcachedproxy import limits
from memcached_api.memcachedproxy.agent import NO_AGENT, asks_for_agent
from memcached_api.memcachedproxy.limits import Load
from memcached_api.quantity import parse_quantity
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
from memcached_api.values import is_object, nested_field

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

MAX_CONNECTIONS: Final = range_rule(
    "spec.maxConnections",
    limits.MIN_CONNECTIONS,
    limits.MAX_CONNECTIONS,
    f"; the default is {limits.DEFAULT_CONNECTIONS}; for more clients, add proxies with spec.size",
)

_LIMIT: Final = "resources.limits[memory]"
_THREADS_CEL: Final = f"self.?threads.orValue({limits.DEFAULT_THREADS})"
_CONNECTIONS_CEL: Final = f"self.?maxConnections.orValue({limits.DEFAULT_CONNECTIONS})"
_LOAD: Final = (
    ("threads", str(limits.DEFAULT_THREADS)),
    ("maxConnections", str(limits.DEFAULT_CONNECTIONS)),
    ("tls.secretName", ""),  # with every `tls`
)
"""The fields of `Load` with the values that CEL compares while they are absent."""


def _minimum(threads: int, connections: int, *, tls: bool) -> int:
    return limits.minimum_memory(Load(connections, threads, tls))


_NONE, _TLS = _minimum(0, 0, tls=False), _minimum(0, 0, tls=True)
_PER_THREAD: Final = _minimum(1, 0, tls=False) - _NONE
_MINIMUM_CEL: Final = (
    f"({_PER_THREAD} * {_THREADS_CEL} + (has(self.tls) ? {_TLS} + {limits.TLS_CONNECTION_MEMORY} * {_CONNECTIONS_CEL} "
    f": {_NONE} + {limits.CONNECTION_MEMORY} * {_CONNECTIONS_CEL}))"
)
"""limits.minimum_memory, in KiB: it is linear in each number."""


def _too_low(minimum: str, threads: str, connections: str, tls: str) -> str:
    return (
        f"must be at least {minimum} for {threads} threads and {connections} connections{tls}; raise this limit, or "
        "lower spec.maxConnections or spec.threads"
    )


_WITH_TLS: Final = " with TLS"


def _limit_too_low(spec: Mapping[str, Any]) -> Iterable[Violation]:
    limit, threads = nested_field(spec, "resources", "limits", "memory"), spec.get("threads")
    if limit is None:
        return
    threads = limits.DEFAULT_THREADS if threads is None else threads
    connections, tls = spec.get("maxConnections"), is_object(spec.get("tls"))
    connections = limits.DEFAULT_CONNECTIONS if connections is None else connections
    minimum = _minimum(threads, connections, tls=tls)
    if parse_quantity(limit) < minimum * 1024:
        text = _too_low(limits.mebibytes(minimum), str(threads), str(connections), _WITH_TLS if tls else "")
        yield Violation(f".{_LIMIT}", limit, text)


MEMORY_LIMIT: Final = Rule(
    "spec",
    _limit_too_low,
    "!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits)"
    f" || quantity(string(self.resources.limits['memory'])).asApproximateFloat() >= double({_MINIMUM_CEL}) * 1024.0",
    "must be large enough for spec.threads and spec.maxConnections; raise this limit, or lower one of them",
    message_expression=f"'limit %s {_too_low('%dMi', '%d', '%d', '%s')}'.format([self.resources.limits['memory'],"
    f" ({_MINIMUM_CEL} + 1023) / 1024, {_THREADS_CEL}, {_CONNECTIONS_CEL}, has(self.tls) ? '{_WITH_TLS}' : ''])",
    field_path=".resources.limits.memory",
    inputs=(_LIMIT,),
    optional_inputs=_LOAD,
)
"""Not blocking: it is younger than its field."""

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
    MEMORY_LIMIT,
)
