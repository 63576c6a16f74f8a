"""Write the generated blocks of pages. `--check` writes nothing and exits 1 if a page would change."""

from pathlib import Path

import click

from crds.__main__ import ROOT, check_option, write
from faults import report
from faults.__main__ import all_cases
from faults.report import PUBLISHED, decoded
from pages import security
from pages.blocks import filled


def files(root: Path = ROOT) -> dict[Path, str]:
    """The text of each page, by path below the project's root."""
    cases, results = all_cases(), decoded(PUBLISHED.read_text(encoding="utf-8"))
    blocks = {
        "docs/security.md": security.blocks(root),
        "docs/reliability.md": report.blocks(cases, results),
    }
    return {Path(page): filled((root / page).read_text(encoding="utf-8"), found) for page, found in blocks.items()}


@click.command(help=__doc__)
@check_option
def main(*, check: bool) -> None:
    """Write the pages, or report those that are outdated."""
    write(files(), check=check)


if __name__ == "__main__":
    main()
