"""Alerts, and their form in a file of Prometheus or a PrometheusRule."""

from enum import StrEnum
from typing import Final, NamedTuple

from memcached_operator.kube.resource import Object

PAGE: Final = "https://example.com/memcached-operator/docs/alerts.md"
"""The page with a section for each alert."""
SELECTOR: Final = "$S"
"""The place of the label matchers in an expression."""


class Severity(StrEnum):
    """What an alert means for users."""

    CRITICAL = "critical"
    """Users lose service."""
    WARNING = "warning"
    """They will lose service, or have less of it."""
    INFO = "info"


class Alert(NamedTuple):
    """An alert. `expr`: with SELECTOR for the labels. `pending`: the time until it fires, such as `5m`.

    `summary`, `description`: with Go templates for labels and the value. `alone`: a further expression, which needs the
    name of the cache.
    """

    name: str
    severity: Severity
    pending: str
    expr: str
    summary: str
    description: str
    alone: str = ""


def alert_rule(alert: Alert, expr: str) -> Object:
    """The rule of an alert with a complete expression."""
    return {
        "alert": alert.name,
        "expr": expr,
        "for": alert.pending,
        "labels": {"severity": alert.severity.value},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{PAGE}#{alert.name.lower()}",
        },
    }


def marker(name: str, **labels: str) -> Object:
    """The rule of a series that exists while Prometheus evaluates the rules beside it."""
    return {"record": name, "expr": "vector(1)", **({"labels": labels} if labels else {})}


def unless(expr: str, name: str, *labels: str) -> str:
    """An expression without the results for which the series of a marker exists."""
    return f"({expr}) unless on ({', '.join(labels)}) {name}"
