"""The rules about the agent and its metrics, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached import memory
from memcached_api.shared.rules.monitoring import (
    AGENT_IMAGE,
    AGENT_RESOURCES,
    INTERVAL,
    METRICS_CLIENTS,
    POD_MONITOR_LABELS,
    label_rules,
)
from memcached_api.validation.rules import Rule, Violation, blocking, field_rule
from memcached_api.values import is_array, is_object, nested_field

WATCHES_CEL: Final = "self.?monitoring.?insight.?enabled.orValue(self.?monitoring.?insight.hasValue())"
_NO_WATCH: Final = "--disable-watch"
_NOTHING_TO_WATCH: Final = (
    f"must not contain {_NO_WATCH} with spec.monitoring.insight, which watches evictions; remove one of the two"
)


def watches(spec: Mapping[str, Any]) -> bool:
    """Whether the agent of a spec that is not decoded, and may be invalid, watches evictions."""
    insight = nested_field(spec, "monitoring", "insight")
    return is_object(insight) and insight.get("enabled") is not False


def _without_watch(spec: Mapping[str, Any]) -> Iterable[Violation]:
    extra_args = nested_field(spec, "cache", "extraArgs")
    if watches(spec) and is_array(extra_args) and _NO_WATCH in extra_args:
        yield Violation(".cache.extraArgs", _NO_WATCH, _NOTHING_TO_WATCH)


WATCH: Final = Rule(
    "spec",
    _without_watch,
    f"!has(self.cache) || !has(self.cache.extraArgs) || !('{_NO_WATCH}' in self.cache.extraArgs) || !{WATCHES_CEL}",
    _NOTHING_TO_WATCH,
    field_path=".cache.extraArgs",
)

_RESERVED: Final = memory.INTERNAL_CONNECTIONS + memory.INSIGHT_CONNECTIONS


def _fits_watcher(spec: Mapping[str, Any]) -> bool:
    """Whether a client can connect beside the agent's connections."""
    if not watches(spec):
        return True
    fields = (nested_field(spec, "cache", name) for name in ("maxConnections", "threads"))
    connections, threads, *_ = memory.settings_of(*fields, tls=False)
    return connections >= memory.minimum_connections(threads) + memory.INSIGHT_CONNECTIONS


WATCHER: Final = field_rule(
    "spec",
    "cache.maxConnections",
    _fits_watcher,
    f"!{WATCHES_CEL} || self.?cache.?maxConnections.orValue({memory.DEFAULT_CONNECTIONS})"
    f" >= {memory.CONNECTIONS_PER_THREAD} * self.?cache.?threads.orValue({memory.DEFAULT_THREADS}) + {_RESERVED}",
    f"must be at least {memory.CONNECTIONS_PER_THREAD} times spec.cache.threads plus {_RESERVED} with "
    "spec.monitoring.insight, for the two connections of the agent; raise it",
)

MONITORING_RULES: Final = (
    *blocking(
        INTERVAL,
        *POD_MONITOR_LABELS,
        *label_rules("spec.monitoring.rules.labels"),
        AGENT_IMAGE,
        *AGENT_RESOURCES,
        WATCH,
        WATCHER,
    ),
    METRICS_CLIENTS,
)
