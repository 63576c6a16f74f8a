"""The command line of `python -m plugin`."""

import tomllib
from pathlib import Path

import click

from cluster.errors import exit_on_error
from plugin.archives import LICENSE, PLUGIN, PROGRAM, executable, manifest, tarball_name
from plugin.sources import ROOT, packages, sources
from project.generated import packed
from release.commit.changelog import repository


@click.group()
def main() -> None:
    """Pack the kubectl plugin."""


@main.command()
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default=ROOT / "build/plugin")
@click.option("--archive-only", is_flag=True, help="Without the executable itself, as in a release.")
def package(output: Path, archive_only: bool) -> None:
    """Write the executable, its archive and krew's manifest into OUTPUT; the same files give the same bytes."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    program = executable({**packages(), **sources()}, version)
    archive = packed([(LICENSE, (ROOT / LICENSE).read_bytes(), 0o644), (PROGRAM, program, 0o755)])
    url = repository((ROOT / "CHANGELOG.md").read_text())
    output.mkdir(parents=True, exist_ok=True)
    (output / tarball_name(version)).write_bytes(archive)
    (output / f"{PLUGIN}.yaml").write_text(manifest(version, archive, url))
    if not archive_only:
        (output / PROGRAM).write_bytes(program)
        (output / PROGRAM).chmod(0o755)
    click.echo(f"wrote {output}")


if __name__ == "__main__":
    exit_on_error(main)
