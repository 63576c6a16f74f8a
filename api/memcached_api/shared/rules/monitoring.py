"""The rules about the agent and its metrics, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.validation.common_rules import image_rule, matches, resource_rules
from memcached_api.validation.metadata_rules import OWN_LABELS, label_key_rule, label_value_rule, own_rule
from memcached_api.validation.rules import Rule, Violation, value_rule
from memcached_api.values import is_object, nested_field

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


def label_rules(path: str) -> tuple[Rule, ...]:
    """The rules about the labels of an object beside the workload."""
    return own_rule(path, OWN_LABELS), label_key_rule(path), label_value_rule(path)


POD_MONITOR_LABELS: Final = label_rules("spec.monitoring.podMonitor.labels")

AGENT_RESOURCES: Final = resource_rules("spec.agent.resources")
