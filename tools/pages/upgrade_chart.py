"""The chart of docs/upgrade-memcached.md as SVG: the share of hits while caches are upgraded, second by second."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pages.chart import Frame

LINES: Final = (
    ("warm", "#059669", "3 with warmRestart"),
    ("cold", "#dc2626", "3 without it"),
    ("fleet", "#2563eb", "all 6"),
)
"""Name in the results, color and label."""
STEP: Final = 20
"""Seconds between two lines of the grid."""


def svg(shares: Mapping[str, Sequence[float]]) -> str:
    """The chart. `shares`: of the requests of each second, from 0 to 1, by the names in LINES."""
    seconds = len(shares[LINES[0][0]])
    frame = Frame(height=360, right=190, first=0, last=seconds - 1)
    return frame.svg([*frame.axes(range(0, seconds, STEP), "seconds"), *_lines(frame, shares)])


def _lines(frame: Frame, shares: Mapping[str, Sequence[float]]) -> Iterator[str]:
    for number, (name, color, label) in enumerate(LINES):
        yield frame.line(enumerate(shares[name]), color)
        yield from frame.legend(label, color, number)
