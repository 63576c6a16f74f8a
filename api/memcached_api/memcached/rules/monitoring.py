"""The rules about the agent and its metrics, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached.monitoring import METRICS_PORT, asks_for_agent
from memcached_api.memcached.rules.placing import (
    LABEL_NAME,
    OWN_LABELS,
    SUBDOMAIN_PREFIX,
    label_value_rule,
    own_rule,
    syntax_rule,
)
from memcached_api.validation.common_rules import image_rule, matches, resource_rules
from memcached_api.validation.rules import Rule, Violation, value_rule

_MONITOR_LABELS: Final = "spec.monitoring.podMonitor.labels"
_INTERVAL: Final = "^([1-9][0-9]{0,4}h)?([1-9][0-9]{0,5}m)?([1-9][0-9]{0,6}s)?$"

INTERVAL: Final = value_rule(
    "spec.monitoring.podMonitor.interval",
    lambda text: matches(_INTERVAL, text),
    f"self.matches('{_INTERVAL}')",
    "must be a time in hours, minutes and seconds, such as 30s or 1m30s",
)

AGENT_IMAGE: Final = image_rule(
    "must be an image reference such as registry.example.com/memcached-operator:0.1.0; omit the field to use the "
    "operator's own image",
    "spec.agent.image",
)

_PORT_IN_USE: Final = (
    f"must not be {METRICS_PORT} with spec.monitoring, because the agent serves metrics on this port; use another port"
)


def _port_in_use(spec: Mapping[str, Any]) -> Iterable[Violation]:
    if asks_for_agent(spec) and spec.get("containerPort") == METRICS_PORT:
        yield Violation(".containerPort", METRICS_PORT, _PORT_IN_USE)


PORT_IN_USE: Final = Rule(
    "spec",
    _port_in_use,
    "!has(self.monitoring) || (has(self.monitoring.enabled) && !self.monitoring.enabled) || "
    f"!has(self.containerPort) || self.containerPort != {METRICS_PORT}",
    _PORT_IN_USE,
    field_path=".containerPort",
)

MONITORING_RULES: Final = (
    INTERVAL,
    own_rule(_MONITOR_LABELS, OWN_LABELS),
    syntax_rule(_MONITOR_LABELS, SUBDOMAIN_PREFIX, LABEL_NAME),
    label_value_rule(_MONITOR_LABELS),
    AGENT_IMAGE,
    *resource_rules("spec.agent.resources"),
    PORT_IN_USE,
)
