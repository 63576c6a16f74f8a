"""The charts of docs/upgrade-memcached.md and docs/warm-scaling.md as SVG: the share of hits, second by second."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

WIDTH, HEIGHT = 880, 360
LEFT, TOP, RIGHT, BOTTOM = 60, 20, 190, 50
"""The margins around the axes, in pixels. The legend is in the right one."""


class Line(NamedTuple):
    """A line of a chart. `name`: in the results."""

    name: str
    color: str
    label: str


class Chart(NamedTuple):
    """A chart. The grid has lines at `shares`, which rise from the lowest one to 1, and every `step` seconds."""

    lines: tuple[Line, ...]
    shares: tuple[float, ...]
    step: int


UPGRADE: Final = Chart(
    (
        Line("warm", "#059669", "3 with warmRestart"),
        Line("cold", "#dc2626", "3 without it"),
        Line("fleet", "#2563eb", "all 6"),
    ),
    (0.0, 0.25, 0.5, 0.75, 1.0),
    20,
)
"""Of docs/upgrade-results.json, which tests/incidents/test_fleet.py measures."""
SCALING: Final = Chart(
    (
        Line("long", "#059669", "phases, 45 s"),
        Line("short", "#2563eb", "phases, 12 s"),
        Line("plain", "#dc2626", "plain change"),
    ),
    (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    10,
)
"""Of docs/scaling-results.json, which tests/integration/test_scaling_hits.py measures."""


def svg(chart: Chart, shares: Mapping[str, Sequence[float]]) -> str:
    """The chart. `shares`: of the requests of each second, from 0 to 1, by the names of its lines."""
    seconds = len(shares[chart.lines[0].name])
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(chart, seconds),
        *_lines(chart, shares, seconds),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(chart: Chart, seconds: int) -> Iterator[str]:
    bottom, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    for share in chart.shares:
        y = _y(chart, share)
        yield f'<line x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}" stroke="#d1d5db"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end" fill="#374151">{100 * share:.0f} %</text>'
    for second in range(0, seconds, chart.step):
        x = _x(second, seconds)
        yield f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#d1d5db"/>'
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#374151">{second}</text>'
    yield f'<text x="{(LEFT + end) / 2:g}" y="{HEIGHT - 10}" text-anchor="middle" fill="#374151">seconds</text>'


def _lines(chart: Chart, shares: Mapping[str, Sequence[float]], seconds: int) -> Iterator[str]:
    """Each line and its entry in the legend."""
    x = WIDTH - RIGHT + 20
    for number, (name, color, label) in enumerate(chart.lines):
        points = " ".join(f"{_x(second, seconds)},{_y(chart, share)}" for second, share in enumerate(shares[name]))
        y = TOP + 16 + 24 * number
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{color}" stroke-width="2"/>'
        yield f'<text x="{x + 32}" y="{y}" fill="#111827">{label}</text>'


def _x(second: int, seconds: int) -> float:
    return round(LEFT + second / (seconds - 1) * (WIDTH - RIGHT - LEFT), 1)


def _y(chart: Chart, share: float) -> float:
    return round(TOP + (1 - share) / (1 - chart.shares[0]) * (HEIGHT - BOTTOM - TOP), 1)
