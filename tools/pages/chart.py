"""What the charts of pages share: an SVG with shares from 0 to 1 over a horizontal axis, and a legend at the right."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 880
LEFT, TOP, BOTTOM = 60, 20, 50
"""The margins around the axes, in pixels, without that of the legend."""
RATIOS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The horizontal lines of the grid."""


@dataclass(frozen=True)
class Frame:
    """The area of a chart. `height`, `right`: in pixels, the latter of the legend. `first`, `last`: of the axis."""

    height: int
    right: int
    first: float
    last: float

    def svg(self, content: Iterable[str]) -> str:
        """The document."""
        box = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="13">',
            f'<rect width="{WIDTH}" height="{self.height}" fill="#ffffff"/>',
            *content,
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def axes(self, marks: Iterable[float], label: str) -> Iterator[str]:
        """The grid with its numbers. `marks`: on the horizontal axis."""
        bottom, end = self.height - BOTTOM, WIDTH - self.right
        for ratio in RATIOS:
            y = self.y(ratio)
            yield f'<line x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}" stroke="#d1d5db"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end" fill="#374151">{100 * ratio:.0f} %</text>'
        for mark in marks:
            x = self.x(mark)
            yield f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="#d1d5db"/>'
            yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#374151">{mark:g}</text>'
        middle = (LEFT + end) / 2
        yield f'<text x="{middle:g}" y="{self.height - 10}" text-anchor="middle" fill="#374151">{label}</text>'

    def line(self, points: Iterable[tuple[float, float]], color: str) -> str:
        """A line through points."""
        listed = " ".join(f"{self.x(value)},{self.y(ratio)}" for value, ratio in points)
        return f'<polyline points="{listed}" fill="none" stroke="{color}" stroke-width="2"/>'

    def legend(self, label: str, color: str, number: int) -> Iterator[str]:
        """The entry of a line. `label`: escaped. `number`: from the top, from 0."""
        x, y = WIDTH - self.right + 20, TOP + 16 + 24 * number
        yield f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{color}" stroke-width="2"/>'
        yield f'<text x="{x + 32}" y="{y}" fill="#111827">{label}</text>'

    def x(self, value: float) -> float:
        """The horizontal place of a value."""
        return round(LEFT + (value - self.first) / (self.last - self.first) * (WIDTH - self.right - LEFT), 1)

    def y(self, ratio: float) -> float:
        """The vertical place of a share."""
        return round(TOP + (1 - ratio) * (self.height - BOTTOM - TOP), 1)
