"""Each expression of a dashboard is valid PromQL, and names only metrics that exist."""

import re
from typing import Any

import promql_parser
import pytest

from dashboards.files import DASHBOARDS
from dashboards.grafana import Dashboard, document

from . import exposed

EXPOSED = {"memcached-fleet": exposed.caches, "memcached-cache": exposed.caches, "memcached-operator": exposed.operator}
NAME = "__name__"
VARIABLE = re.compile(r"\$(\w+)")
OF_GRAFANA = {"__rate_interval"}
NOT_VARIABLES = {"1", "2"}
"""The groups of a regular expression in `label_replace`."""


def targets(dashboard: Dashboard) -> dict[str, str]:
    """The expressions in the JSON of a dashboard, by the panel's title and the letter of the query."""
    panels = [each for each in document(dashboard)["panels"] if each["type"] != "row"]
    return {
        f"{each['title']} {each['id']}{query['refId']}": query["expr"] for each in panels for query in each["targets"]
    }


def selected(dashboard: Dashboard) -> dict[str, str]:
    """The selectors of the variables."""
    return {each.name: each.metric for each in dashboard.variables}


def selectors(expr: str) -> list[dict[str, set[str]]]:
    """The conditions of each selector, by label. Raises ValueError for an invalid expression."""
    nodes: list[Any] = []
    promql_parser.walk(promql_parser.parse(expr.replace("$__rate_interval", "5m")), nodes.append)
    return [conditions(each) for each in nodes if isinstance(each, promql_parser.VectorSelector)]


def conditions(selector: promql_parser.VectorSelector) -> dict[str, set[str]]:
    """The values, or regular expressions, of each label."""
    found = {NAME: {selector.name}} if selector.name else {}
    for each in selector.matchers.matchers:
        found.setdefault(each.name, set()).add(each.value)
    return found


def names(expr: str) -> set[str]:
    """The metrics that an expression names; those of a regular expression as its text."""
    return {name for each in selectors(expr) for name in each[NAME]}


def unknown(expr: str, metrics: set[str]) -> list[str]:
    """The metrics that an expression names, and that do not exist. Each part of a regular expression must match one."""
    parts = [part for name in names(expr) for part in expanded(name)]
    return sorted(part for part in parts if part not in metrics)


def expanded(name: str) -> list[str]:
    """The alternatives of `a|b`, or of `a_(b|c)_d`."""
    before, _, rest = name.partition("(")
    group, _, after = rest.partition(")")
    return [before + each + after for each in group.split("|")] if rest else name.split("|")


EXPRESSIONS = [
    (dashboard, name, expr)
    for dashboard in DASHBOARDS
    for name, expr in (targets(dashboard) | selected(dashboard)).items()
]


@pytest.mark.parametrize(
    ("dashboard", "expr"),
    [pytest.param(dashboard, expr, id=f"{dashboard.uid}-{name}") for dashboard, name, expr in EXPRESSIONS],
)
def test_expression_is_valid_and_its_metrics_exist(dashboard: Dashboard, expr: str) -> None:
    metrics = EXPOSED[dashboard.uid]()
    assert names(expr)
    assert unknown(expr, metrics) == []
    variables = {each.name for each in dashboard.variables} | OF_GRAFANA | NOT_VARIABLES
    assert set(VARIABLE.findall(expr)) <= variables
    assert "SELECTED" not in expr


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)
def test_each_query_is_limited_to_the_selected_pods(dashboard: Dashboard) -> None:
    (wanted,) = selectors(f"{{{dashboard.selector}}}")
    for title, expr in targets(dashboard).items():
        for each in selectors(expr):
            assert wanted.items() <= each.items(), title
