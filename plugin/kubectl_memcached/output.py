"""Tables, sentences and JSON on standard output. Colors appear only on a terminal without NO_COLOR."""

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_memcached.model.printable import plain

PIPED_WIDTH: Final = 10**5
"""Columns if the output is not a terminal and COLUMNS is not set, so that a row is one line for grep."""
FOLDED_WIDTH: Final = 30
"""The smallest width of a column of sentences or keys that is longer: the rest is wrapped."""
_PADDING: Final = re.compile(r" +$", re.MULTILINE)

GOOD, BAD, WARN, DIM, TITLE = "green", "red", "yellow", "dim", "bold"

Cell = str | Text


def console() -> Console:
    """Standard output, without markup. A pipe has PIPED_WIDTH columns, unless COLUMNS is set."""
    stdout = Console(highlight=False, markup=False, emoji=False)
    if not stdout.is_terminal and "COLUMNS" not in os.environ:
        stdout.width = PIPED_WIDTH
    return stdout


def show(stdout: Console, *content: RenderableType) -> None:
    """Print without the spaces with which tables pad their lines."""
    with stdout.capture() as captured:
        for part in content or ("",):
            stdout.print(plain(part) if isinstance(part, str) else part)
    stdout.file.write(_PADDING.sub("", captured.get()))
    stdout.file.flush()  # so that a pipe that its reader has closed is an error here, and not when Python exits


def print_json(content: Any) -> None:
    """Write a document as JSON."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


class _Grid(Table):
    """A table whose cells cannot control the terminal."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row, with control characters of its strings replaced."""
        super().add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def table(*columns: str, right: Sequence[str] = (), folded: Sequence[str] = (), gap: int = 2) -> Table:
    """An empty table. `right`: columns of numbers. `folded`: columns that are wrapped first. `gap`: spaces
    between columns.

    No cell is truncated: the rest is wrapped to the next line.
    """
    grid = _Grid(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style=TITLE)
    for name in columns:
        grid.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=name not in folded,
            min_width=min(8, len(name)) if name in folded else None,
        )
    return grid


def tables(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    width: int,
    *,
    right: Sequence[str] = (),
    folded: Sequence[str] = (),
    gap: int = 2,
    styles: Sequence[str | None] = (),
) -> list[RenderableType]:
    """A table, or several tables below each other if its columns do not fit into the width.

    Each table repeats the first column, which names the row. `styles`: of the rows.
    """
    parts: list[RenderableType] = []
    for indexes in _groups(columns, rows, width, folded, gap):
        names = [columns[index] for index in indexes]
        fits = gap * (len(indexes) - 1) + sum(_width(columns, rows, index, folded) for index in indexes) <= width
        grid = table(*names, right=right, folded=folded if fits else [*folded, *names], gap=gap)
        for number, row in enumerate(rows):
            grid.add_row(*(row[index] for index in indexes), style=styles[number] if styles else None)
        parts += ["", grid] if parts else [grid]
    return parts


def _groups(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int, folded: Sequence[str], gap: int
) -> list[list[int]]:
    """The columns of each table, by their indexes: as many as fit beside the first one."""
    widths = [_width(columns, rows, index, folded) for index in range(len(columns))]
    groups, used = [[0]], widths[0]
    for index in range(1, len(columns)):
        if len(groups[-1]) > 1 and used + gap + widths[index] > width:
            groups.append([0])
            used = widths[0]
        groups[-1].append(index)
        used += gap + widths[index]
    return groups


def _width(columns: Sequence[str], rows: Sequence[Sequence[Cell]], index: int, folded: Sequence[str]) -> int:
    """The width that a column needs."""
    longest = max(cell_len(str(cell)) for cell in (columns[index], *(row[index] for row in rows)))
    return min(longest, FOLDED_WIDTH) if columns[index] in folded else longest


def without_empty(
    names: Sequence[str], rows: Iterable[Sequence[Cell]], kept: int
) -> tuple[list[str], list[list[Cell]]]:
    """Names and rows without the columns that are unknown in all rows. The first `kept` columns are kept."""
    listed = [list(row) for row in rows]
    shown = [
        index for index in range(len(names)) if index < kept or any(str(row[index]) not in ("", "-") for row in listed)
    ]
    return [names[index] for index in shown], [[row[index] for index in shown] for row in listed]


def bullet(sentence: str, width: int) -> str:
    """An item of a list, on several lines if it is longer than `width` columns."""
    lines = textwrap.wrap(sentence, width - 2, break_long_words=False, break_on_hyphens=False)
    return "• " + "\n  ".join(lines)


def styled(text: str, style: str) -> Text:
    """A text with a color or in bold."""
    return Text(plain(text), style=style)
