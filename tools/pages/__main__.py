"""Write the generated blocks of pages. `--check` writes nothing and exits 1 if a page would change."""

from pathlib import Path

import click
import msgspec

import bench.report
import faults.report
import insight.chart
import insight.report
from bench.__main__ import PUBLISHED
from crds.__main__ import ROOT, check_option, write
from faults.__main__ import all_cases
from insight.__main__ import published as published_curves
from pages import effects, kubernetes, security
from pages.blocks import filled


def files(root: Path = ROOT) -> dict[Path, str]:
    """The text of each page, and the chart of one of them, by path below the project's root."""
    speed = msgspec.json.decode(PUBLISHED.read_bytes(), type=bench.report.Published)
    cases, results = all_cases(), faults.report.decoded(faults.report.PUBLISHED.read_text(encoding="utf-8"))
    blocks = {
        "docs/security.md": security.blocks(root),
        "docs/reliability.md": faults.report.blocks(cases, results),
        "docs/performance.md": bench.report.blocks(speed),
        "docs/insight.md": insight.report.blocks(published_curves()),
        "docs/warm.md": effects.blocks(),
        "docs/install.md": kubernetes.blocks(),
    }
    pages = {Path(page): filled((root / page).read_text(encoding="utf-8"), found) for page, found in blocks.items()}
    return {**pages, Path("docs/images/insight.svg"): insight.chart.svg(published_curves().outcomes)}


@click.command(help=__doc__)
@check_option
def main(*, check: bool) -> None:
    """Write the pages, or report those that are outdated."""
    write(files(), check=check)


if __name__ == "__main__":
    main()
