"""Specs that violate a rule about the agent and its metrics, each with the field and a part of the message."""

from typing import Any, Final

from support.invalid import Table, at, row

PORT: Final = "must not be 9150 or 9151 with spec.monitoring"
RESOURCE: Final = "must name one of cpu, memory"
NEGATIVE: Final = "must be at least 0"
WATCH: Final = ("spec.cache.extraArgs", "must not contain --disable-watch with spec.monitoring.insight")
WATCHER: Final = "must be at least 5 times spec.cache.threads plus 12 with spec.monitoring"


def _monitor(**fields: Any) -> dict[str, Any]:
    return {"monitoring": {"podMonitor": fields}}


def _insight(insight: dict[str, Any], **cache: Any) -> dict[str, Any]:
    return {"monitoring": {"insight": insight}, "cache": cache}


def _agent(**resources: dict[str, str]) -> dict[str, Any]:
    return {"agent": {"resources": resources}}


INVALID: Final[Table] = (
    *(
        row(
            _monitor(interval=interval),
            "spec.monitoring.podMonitor.interval",
            "must be a time in hours, minutes and seconds",
        )
        for interval in ("30", "500ms", "0s")
    ),
    at("monitoring.podMonitor.labels[app.kubernetes.io/name]", "a", "the operator sets it"),
    at("monitoring.podMonitor.labels[-a]", "b", "must have a key of at most 63"),
    row(_monitor(labels={"a": "-b"}), "spec.monitoring.podMonitor.labels[a]", "must have at most 63"),
    at("agent.image", "Not Valid!", "must be an image reference"),
    row(_agent(limits={"memories": "1Gi"}), "spec.agent.resources.limits", "memories", RESOURCE),
    row(_agent(requests={"memories": "1Gi"}), "spec.agent.resources.requests", "memories", RESOURCE),
    row(_agent(limits={"cpu": "-1"}), "spec.agent.resources.limits[cpu]", NEGATIVE),
    row(_agent(requests={"cpu": "-1"}), "spec.agent.resources.requests[cpu]", NEGATIVE),
    row(
        _agent(limits={"memory": "64Mi"}, requests={"memory": "65Mi"}),
        *("spec.agent.resources.requests", "must be at most the"),
    ),
    row(
        {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}},
        "spec.networkPolicy.metricsFrom",
        *("must not be set without spec.monitoring", "remove it or set spec.monitoring"),
    ),
)

INVALID_OF_CACHES: Final[Table] = (
    at("monitoring.rules.labels[app.kubernetes.io/managed-by]", "a", "the operator sets it"),
    at("monitoring.rules.labels[-a]", "b", "must have a key of at most 63"),
    row({"monitoring": {"rules": {"labels": {"a": "-b"}}}}, "spec.monitoring.rules.labels[a]", "must have at most 63"),
    *(at("containerPort", port, PORT, given={"monitoring": {}}) for port in (9150, 9151)),
    row(_insight({}, extraArgs=["-o modern", "--disable-watch"]), *WATCH),
    row(_insight({"enabled": True}, extraArgs=["--disable-watch"]), *WATCH),
    row(_insight({}, maxConnections=31), "spec.cache.maxConnections", WATCHER),
    row(_insight({}, maxConnections=51, threads=8), "spec.cache.maxConnections", WATCHER),
)
"""Violations of rules that only Memcached has."""

VALID: Final[dict[str, dict[str, Any]]] = {
    "insight": _insight({}, extraArgs=["--disable-dumping"]),
    "the fewest connections with insight": _insight({}, maxConnections=32),
    "the fewest connections with insight and one thread": _insight({}, maxConnections=17, threads=1),
    "the most threads with insight": _insight({}, threads=64),
    "disabled insight": _insight({"enabled": False}, extraArgs=["--disable-watch"], maxConnections=30),
    "metrics without the command watch": {"monitoring": {}, "cache": {"extraArgs": ["--disable-watch"]}},
}
"""Valid specs that are close to a rule."""
