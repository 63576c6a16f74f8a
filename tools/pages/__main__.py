"""Write the generated blocks of pages. `--check` writes nothing and exits 1 if a page would change."""

from pathlib import Path

import click
import msgspec

import bench.report
import faults.pages
from bench.__main__ import PUBLISHED
from faults.campaigns import soak
from pages import effects, kubernetes, problems, security, share_charts
from pages.blocks import filled
from project.generated import ROOT, check_option, write

CHARTS = {"upgrade": share_charts.UPGRADE, "scaling": share_charts.SCALING}
"""The charts by name: docs/NAME-results.json is drawn in docs/images/NAME.svg."""


def files(root: Path = ROOT) -> dict[str, str]:
    """The text of each page, and the charts of some of them, by path below the project's root."""
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
    return {**pages, **{f"docs/images/{name}.svg": _drawn(root, name) for name in CHARTS}}


def _drawn(root: Path, name: str) -> str:
    """A chart of CHARTS."""
    results = (root / f"docs/{name}-results.json").read_bytes()
    return share_charts.svg(CHARTS[name], msgspec.json.decode(results, type=dict[str, list[float]]))


@click.command(help=__doc__)
@check_option
def main(*, check: bool) -> None:
    """Write the pages, or report those that are outdated."""
    write(ROOT, files(), check=check)


if __name__ == "__main__":
    main()
