"""Write the dashboards in config/grafana. `--check` writes nothing and exits 1 if a file would change."""

import click

from dashboards.files import files
from project.generated import ROOT, check_option, write


@click.command(help=__doc__)
@check_option
def main(*, check: bool) -> None:
    """Write the files, or report those that are outdated."""
    write(ROOT, files(), check=check)


if __name__ == "__main__":
    main()
