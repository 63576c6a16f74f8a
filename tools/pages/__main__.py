"""Write the generated blocks of pages. `--check` writes nothing and exits 1 if a page would change."""

from pathlib import Path

import click
import msgspec

import bench.report
import faults.pages
from bench.__main__ import PUBLISHED
from faults.campaigns import soak
from pages import effects, kubernetes, problems, security, upgrade_chart
from pages.blocks import filled
from project.generated import ROOT, check_option, write

UPGRADE = Path("docs/upgrade-results.json")
"""What tests/incidents/test_fleet.py measured."""


def files(root: Path = ROOT) -> dict[str, str]:
    """The text of each page, and the chart of one of them, by path below the project's root."""
    speed = msgspec.json.decode(PUBLISHED.read_bytes(), type=bench.report.Published)
    blocks = {
        "docs/security.md": security.blocks(root),
        "docs/reliability.md": {**faults.pages.blocks(), "soak": soak.block()},
        "README.md": {"faults": faults.pages.summary()},
        "docs/performance.md": bench.report.blocks(speed),
        "docs/warm.md": effects.blocks(),
        "docs/install.md": kubernetes.blocks(),
        "docs/upgrade-memcached.md": problems.blocks(),
    }
    pages = {page: filled((root / page).read_text(encoding="utf-8"), found) for page, found in blocks.items()}
    shares = msgspec.json.decode((root / UPGRADE).read_bytes(), type=dict[str, list[float]])
    return {**pages, "docs/images/upgrade.svg": upgrade_chart.svg(shares)}


@click.command(help=__doc__)
@check_option
def main(*, check: bool) -> None:
    """Write the pages, or report those that are outdated."""
    write(ROOT, files(), check=check)


if __name__ == "__main__":
    main()
