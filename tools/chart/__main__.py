"""The command line of `python -m chart`. `--check` writes nothing and exits 1 if a file would change."""

from dataclasses import replace
from pathlib import Path

import click

from bundle.__main__ import agent_image_option, date_option, image_option, output_option, version_option
from bundle.objects import mapping
from bundle.release import PACKAGE, ROOT, released
from chart.generate import FOLDER, PAGE, archive, chart_files, page
from chart.sources import rendered
from cluster.errors import exit_on_error
from project.generated import check_option, read_tree, write


@click.group()
def main() -> None:
    """Generate the Helm chart (charts/) from config/, and pack it."""


@main.command()
@version_option
@date_option
@image_option
@agent_image_option
@output_option
@check_option
def generate(version: str, date: str, image: str, agent_image: str, output: Path, check: bool) -> None:
    """Write charts/ and the table of its values in the docs."""
    release = released(version, date)
    if image or agent_image:
        release = replace(release, image=image, agent_image=agent_image)
    sources = rendered()
    files = {f"{FOLDER}/{path}": text for path, text in chart_files(sources, release).items()}
    files[PAGE] = page((ROOT / PAGE).read_text(encoding="utf-8"), sources, release)
    write(output, files, FOLDER, check=check, command="make chart")


@main.command()
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=ROOT / "dist", help="Directory [dist/]."
)
def package(output: Path) -> None:
    """Write charts/ as OUTPUT/memcached-operator-VERSION.tgz; the same files give the same bytes."""
    found = read_tree(ROOT / FOLDER, ".")
    target = output / f"{PACKAGE}-{mapping(found['Chart.yaml'], 'Chart.yaml')['version']}.tgz"
    output.mkdir(parents=True, exist_ok=True)
    target.write_bytes(archive(found))
    click.echo(f"wrote {target}")


if __name__ == "__main__":
    exit_on_error(main)
