"""The rules about the agent and its metrics, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached import memory
from memcached_api.validation.common_rules import image_rule, matches, resource_rules
from memcached_api.validation.metadata_rules import OWN_LABELS, label_key_rule, label_value_rule, own_rule
from memcached_api.validation.rules import Rule, Violation, blocking, field_rule, value_rule
from memcached_api.values import is_array, is_object, nested_field

_LABELS: Final = ("spec.monitoring.podMonitor.labels", "spec.monitoring.rules.labels")
_INTERVAL: Final = "^([1-9][0-9]{0,4}h)?([1-9][0-9]{0,5}m)?([1-9][0-9]{0,6}s)?$"

INTERVAL: Final = value_rule(
    "spec.monitoring.podMonitor.interval",
    lambda text: matches(_INTERVAL, text),
    f"self.matches('{_INTERVAL}')",
    "must be a time in hours, minutes and seconds, such as 30s or 1m30s",
)

AGENT_IMAGE: Final = image_rule(
    "must be an image reference such as registry.example.com/memcached-operator-agent:0.1.0; omit the field to use "
    "the agent of the operator's release",
    "spec.agent.image",
)

_CLIENTS: Final = "networkPolicy.metricsFrom"
_NO_METRICS: Final = (
    "must not be set without spec.monitoring, because there are no metrics; remove it or set spec.monitoring"
)


def _clients_without_metrics(spec: Mapping[str, Any]) -> Iterable[Violation]:
    clients = nested_field(spec, *_CLIENTS.split("."))
    if clients is not None and not is_object(spec.get("monitoring")):
        yield Violation(f".{_CLIENTS}", clients, _NO_METRICS)


METRICS_CLIENTS: Final = Rule(
    "spec",
    _clients_without_metrics,
    f"has(self.monitoring) || !has(self.networkPolicy) || !has(self.{_CLIENTS})"
    # As `inputs` would, for a list: an update that changes neither field may keep the violation.
    " || (oldSelf.hasValue() && !has(oldSelf.value().monitoring)"
    f" && oldSelf.value().?networkPolicy.?metricsFrom.orValue([]) == self.{_CLIENTS})",
    _NO_METRICS,
    field_path=f".{_CLIENTS}",
)
"""With `monitoring.enabled: false` the list may stay, as all settings of a feature that is disabled."""

_WATCHES_CEL: Final = "self.?monitoring.?insight.?enabled.orValue(self.?monitoring.?insight.hasValue())"
_NO_WATCH: Final = "--disable-watch"
_NOTHING_TO_WATCH: Final = (
    f"must not contain {_NO_WATCH} with spec.monitoring.insight, which watches evictions; remove one of the two"
)


def _watches(spec: Mapping[str, Any]) -> bool:
    insight = nested_field(spec, "monitoring", "insight")
    return is_object(insight) and insight.get("enabled") is not False


def _without_watch(spec: Mapping[str, Any]) -> Iterable[Violation]:
    extra_args = nested_field(spec, "cache", "extraArgs")
    if _watches(spec) and is_array(extra_args) and _NO_WATCH in extra_args:
        yield Violation(".cache.extraArgs", _NO_WATCH, _NOTHING_TO_WATCH)


WATCH: Final = Rule(
    "spec",
    _without_watch,
    f"!has(self.cache) || !has(self.cache.extraArgs) || !('{_NO_WATCH}' in self.cache.extraArgs) || !{_WATCHES_CEL}",
    _NOTHING_TO_WATCH,
    field_path=".cache.extraArgs",
)

_RESERVED: Final = memory.INTERNAL_CONNECTIONS + memory.INSIGHT_CONNECTIONS


def _fits_watcher(spec: Mapping[str, Any]) -> bool:
    """Whether a client can connect beside the agent's connections."""
    if not _watches(spec):
        return True
    fields = (nested_field(spec, "cache", name) for name in ("maxConnections", "threads"))
    connections, threads, *_ = memory.settings_of(*fields, tls=False)
    return connections >= memory.minimum_connections(threads) + memory.INSIGHT_CONNECTIONS


WATCHER: Final = field_rule(
    "spec",
    "cache.maxConnections",
    _fits_watcher,
    f"!{_WATCHES_CEL} || self.?cache.?maxConnections.orValue({memory.DEFAULT_CONNECTIONS})"
    f" >= {memory.CONNECTIONS_PER_THREAD} * self.?cache.?threads.orValue({memory.DEFAULT_THREADS}) + {_RESERVED}",
    f"must be at least {memory.CONNECTIONS_PER_THREAD} times spec.cache.threads plus {_RESERVED} with "
    "spec.monitoring.insight, for the two connections of the agent; raise it",
)

MONITORING_RULES: Final = (
    *blocking(
        INTERVAL,
        *(
            rule
            for labels in _LABELS
            for rule in (own_rule(labels, OWN_LABELS), label_key_rule(labels), label_value_rule(labels))
        ),
        AGENT_IMAGE,
        *resource_rules("spec.agent.resources"),
        WATCH,
        WATCHER,
    ),
    METRICS_CLIENTS,
)
