"""Specs that violate a rule about the agent and its metrics, each with the field and a part of the message."""

from typing import Any, Final

INTERVAL: Final = ("spec.monitoring.podMonitor.interval", "must be a time in hours, minutes and seconds")
RESOURCE: Final = "must name one of cpu, memory"
NEGATIVE: Final = "must be at least 0"
WATCH: Final = ("spec.cache.extraArgs", "must not contain --disable-watch with spec.monitoring.insight")
WATCHER: Final = (
    "spec.cache.maxConnections",
    "must be at least 5 times spec.cache.threads plus 12 with spec.monitoring",
)


def _monitor(**fields: Any) -> dict[str, Any]:
    return {"monitoring": {"podMonitor": fields}}


def _rules(**fields: Any) -> dict[str, Any]:
    return {"monitoring": {"rules": fields}}


def _insight(insight: dict[str, Any], **cache: Any) -> dict[str, Any]:
    return {"monitoring": {"insight": insight}, "cache": cache}


def _agent(**resources: dict[str, str]) -> dict[str, Any]:
    return {"agent": {"resources": resources}}


INVALID: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "interval without a unit": (_monitor(interval="30"), INTERVAL),
    "interval of less than a second": (_monitor(interval="500ms"), INTERVAL),
    "interval of 0": (_monitor(interval="0s"), INTERVAL),
    "own label of a PodMonitor": (
        _monitor(labels={"app.kubernetes.io/name": "a"}),
        ("spec.monitoring.podMonitor.labels", "app.kubernetes.io/name", "the operator sets it"),
    ),
    "key of a label of a PodMonitor": (
        _monitor(labels={"-a": "b"}),
        ("spec.monitoring.podMonitor.labels", "-a", "must have a key of at most 63"),
    ),
    "value of a label of a PodMonitor": (
        _monitor(labels={"a": "-b"}),
        ("spec.monitoring.podMonitor.labels[a]", "must have at most 63"),
    ),
    "own label of a PrometheusRule": (
        _rules(labels={"app.kubernetes.io/managed-by": "a"}),
        ("spec.monitoring.rules.labels", "app.kubernetes.io/managed-by", "the operator sets it"),
    ),
    "key of a label of a PrometheusRule": (
        _rules(labels={"-a": "b"}),
        ("spec.monitoring.rules.labels", "-a", "must have a key of at most 63"),
    ),
    "value of a label of a PrometheusRule": (
        _rules(labels={"a": "-b"}),
        ("spec.monitoring.rules.labels[a]", "must have at most 63"),
    ),
    "image of the agent": ({"agent": {"image": "Not Valid!"}}, ("spec.agent.image", "must be an image reference")),
    "unknown resource of the agent": (
        _agent(limits={"memories": "1Gi"}),
        ("spec.agent.resources.limits", "memories", RESOURCE),
    ),
    "unknown requested resource of the agent": (
        _agent(requests={"memories": "1Gi"}),
        ("spec.agent.resources.requests", "memories", RESOURCE),
    ),
    "negative limit of the agent": (_agent(limits={"cpu": "-1"}), ("spec.agent.resources.limits[cpu]", NEGATIVE)),
    "negative request of the agent": (_agent(requests={"cpu": "-1"}), ("spec.agent.resources.requests[cpu]", NEGATIVE)),
    "request of the agent above its limit": (
        _agent(limits={"memory": "64Mi"}, requests={"memory": "65Mi"}),
        ("spec.agent.resources.requests", "must be at most the"),
    ),
    "clients of metrics without metrics": (
        {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}},
        (
            "spec.networkPolicy.metricsFrom",
            "must not be set without spec.monitoring",
            "remove it or set spec.monitoring",
        ),
    ),
    "port of the metrics": (
        {"monitoring": {}, "containerPort": 9150},
        ("spec.containerPort", "must not be 9150 or 9151 with spec.monitoring"),
    ),
    "port of the probes": (
        {"monitoring": {}, "containerPort": 9151},
        ("spec.containerPort", "must not be 9150 or 9151 with spec.monitoring"),
    ),
    "insight without the command watch": (_insight({}, extraArgs=["-o modern", "--disable-watch"]), WATCH),
    "enabled insight without the command watch": (_insight({"enabled": True}, extraArgs=["--disable-watch"]), WATCH),
    "insight with too few connections": (_insight({}, maxConnections=31), WATCHER),
    "insight with too few connections for its threads": (_insight({}, maxConnections=51, threads=8), WATCHER),
}

VALID: Final[dict[str, dict[str, Any]]] = {
    "insight": _insight({}, extraArgs=["--disable-dumping"]),
    "the fewest connections with insight": _insight({}, maxConnections=32),
    "the fewest connections with insight and one thread": _insight({}, maxConnections=17, threads=1),
    "the most threads with insight": _insight({}, threads=64),
    "disabled insight": _insight({"enabled": False}, extraArgs=["--disable-watch"], maxConnections=30),
    "metrics without the command watch": {"monitoring": {}, "cache": {"extraArgs": ["--disable-watch"]}},
}
"""Valid specs that are close to a rule."""
