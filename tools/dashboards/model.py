"""A dashboard as a list of rows of panels, without Grafana's layout and options.

Widths and heights are in units of Grafana's grid: a dashboard is 24 wide, and a unit of height is 30 pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

GRID: Final = 24
"""The width of a dashboard."""


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


class Color(StrEnum):
    """Colors of Grafana's palette."""

    NEUTRAL = "blue"
    GOOD = "green"
    WARNING = "orange"
    BAD = "red"


@dataclass(frozen=True)
class Thresholds:
    """The color of values below the first step, and the color from each step on."""

    base: Color = Color.NEUTRAL
    steps: Sequence[tuple[float, Color]] = ()


NONE: Final = Thresholds()
PROBLEMS: Final = Thresholds(Color.GOOD, ((1, Color.BAD),))
"""Of a number of problems: each of them counts."""
NOTES: Final = Thresholds(Color.GOOD, ((1, Color.WARNING),))
"""Of a number of things that deserve a look, and cost users nothing."""
DAY: Final = 86400.0
CERTIFICATE: Final = Thresholds(Color.BAD, ((7 * DAY, Color.WARNING), (21 * DAY, Color.GOOD)))
"""Of the seconds until a certificate expires. Certificates of 90 days are renewed 30 days before: docs/operating.md."""
CONNECTIONS: Final = Thresholds(Color.GOOD, ((0.8, Color.WARNING), (0.95, Color.BAD)))
"""Of the used share of the connection limit: near 1, memcached refuses clients."""


@dataclass(frozen=True)
class Query:
    """A PromQL expression. `legend`: the name of a series, with labels as `{{pod}}`."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """The parts that all panels have. `description`: the meaning, and what to do, in Markdown."""

    title: str
    description: str
    width: int = 8
    height: int = 8


@dataclass(frozen=True, kw_only=True)
class Stat(Panel):
    """The last value of one series, in the color of its threshold. `empty`: the text without a value."""

    expr: str
    unit: Unit = Unit.NUMBER
    thresholds: Thresholds = NONE
    empty: str = ""
    width: int = 4
    height: int = 4


@dataclass(frozen=True, kw_only=True)
class Graph(Panel):
    """Series over time. `stacked`: as areas above each other. `limit`: dashed lines at the thresholds."""

    queries: Sequence[Query]
    unit: Unit = Unit.NUMBER
    thresholds: Thresholds = NONE
    stacked: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table: the values of one expression."""

    title: str
    expr: str
    unit: Unit = Unit.NUMBER
    thresholds: Thresholds = NONE


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """The present values of several expressions, in a row for each combination of `labels`.

    `link`: the address that a click on the last label opens. `sort`: the column whose highest value is first.
    """

    labels: Sequence[str]
    columns: Sequence[Column]
    sort: str
    link: str = ""
    width: int = GRID
    height: int = 8


@dataclass(frozen=True)
class Row:
    """Panels below a heading, from left to right."""

    title: str
    panels: Sequence[Panel]


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
    rows: Sequence[Row]

    @property
    def panels(self) -> list[Panel]:
        """All panels, in their order."""
        return [panel for row in self.rows for panel in row.panels]


def expressions(panel: Panel) -> list[str]:
    """The expressions of a panel."""
    match panel:
        case Stat():
            return [panel.expr]
        case Graph():
            return [query.expr for query in panel.queries]
        case Table():
            return [column.expr for column in panel.columns]
        case _:
            raise TypeError(f"unknown panel {type(panel).__name__}")
