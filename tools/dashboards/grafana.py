"""Dashboards as the JSON that Grafana imports: schema 39 of Grafana 11, which later releases read too.

Widths and heights are in units of Grafana's grid: a dashboard is 24 wide, and a unit of height is 30 pixels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase
from typing import Any, Final, NamedTuple

from dashboards.selectors import SELECTED

Object = dict[str, Any]
GRID: Final = 24
"""The width of a dashboard."""
SCHEMA_VERSION: Final = 39
SOURCE: Final[Object] = {"type": "prometheus", "uid": "${datasource}"}
"""The data source that the variable of this name selects."""
MIN_COLUMN: Final = 90
"""Pixels of a table's column, at least: with Grafana's default of 150, our table is wider than a window of 1,200."""
TAG: Final = "memcached-operator"
"""The tag of all dashboards, by which they link to each other."""


class Unit(StrEnum):
    """How Grafana writes a value: identifiers of its list of units, and its form `count:` for other ones."""

    NUMBER = "short"
    SHARE = "percentunit"
    """From 0 to 1, written as percent."""
    BYTES = "bytes"
    BYTES_PER_SECOND = "binBps"
    SECONDS = "s"
    PROCESSORS = "count:CPU"
    REQUESTS = "reqps"
    ITEMS = "count:items/s"
    EVENTS = "count:/s"


SMALLEST_AXES: Final = {Unit.NUMBER: 1.0, Unit.PROCESSORS: 0.01, Unit.REQUESTS: 1.0, Unit.ITEMS: 1.0, Unit.EVENTS: 0.1}
"""The highest values of axes of graphs without higher values. Grafana's axis of a graph of zeros ends at 100."""
NEUTRAL, GOOD, WARNING, BAD = "blue", "green", "orange", "red"
"""Colors of Grafana's palette."""
Thresholds = Sequence[tuple[float | None, str]]
"""The color from each value on; that of the first step, None, is of all lower values."""
NONE: Final[Thresholds] = ((None, NEUTRAL),)
PROBLEMS: Final[Thresholds] = ((None, GOOD), (1, BAD))
"""Of a number of problems: each of them counts."""
NOTES: Final[Thresholds] = ((None, GOOD), (1, WARNING))
"""Of a number of things that deserve a look, and cost users nothing."""
DAY: Final = 86400.0
CERTIFICATE: Final[Thresholds] = ((None, BAD), (7 * DAY, WARNING), (21 * DAY, GOOD))
"""Of the seconds until a certificate expires. Certificates of 90 days are renewed 30 days before: docs/operating.md."""
CONNECTIONS: Final[Thresholds] = ((None, GOOD), (0.8, WARNING), (0.95, BAD))
"""Of the used share of the connection limit: near 1, memcached refuses clients."""


Rows = Mapping[str, Sequence[Object]]
"""Panels from left to right, by the heading above them."""


class Column(NamedTuple):
    """A column of a table: the values of one expression."""

    title: str
    expr: str
    unit: Unit = Unit.NUMBER
    thresholds: Thresholds = NONE


@dataclass(frozen=True)
class Variable:
    """A choice above the dashboard: the values of a label. `several`: also more than one, or all.

    `metric`: a selector of the series with the label. `pattern`: a regular expression whose group is the value.
    """

    name: str
    title: str
    metric: str
    label: str
    several: bool = False
    pattern: str = ""


@dataclass(frozen=True)
class Dashboard:
    """A dashboard. `uid`: its identifier in Grafana, and the name of its file.

    `selector`: the conditions that `SELECTED` in an expression stands for.
    """

    uid: str
    title: str
    description: str
    selector: str
    variables: Sequence[Variable]
    rows: Rows


def stat(
    title: str, description: str, expr: str, unit: Unit = Unit.NUMBER, thresholds: Thresholds = NONE, *, empty: str = ""
) -> Object:
    """A panel with the last value of one series, in the color of its threshold. `empty`: the text without a value.

    `description` of this and the other panels: the meaning, and what to do, in Markdown.
    """
    defaults = {"unit": unit, "color": {"mode": "thresholds"}, "thresholds": _thresholds(thresholds)}
    options: Object = {
        "colorMode": "background_solid",
        "graphMode": "none",
        "justifyMode": "center",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showPercentChange": False,
        "textMode": "value",
        "wideLayout": True,
    }
    return {
        **_panel(title, description, "stat"),
        "targets": _targets([("", expr)], range=True),
        "fieldConfig": {"defaults": defaults | ({"noValue": empty} if empty else {}), "overrides": []},
        "options": options,
        "gridPos": {"w": 4, "h": 4},
    }


