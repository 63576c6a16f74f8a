"""The command line of `python -m crds`. `--check` writes nothing and exits 1 if a file would change."""

import json
import sys
from pathlib import Path
from typing import Final

import click

from crds import config, snapshot
from crds.docs import page
from crds.registered import REGISTERED
from crds.remedies import module
from memcached_api.registry import KINDS

ROOT: Final = Path(__file__).resolve().parents[2]

check_option: Final = click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is outdated.")


def write(files: dict[Path, str], *, check: bool, root: Path = ROOT) -> None:
    """Bring the files up to date, or end with exit code 1, naming those that are not."""
    outdated = [path for path, text in files.items() if _read(root / path) != text]
    if check and outdated:
        sys.exit(f"not as generated: {', '.join(map(str, outdated))}; run `make generate`")
    for path in outdated:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(files[path], encoding="utf-8")
        click.echo(f"wrote {path}")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


@click.group()
def main() -> None:
    """Write what follows from the registered kinds: files in config/, the API reference, the plugin's remedies."""


@main.command()
@check_option
def manifests(*, check: bool) -> None:
    """Write the CRDs, the roles, the webhook configurations and the policy's owners in config/."""
    write(config.files(REGISTERED, ROOT), check=check)


@main.command()
@check_option
def docs(*, check: bool) -> None:
    """Write docs/api.md, and the plugin's remedies."""
    files = {Path("docs/api.md"): page(KINDS), Path("plugin/kubectl_memcached/model/remedies.py"): module()}
    write(files, check=check)


@main.command("snapshot")
@click.argument("document", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def refresh(document: Path) -> None:
    """Take Kubernetes' own types from DOCUMENT: the output of `kubectl get --raw /openapi/v3/api/v1`."""
    spec = json.loads(document.read_text(encoding="utf-8"))
    snapshot.FILE.write_text(snapshot.extract(spec), encoding="utf-8")
    click.echo(f"wrote {snapshot.FILE.name}")


if __name__ == "__main__":
    main()
