"""The chart of docs/insight.md as SVG: measured hit ratios as lines, predicted ones as circles. Pure functions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from insight.campaign import LARGER, Outcome

WIDTH: Final = 880
HEIGHT: Final = 420
LEFT, RIGHT, TOP, BOTTOM = 60, 210, 20, 50
"""The margins around the axes, in pixels, with the legend at the right."""
COLORS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
"""One for each workload, legible on white and on dark pages, which show the chart on white."""
SMALLEST, LARGEST = 0.375, 2.0
"""The sizes at the ends of the axis, as multiples of the present memory."""
SIZES: Final = (0.5, 1.0, 1.25, 1.5, 2.0)
RATIOS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


def svg(outcomes: Sequence[Outcome]) -> str:
    """The chart. Raises ValueError if there are more workloads than colors."""
    colored = list(zip(outcomes, COLORS[: len(outcomes)], strict=True))
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(),
        *(line for number, (each, color) in enumerate(colored) for line in _workload(each, color, number)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes() -> Iterator[str]:
    bottom, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    for ratio in RATIOS:
        y = _y(ratio)
        yield f'<line x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}" stroke="#d1d5db"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end" fill="#374151">{100 * ratio:.0f} %</text>'
    for size in SIZES:
        x = _x(size)
        yield f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#d1d5db"/>'
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#374151">{size:g}</text>'
    middle, label = (LEFT + end) / 2, "memory, × the present size"
    yield f'<text x="{middle:g}" y="{HEIGHT - 10}" text-anchor="middle" fill="#374151">{label}</text>'


def _workload(outcome: Outcome, color: str, number: int) -> Iterator[str]:
    measured = sorted((float(name), ratio) for name, ratio in outcome.measured.items())
    line = " ".join(f"{_x(size)},{_y(ratio)}" for size, ratio in measured)
    yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
    yield from _circles(((factor, outcome.predicted.get(f"{factor:.4g}")) for factor in LARGER), color)
    y = TOP + 16 + 24 * number
    x = WIDTH - RIGHT + 20
    yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{color}" stroke-width="2"/>'
    yield f'<text x="{x + 32}" y="{y}" fill="#111827">{escape(outcome.workload)}</text>'


def _circles(points: Iterable[tuple[float, float | None]], color: str) -> Iterator[str]:
    for size, ratio in points:
        if ratio is not None:
            yield f'<circle cx="{_x(size)}" cy="{_y(ratio)}" r="5" fill="none" stroke="{color}" stroke-width="2"/>'


def _x(size: float) -> float:
    return round(LEFT + (size - SMALLEST) / (LARGEST - SMALLEST) * (WIDTH - RIGHT - LEFT), 1)


def _y(ratio: float) -> float:
    return round(TOP + (1 - ratio) * (HEIGHT - BOTTOM - TOP), 1)
