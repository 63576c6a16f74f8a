"""The command line of `python -m crds`. `--check` writes nothing and exits 1 if a file would change."""

import json
from pathlib import Path

import click

from crds import config, plugin, snapshot
from crds.docs import page
from crds.registered import REGISTERED
from memcached_api.registry import KINDS
from project.generated import ROOT, check_option, write


@click.group()
def main() -> None:
    """Write what follows from the registered kinds: files in config/, the API reference, the plugin's remedies."""


@main.command()
@check_option
def manifests(*, check: bool) -> None:
    """Write the CRDs, the roles, the webhook configurations and the policy's owners in config/."""
    write(ROOT, config.files(REGISTERED, ROOT), check=check)


@main.command()
@check_option
def docs(*, check: bool) -> None:
    """Write docs/api.md, and the plugin's remedies, effects and known problems."""
    write(ROOT, {"docs/api.md": page(KINDS), **plugin.modules()}, check=check)


@main.command("snapshot")
@click.argument("document", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def refresh(document: Path) -> None:
    """Take Kubernetes' own types from DOCUMENT: the output of `kubectl get --raw /openapi/v3/api/v1`."""
    spec = json.loads(document.read_text(encoding="utf-8"))
    snapshot.FILE.write_text(snapshot.extract(spec), encoding="utf-8")
    click.echo(f"wrote {snapshot.FILE.name}")


if __name__ == "__main__":
    main()
