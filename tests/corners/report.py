"""The table of docs/sizing-measurements.md: `python -m corners.report` writes it from the last measurements."""

from collections.abc import Sequence
from typing import Final

import msgspec

from cluster.public.releases import VERSIONS
from corners.memory import Measurement, cases, mebibytes
from pages import blocks
from project.generated import ROOT

RESULTS: Final = ROOT / "build/corners/memory.json"
"""The last measurement of each case."""
DOCUMENT: Final = ROOT / "docs/sizing-measurements.md"
BLOCK: Final = "memory"
"""The generated block of the page."""
COLUMNS: Final = ("`spec.cache`", "Load", *VERSIONS, "Sockets", "Minimum limit", "Margin", "Derived limit")


def kept() -> dict[str, Measurement]:
    """The measurements of earlier runs, by the names of their cases."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, Measurement]) if RESULTS.exists() else {}


def keep(found: Measurement) -> None:
    """Store a measurement in place of an earlier one of the same case."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(kept() | {found.name: found})))


def table(found: Sequence[Measurement]) -> str:
    """A Markdown table in MiB: one row for each settings and load, with the peak of every release of memcached."""
    names = dict.fromkeys((each.settings, each.load) for each in found)
    lines = [_cells([each for each in found if (each.settings, each.load) == name]) for name in names]
    return blocks.table([COLUMNS, *lines])


def _cells(same: Sequence[Measurement]) -> list[str]:
    first, peak = same[0], max(each.peak for each in same)
    peaks = {each.version: mebibytes(each.peak) for each in same}
    sockets = max(each.sockets for each in same)
    amounts = (sockets, first.floor, first.floor - peak, first.limit)
    settings = ", ".join(first.settings.split(" ")).replace("=", ": ")
    return [f"`{settings}`", first.load, *(peaks.get(each, "–") for each in VERSIONS), *map(mebibytes, amounts)]


def main() -> None:
    """Write the table. Its rows are in the order of the cases."""
    known = kept()
    names = [f"{version}/{case.name}" for version in VERSIONS for case in cases()]
    text = table([known[name] for name in names if name in known])
    DOCUMENT.write_text(blocks.filled(DOCUMENT.read_text(), {BLOCK: text}))


if __name__ == "__main__":
    main()
