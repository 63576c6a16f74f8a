"""The rules about the agent and its metrics, each in Python and in CEL."""

from typing import Final

from memcached_api.validation.common_rules import image_rule, matches, resource_rules
from memcached_api.validation.metadata_rules import OWN_LABELS, label_key_rule, label_value_rule, own_rule
from memcached_api.validation.rules import blocking, value_rule

_MONITOR_LABELS: Final = "spec.monitoring.podMonitor.labels"
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

MONITORING_RULES: Final = blocking(
    INTERVAL,
    own_rule(_MONITOR_LABELS, OWN_LABELS),
    label_key_rule(_MONITOR_LABELS),
    label_value_rule(_MONITOR_LABELS),
    AGENT_IMAGE,
    *resource_rules("spec.agent.resources"),
)
