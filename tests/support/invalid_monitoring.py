"""Specs that violate a rule about the agent and its metrics, each with the field and a part of the message."""

from typing import Any, Final

INVALID: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "interval without a unit": (
        {"monitoring": {"podMonitor": {"interval": "30"}}},
        ("spec.monitoring.podMonitor.interval", "must be a time in hours, minutes and seconds"),
    ),
    "interval of less than a second": (
        {"monitoring": {"podMonitor": {"interval": "500ms"}}},
        ("spec.monitoring.podMonitor.interval", "must be a time in hours, minutes and seconds"),
    ),
    "interval of 0": (
        {"monitoring": {"podMonitor": {"interval": "0s"}}},
        ("spec.monitoring.podMonitor.interval", "must be a time in hours, minutes and seconds"),
    ),
    "own label of a PodMonitor": (
        {"monitoring": {"podMonitor": {"labels": {"app.kubernetes.io/name": "a"}}}},
        ("spec.monitoring.podMonitor.labels", "app.kubernetes.io/name", "the operator sets it"),
    ),
    "key of a label of a PodMonitor": (
        {"monitoring": {"podMonitor": {"labels": {"-a": "b"}}}},
        ("spec.monitoring.podMonitor.labels", "-a", "must have a key of at most 63"),
    ),
    "value of a label of a PodMonitor": (
        {"monitoring": {"podMonitor": {"labels": {"a": "-b"}}}},
        ("spec.monitoring.podMonitor.labels[a]", "must have at most 63"),
    ),
    "image of the agent": (
        {"agent": {"image": "Not Valid!"}},
        ("spec.agent.image", "must be an image reference"),
    ),
    "unknown resource of the agent": (
        {"agent": {"resources": {"limits": {"memories": "1Gi"}}}},
        ("spec.agent.resources.limits", "memories", "must name one of cpu, memory"),
    ),
    "unknown requested resource of the agent": (
        {"agent": {"resources": {"requests": {"memories": "1Gi"}}}},
        ("spec.agent.resources.requests", "memories", "must name one of cpu, memory"),
    ),
    "negative limit of the agent": (
        {"agent": {"resources": {"limits": {"cpu": "-1"}}}},
        ("spec.agent.resources.limits[cpu]", "must be at least 0"),
    ),
    "negative request of the agent": (
        {"agent": {"resources": {"requests": {"cpu": "-1"}}}},
        ("spec.agent.resources.requests[cpu]", "must be at least 0"),
    ),
    "request of the agent above its limit": (
        {"agent": {"resources": {"limits": {"memory": "64Mi"}, "requests": {"memory": "65Mi"}}}},
        ("spec.agent.resources.requests", "must be at most the"),
    ),
    "port of the metrics": (
        {"monitoring": {}, "containerPort": 9150},
        ("spec.containerPort", "must not be 9150 with spec.monitoring"),
    ),
}
