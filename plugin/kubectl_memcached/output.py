"""Tables, sentences and JSON on standard output. Colors appear only on a terminal without NO_COLOR."""

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_WIDTH: Final = 200
"""Columns if the output is not a terminal and COLUMNS is not set, so that a row is one line for grep."""

GOOD, BAD, WARN, DIM, TITLE = "green", "red", "yellow", "dim", "bold"


def console() -> Console:
    """Standard output."""
    stdout = Console(highlight=False, markup=False, emoji=False)
    if not stdout.is_terminal and "COLUMNS" not in os.environ:
        stdout.width = PIPED_WIDTH
    return stdout


def print_json(content: Any) -> None:
    """Write a document as JSON."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def table(*columns: str, right: Sequence[str] = (), folded: Sequence[str] = (), gap: int = 2) -> Table:
    """An empty table. `right`: columns of numbers. `folded`: columns that are wrapped first. `gap`: spaces
    between columns.

    No cell is truncated: the rest is wrapped to the next line.
    """
    grid = Table(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style=TITLE)
    for name in columns:
        grid.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=name not in folded,
            min_width=min(8, len(name)) if name in folded else None,
        )
    return grid


def without_empty(
    names: Sequence[str], rows: Iterable[Sequence[str | Text]], kept: int
) -> tuple[list[str], list[list[str | Text]]]:
    """Names and rows without the columns that are unknown in all rows. The first `kept` columns are kept."""
    listed = [list(row) for row in rows]
    shown = [
        index for index in range(len(names)) if index < kept or any(str(row[index]) not in ("", "-") for row in listed)
    ]
    return [names[index] for index in shown], [[row[index] for index in shown] for row in listed]


def bullet(sentence: str, width: int) -> Text:
    """An item of a list, on several lines if it is longer than `width` columns."""
    lines = textwrap.wrap(sentence, width - 2, break_long_words=False, break_on_hyphens=False)
    return Text("• " + "\n  ".join(lines))


def state(text: str, style: str) -> Text:
    """A colored word."""
    return Text(text, style=style)