def graph(
    title: str, description: str, queries: Mapping[str, str], unit: Unit = Unit.NUMBER, *,
    thresholds: Thresholds = NONE, stacked: bool = False, width: int = 8,
) -> Object:  # fmt: skip
    """A panel with series over time. `queries`: expressions by the names of their series, with labels as `{{pod}}`.

    `stacked`: as areas above each other. `thresholds`: dashed lines.
    """
    custom: Object = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "axisPlacement": "auto",
        **({"axisSoftMax": SMALLEST_AXES[unit]} if unit in SMALLEST_AXES else {}),
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if thresholds[1:] else "off"},
    }
    defaults = {
        "unit": unit,
        "min": 0,
        **({"max": 1} if unit == Unit.SHARE else {}),
        "color": {"mode": "palette-classic"},
        "thresholds": _thresholds(thresholds),
        "custom": custom,
    }
    options: Object = {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return {
        **_panel(title, description, "timeseries"),
        "targets": _targets(queries.items(), range=True),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "gridPos": {"w": width, "h": 8},
    }


def table(
    title: str, description: str, labels: Sequence[str], columns: Sequence[Column], *, sort: str, link: str = "",
    width: int = GRID,
) -> Object:  # fmt: skip
    """A panel with the present values of several expressions, in a row for each combination of `labels`.

    `sort`: the column whose highest value is first. `link`: the address that a click on the last label opens.
    """
    names = {f"Value #{letter}": column.title for letter, column in zip(ascii_uppercase, columns, strict=False)}
    titles = {label: label.capitalize() for label in labels}
    order = {name: number for number, name in enumerate((*labels, *names))}
    organize = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": titles | names}
    cells = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": MIN_COLUMN}
    overrides = [_override(each.title, _column(each)) for each in columns]
    if link:
        opened = [{"title": "Open its dashboard", "url": link}]
        overrides.append(_override(labels[-1].capitalize(), [{"id": "links", "value": opened}]))
    return {
        **_panel(title, description, "table"),
        "targets": _targets([("", each.expr) for each in columns], format="table", instant=True),
        "transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}],
        "fieldConfig": {"defaults": {"custom": cells}, "overrides": overrides},
        "options": {
            "cellHeight": "sm",
            "frameIndex": 0,
            "showHeader": True,
            "sortBy": [{"displayName": sort, "desc": True}],
        },
        "gridPos": {"w": width, "h": 8},
    }


def _panel(title: str, description: str, kind: str) -> Object:
    return {"title": title, "description": description, "datasource": SOURCE, "type": kind}


def _targets(queries: Iterable[tuple[str, str]], **more: object) -> list[Object]:
    """The queries, with the letters by which other parts of a panel name them."""
    return [
        {"refId": letter, "datasource": SOURCE, "expr": expr, "legendFormat": legend, **more}
        for letter, (legend, expr) in zip(ascii_uppercase, queries, strict=False)
    ]


def _thresholds(steps: Thresholds) -> Object:
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in steps]}


def _override(column: str, properties: list[Object]) -> Object:
    return {"matcher": {"id": "byName", "options": column}, "properties": properties}


def _column(column: Column) -> list[Object]:
    """The unit and the colors of a column."""
    colors = [
        {"id": "thresholds", "value": _thresholds(column.thresholds)},
        {"id": "color", "value": {"mode": "thresholds"}},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
    ]
    return [{"id": "unit", "value": column.unit}, *(colors if column.thresholds[1:] else [])]


def document(dashboard: Dashboard) -> Object:
    """The content of a dashboard's file."""
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [_link()],
        "templating": {"list": [source, *map(_variable, dashboard.variables)]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_panels(dashboard), start=1)],
    }


def _link() -> Object:
    """The list of the other dashboards, with the same time range."""
    texts = {"title": "Memcached", "tooltip": "", "url": "", "icon": "external link"}
    flags = {"asDropdown": True, "includeVars": False, "keepTime": True, "targetBlank": False}
    return {"type": "dashboards", "tags": [TAG], **texts, **flags}


def _variable(variable: Variable) -> Object:
    query = f"label_values({variable.metric}, {variable.label})"
    found: Object = {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": SOURCE,
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "sort": 1,
        "multi": variable.several,
        "includeAll": variable.several,
    }
    if variable.several:
        found |= {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}
    if variable.pattern:
        found["regex"] = f"/^{variable.pattern}$/"
    return found


def _panels(dashboard: Dashboard) -> Iterator[Object]:
    """The headings and the panels with their places: beside each other, and below if the line is full."""
    top = 0
    for title, panels in dashboard.rows.items():
        heading = {"x": 0, "y": top, "w": GRID, "h": 1}
        yield {"type": "row", "title": title, "collapsed": False, "gridPos": heading, "panels": []}
        left, top, height = 0, top + 1, 0
        for panel in panels:
            size = panel["gridPos"]
            if left + size["w"] > GRID:
                left, top, height = 0, top + height, 0
            targets = [
                {**each, "expr": each["expr"].replace(SELECTED, dashboard.selector)} for each in panel["targets"]
            ]
            yield {**panel, "targets": targets, "gridPos": {"x": left, "y": top, **size}}
            left, height = left + size["w"], max(height, size["h"])
        top += height
