"""The chart of docs/upgrade-memcached.md as SVG: the share of hits while caches are upgraded, second by second."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

WIDTH, HEIGHT = 880, 360
LEFT, TOP, RIGHT, BOTTOM = 60, 20, 190, 50
"""The margins around the axes, in pixels. The legend is in the right one."""
SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
STEP: Final = 20
"""The lines of the grid: at these shares, and every so many seconds."""
LINES: Final = (
    ("warm", "#059669", "3 with warmRestart"),
    ("cold", "#dc2626", "3 without it"),
    ("fleet", "#2563eb", "all 6"),
)
"""Name in the results, color and label."""


def svg(shares: Mapping[str, Sequence[float]]) -> str:
    """The chart. `shares`: of the requests of each second, from 0 to 1, by the names in LINES."""
    seconds = len(shares[LINES[0][0]])
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(seconds),
        *_lines(shares, seconds),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(seconds: int) -> Iterator[str]:
    bottom, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    for share in SHARES:
        y = _y(share)
        yield f'<line x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}" stroke="#d1d5db"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end" fill="#374151">{100 * share:.0f} %</text>'
    for second in range(0, seconds, STEP):
        x = _x(second, seconds)
        yield f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#d1d5db"/>'
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#374151">{second}</text>'
    yield f'<text x="{(LEFT + end) / 2:g}" y="{HEIGHT - 10}" text-anchor="middle" fill="#374151">seconds</text>'


def _lines(shares: Mapping[str, Sequence[float]], seconds: int) -> Iterator[str]:
    """Each line and its entry in the legend."""
    x = WIDTH - RIGHT + 20
    for number, (name, color, label) in enumerate(LINES):
        points = " ".join(f"{_x(second, seconds)},{_y(share)}" for second, share in enumerate(shares[name]))
        y = TOP + 16 + 24 * number
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{color}" stroke-width="2"/>'
        yield f'<text x="{x + 32}" y="{y}" fill="#111827">{label}</text>'


def _x(second: int, seconds: int) -> float:
    return round(LEFT + second / (seconds - 1) * (WIDTH - RIGHT - LEFT), 1)


def _y(share: float) -> float:
    return round(TOP + (1 - share) * (HEIGHT - BOTTOM - TOP), 1)
