"""What a dashboard shows of the started processes."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dashboards.files import DASHBOARDS
from dashboards.grafana import Dashboard, document
from grafana.caches import CACHES, Cache, Pod
from grafana.processes import NAMESPACE
from grafana.values import ALL, filled
from support.prometheus import Prometheus

FLEET, CACHE, OPERATOR = DASHBOARDS
Series = dict[str, Any]


@dataclass(frozen=True)
class World:
    """The processes, and the Prometheus that scrapes them."""

    pods: list[Pod]
    server: Prometheus

    def pods_of(self, cache: Cache) -> list[Pod]:
        """The pods of a cache."""
        return [pod for pod in self.pods if pod.cache == cache]

    def values(self, expr: str, variables: Mapping[str, str]) -> list[Series]:
        """The present series of an expression that have a number."""
        found = self.server.query(filled(expr, variables))
        return [each for each in found if not math.isnan(float(each["value"][1]))]

    def stat(self, dashboard: Dashboard, title: str, variables: Mapping[str, str]) -> float | None:
        """The value of a panel with one; None if it has none."""
        (panel,) = [each for each in panels(dashboard) if (each["type"], each["title"]) == ("stat", title)]
        found = self.values(panel["targets"][0]["expr"], variables)
        return float(found[0]["value"][1]) if found else None

    def is_stat(
        self, dashboard: Dashboard, title: str, variables: Mapping[str, str], value: float
    ) -> Callable[[], bool]:
        """A condition: a panel has this value."""
        return lambda: self.stat(dashboard, title, variables) == value


def choices(dashboard: Dashboard) -> list[dict[str, str]]:
    """The values of the variables: each cache, for the dashboard of one."""
    if dashboard is FLEET:
        return [{"namespace": ALL}]
    if dashboard is OPERATOR:
        return [{"namespace": NAMESPACE}]
    return [selected(each) for each in CACHES]


def selected(cache: Cache) -> dict[str, str]:
    """The values of the variables for one cache."""
    return {"namespace": cache.namespace, "cache": cache.name, "pod": ALL}


def panels(dashboard: Dashboard) -> list[Series]:
    """The panels of the file, without headings."""
    return [each for each in document(dashboard)["panels"] if each["type"] != "row"]


def expressions(dashboard: Dashboard) -> Iterator[tuple[str, str]]:
    """The title and the expression of each query."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
