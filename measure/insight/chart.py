"""The chart of docs/insight.md as SVG: measured hit ratios as lines, predicted ones as circles. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from insight.campaign import LARGER, Outcome
from pages.chart import Frame

FRAME: Final = Frame(height=420, right=210, first=0.375, last=2.0)
"""The axis has multiples of the present memory."""
COLORS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
"""One for each workload, legible on white and on dark pages, which show the chart on white."""
SIZES: Final = (0.5, 1.0, 1.25, 1.5, 2.0)


def svg(outcomes: Sequence[Outcome]) -> str:
    """The chart. Raises ValueError if there are more workloads than colors."""
    colored = list(zip(outcomes, COLORS[: len(outcomes)], strict=True))
    lines = (part for number, (each, color) in enumerate(colored) for part in _workload(each, color, number))
    return FRAME.svg([*FRAME.axes(SIZES, "memory, × the present size"), *lines])


def _workload(outcome: Outcome, color: str, number: int) -> Iterator[str]:
    yield FRAME.line(sorted((float(name), ratio) for name, ratio in outcome.measured.items()), color)
    yield from _circles(((factor, outcome.predicted.get(f"{factor:.4g}")) for factor in LARGER), color)
    yield from FRAME.legend(escape(outcome.workload), color, number)


def _circles(points: Iterable[tuple[float, float | None]], color: str) -> Iterator[str]:
    for size, ratio in points:
        if ratio is not None:
            x, y = FRAME.x(size), FRAME.y(ratio)
            yield f'<circle cx="{x}" cy="{y}" r="5" fill="none" stroke="{color}" stroke-width="2"/>'
