"""A dashboard as the JSON that Grafana imports: schema 39 of Grafana 11, which later releases read too."""

from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import Any, Final

from dashboards.model import (
    GRID,
    SMALLEST_AXES,
    Dashboard,
    Graph,
    Panel,
    Query,
    Row,
    Stat,
    Table,
    Thresholds,
    Unit,
    Variable,
)
from dashboards.selectors import SELECTED

Object = dict[str, Any]
SCHEMA_VERSION: Final = 39
SOURCE: Final[Object] = {"type": "prometheus", "uid": "${datasource}"}
"""The data source that the variable of this name selects."""
MIN_COLUMN: Final = 90
"""Pixels of a table's column, at least: with Grafana's default of 150, our table is wider than a window of 1,200."""
TAG: Final = "memcached-operator"
"""The tag of all dashboards, by which they link to each other."""


def document(dashboard: Dashboard) -> Object:
    """The content of a dashboard's file."""
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
        "templating": {"list": [_data_source(), *map(_variable, dashboard.variables)]},
        "panels": list(_panels(dashboard)),
    }


def _link() -> Object:
    """The list of the other dashboards, with the same time range."""
    texts = {"title": "Memcached", "tooltip": "", "url": "", "icon": "external link"}
    flags = {"asDropdown": True, "includeVars": False, "keepTime": True, "targetBlank": False}
    return {"type": "dashboards", "tags": [TAG], **texts, **flags}


def _data_source() -> Object:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}


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
    """The headings and the panels with their places, numbered from 1."""
    number, top = 1, 0
    for row in dashboard.rows:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": _place(0, top, GRID, 1),
            "panels": [],
        }
        number, top = number + 1, top + 1
        for panel, place in _placed(row, top):
            yield {"id": number, **_panel(panel, dashboard.selector), "gridPos": place}
            number, top = number + 1, max(top, place["y"] + place["h"])


def _placed(row: Row, top: int) -> Iterator[tuple[Panel, Object]]:
    """The panels of a row with their places: beside each other, and below if the line is full."""
    left, height = 0, 0
    for panel in row.panels:
        if left + panel.width > GRID:
            left, top, height = 0, top + height, 0
        yield panel, _place(left, top, panel.width, panel.height)
        left, height = left + panel.width, max(height, panel.height)


def _place(left: int, top: int, width: int, height: int) -> Object:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel, selector: str) -> Object:
    match panel:
        case Stat():
            specific = _stat(panel, selector)
        case Graph():
            specific = _graph(panel, selector)
        case Table():
            specific = _table(panel, selector)
        case _:
            raise TypeError(f"unknown panel {type(panel).__name__}")
    return {"title": panel.title, "description": panel.description, "datasource": SOURCE, **specific}


def _target(number: int, query: Query, selector: str) -> Object:
    expr = query.expr.replace(SELECTED, selector)
    return {"refId": ascii_uppercase[number], "datasource": SOURCE, "expr": expr, "legendFormat": query.legend}


def _targets(queries: Sequence[Query], selector: str) -> list[Object]:
    return [{**_target(number, each, selector), "range": True} for number, each in enumerate(queries)]


def _thresholds(thresholds: Thresholds) -> Object:
    """The steps in Grafana's form: the first one has no value."""
    steps = [{"color": thresholds.base, "value": None}]
    steps += [{"color": color, "value": value} for value, color in thresholds.steps]
    return {"mode": "absolute", "steps": steps}


def _stat(panel: Stat, selector: str) -> Object:
    defaults: Object = {
        "unit": panel.unit,
        "color": {"mode": "thresholds"},
        "thresholds": _thresholds(panel.thresholds),
    }
    if panel.empty:
        defaults["noValue"] = panel.empty
    return {
        "type": "stat",
        "targets": _targets([Query(panel.expr)], selector),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "colorMode": "background_solid",
            "graphMode": "none",
            "justifyMode": "center",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "showPercentChange": False,
            "textMode": "value",
            "wideLayout": True,
        },
    }


def _graph(panel: Graph, selector: str) -> Object:
    custom: Object = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if panel.stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "axisPlacement": "auto",
        **({"axisSoftMax": SMALLEST_AXES[panel.unit]} if panel.unit in SMALLEST_AXES else {}),
        "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if panel.thresholds.steps else "off"},
    }
    defaults = {
        "unit": panel.unit,
        "min": 0,
        **({"max": 1} if panel.unit == Unit.SHARE else {}),
        "color": {"mode": "palette-classic"},
        "thresholds": _thresholds(panel.thresholds),
        "custom": custom,
    }
    return {
        "type": "timeseries",
        "targets": _targets(panel.queries, selector),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _table(panel: Table, selector: str) -> Object:
    queries = [Query(column.expr) for column in panel.columns]
    targets = [_target(number, each, selector) for number, each in enumerate(queries)]
    names = {f"Value #{ascii_uppercase[number]}": column.title for number, column in enumerate(panel.columns)}
    titles = {label: label.capitalize() for label in panel.labels}
    order = {name: number for number, name in enumerate((*panel.labels, *names))}
    organize = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": titles | names}
    return {
        "type": "table",
        "targets": [{**each, "format": "table", "instant": True} for each in targets],
        "transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}],
        "fieldConfig": {
            "defaults": {
                "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": MIN_COLUMN}
            },
            "overrides": list(_overrides(panel)),
        },
        "options": {
            "cellHeight": "sm",
            "frameIndex": 0,
            "showHeader": True,
            "sortBy": [{"displayName": panel.sort, "desc": True}],
        },
    }


def _overrides(panel: Table) -> Iterator[Object]:
    """The unit and the colors of each column, and the link of the last label."""
    for column in panel.columns:
        properties: list[Object] = [{"id": "unit", "value": column.unit}]
        if column.thresholds.steps:
            properties += [
                {"id": "thresholds", "value": _thresholds(column.thresholds)},
                {"id": "color", "value": {"mode": "thresholds"}},
                {"id": "custom.cellOptions", "value": {"type": "color-text"}},
            ]
        yield {"matcher": {"id": "byName", "options": column.title}, "properties": properties}
    if panel.link:
        link = {"title": "Open its dashboard", "url": panel.link}
        name = panel.labels[-1].capitalize()
        yield {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "links", "value": [link]}]}
