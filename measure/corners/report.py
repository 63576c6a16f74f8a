"""The table of the memory measurements: for the terminal and docs/sizing-measurements.md. All but `write` is pure."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cluster.public.releases import VERSIONS
from corners.memory import Measurement, mebibytes
from pages import blocks

Case = tuple[str, str, str]
"""Release, settings and load."""

BLOCK: Final = "memory"
"""The generated block of docs/sizing-measurements.md."""
HEADINGS: Final = ("memcached", "settings", "load", "peak", "sockets", "floor", "margin", "limit", "result")
COLUMNS: Final = ("`spec.cache`", "Load", *VERSIONS, "Sockets", "Minimum limit", "Margin", "Derived limit")


def rows(found: Iterable[Measurement]) -> list[tuple[str, ...]]:
    """One row per measurement, all amounts in MiB. The margin is that of the floor above the peak."""
    return [HEADINGS, *map(_row, found)]


def _row(found: Measurement) -> tuple[str, ...]:
    amounts = (found.peak, found.sockets, found.floor, found.floor - found.peak, found.limit)
    return (found.version, found.settings, found.load, *map(mebibytes, amounts), found.problem or "ok")


def merged(before: Iterable[Measurement], now: Iterable[Measurement]) -> list[Measurement]:
    """Earlier measurements, each replaced by a later one of the same case."""
    found = {_case(each): each for each in (*before, *now)}
    return list(found.values())


def sorted_by(order: Sequence[Case], found: Iterable[Measurement]) -> list[Measurement]:
    """The measurements of these cases, in their order."""
    known = {_case(each): each for each in found}
    return [known[case] for case in order if case in known]


def _case(found: Measurement) -> Case:
    return found.version, found.settings, found.load


def table(found: Sequence[Measurement]) -> str:
    """A Markdown table in MiB: one row for each settings and load, with the peak of every release of memcached."""
    cases = dict.fromkeys((each.settings, each.load) for each in found)
    lines = [_cells([each for each in found if (each.settings, each.load) == case]) for case in cases]
    return blocks.table([COLUMNS, *lines])


def _cells(same: Sequence[Measurement]) -> list[str]:
    first, peak = same[0], max(each.peak for each in same)
    peaks = {each.version: mebibytes(each.peak) for each in same}
    sockets = max(each.sockets for each in same)
    amounts = (sockets, first.floor, first.floor - peak, first.limit)
    settings = ", ".join(first.settings.split(" ")).replace("=", ": ")
    return [f"`{settings}`", first.load, *(peaks.get(each, "–") for each in VERSIONS), *map(mebibytes, amounts)]


def write(document: Path, found: Sequence[Measurement]) -> None:
    """Replace the generated block of the document; everything else stays. Raises LookupError without the block."""
    document.write_text(blocks.filled(document.read_text(), {BLOCK: table(found)}))
