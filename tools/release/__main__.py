"""The command line of `python -m release`. It ends with one sentence for each expected error."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from cluster.errors import exit_on_error
from cluster.public.programs import RELEASE_FAMILY, build_programs
from pages.figures import outdated
from release.commit import groups
from release.commit import plan as plans
from release.commit.plan import FILES
from release.commit.prepare import PATCH, change_groups, prepare, targets
from release.commit.repository import Repository
from release.commit.tree import Tree, copied
from release.errors import ReleaseError
from release.output import signing
from release.output.artifacts import IMAGES, PREDICATE, Artifacts
from release.output.assemble import assemble, seal

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = "build/release"

version_option: Final = click.option("--version", required=True, metavar="X.Y.Z", help="Version of the release.")
base_option: Final = click.option(
    "--base-image", default="", help="Base image by digest [the Dockerfile's; for local images that of the cluster]."
)
builder_option: Final = click.option("--builder", default="", metavar="URL", help="What builds, for the provenance.")
fresh_option: Final = click.option("--fresh", is_flag=True, help="Build every layer again.")
output_option: Final = click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=None, help=f"Directory [{FOLDER}/VERSION]."
)
key_option: Final = click.option("--key", default="", metavar="FILE", help="cosign's key [keyless].")
http_option: Final = click.option("--plain-http", is_flag=True, help="The registry has no TLS.")
registry_option: Final = click.option("--registry", default="", help="Registry in place of that of the images' names.")


@click.group()
def main() -> None:
    """Make a release (docs/releasing.md)."""


@main.command("make")
@version_option
@click.option("--date", default="", metavar="YYYY-MM-DD", help="Date of the release [today].")
@click.option("--image", default="", help="The operator's image, without tag [that of config/base].")
@click.option("--agent-image", default="", help="The agent's image [that of the operator with -agent].")
@click.option("--group", default="", help="API group of Memcached [that of the tree].")
@click.option("--app-group", default="", help="API group of AppService [app. and the domain of GROUP].")
@click.option("--commit", is_flag=True, help="Commit the changes and tag the commit [only write them].")
@base_option
@builder_option
@fresh_option
@output_option
def make(
    version: str, date: str, image: str, agent_image: str, group: str, app_group: str, commit: bool, base_image: str,
    builder: str, fresh: bool, output: Path | None,
) -> None:  # fmt: skip
    """Write the changes of a release's commit, and build its images and files, into a directory."""
    repository = Repository(ROOT)
    repository.check_not_tagged(version)
    repository.check_clean()
    tree = Tree(ROOT, Path(sys.executable))
    files = tree.read(set(FILES))
    today = date or datetime.now(UTC).date().isoformat()
    chosen = groups.chosen(group, app_group) if group else None
    plan = plans.planned(files, version, today, plans.names(files, image, agent_image), base_image, chosen)
    if commit:
        plan.check_publishable()
        _check_figures()
    target = _folder(version, output)
    prepared = prepare(repository, plan, target, Path(sys.executable))
    artifacts = Artifacts(target / "artifacts")
    assemble(prepared, plan, artifacts, repository.commit(), builder, fresh=fresh)
    if commit:
        repository.release(version, (target / PATCH).read_text())
        seal(prepared, plan, artifacts, repository.commit(), builder)
    _show(target)
    if commit:
        click.echo(f"Committed and tagged v{version}. Push both: git push --follow-tags")
    else:
        click.echo(
            f"Nothing is committed. `git apply {_short(target / PATCH)}` makes the changes; DRY_RUN=false also commits."
        )


def _check_figures() -> None:
    """Raise ReleaseError if published figures are of other sources than those of the release."""
    if found := outdated(ROOT):
        raise ReleaseError("; ".join(found))


@main.command("group")
@click.option("--group", required=True, help="API group of Memcached.")
@click.option("--app-group", default="", help="API group of AppService [app. and the domain of GROUP].")
@click.option("--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory.")
def group_tree(group: str, app_group: str, output: Path) -> None:
    """Write the last commit's tree with other API groups, and everything generated from them."""
    tree = copied(ROOT, output.resolve(), Path(sys.executable))
    change_groups(tree, groups.chosen(group, app_group))
    tree.make(*targets(tree.root))
    tree.make("generated")
    click.echo(f"Wrote {_short(tree.root)} with the API group {group}. `make -C {_short(tree.root)} test` tests it.")


@main.command("build")
@version_option
@base_option
@builder_option
@fresh_option
@output_option
def build(version: str, base_image: str, builder: str, fresh: bool, output: Path | None) -> None:
    """Build the images and files of the release whose tag is checked out."""
    repository = Repository(ROOT)
    repository.check_at_tag(version)
    repository.check_clean()
    target = _folder(version, output)
    tree = copied(ROOT, target / "source", Path(sys.executable))
    plan = plans.released(tree.read(set(FILES)), version, base_image)
    assemble(tree, plan, Artifacts(target / "artifacts"), repository.commit(), builder, fresh=fresh)
    _show(target)


@main.command("publish")
@version_option
@key_option
@http_option
@registry_option
@output_option
def publish(version: str, key: str, plain_http: bool, registry: str, output: Path | None) -> None:
    """Push the images and the chart, sign them and the files, and attach provenance and bills of materials."""
    artifacts = Artifacts(_folder(version, output) / "artifacts")
    artifacts.check()
    signer = signing.Signer(key, plain_http=plain_http)
    published = artifacts.published(registry)
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        unsigned = artifacts.for_hub(published, Path(scratch))
        _run(signing.publish(published, artifacts.root / PREDICATE, artifacts.root, signer, unsigned))


@main.command("programs")
def programs() -> None:
    """Print the directory of crane and cosign, which are built if necessary."""
    click.echo(_programs())


@main.command("notes")
@version_option
def notes(version: str) -> None:
    """Print the changes of a release."""
    click.echo(plans.changelog.notes((ROOT / plans.CHANGELOG).read_text(), version), nl=False)


@main.command("verify")
@version_option
@key_option
@click.option("--identity", default="", metavar="REGEXP", help="URL of the workflow, of keyless signatures.")
@click.option("--issuer", default="", metavar="URL", help="What vouches for the workflow.")
@http_option
@registry_option
@output_option
def verify(
    version: str, key: str, identity: str, issuer: str, plain_http: bool, registry: str, output: Path | None
) -> None:
    """Verify the files of a release, and the images, the chart and the statements in the registry."""
    artifacts = Artifacts(_folder(version, output) / "artifacts")
    artifacts.check()
    signer = signing.Signer(key, identity, issuer, plain_http)
    published = artifacts.released(registry)
    digests, *others = signing.verify(published, artifacts.root, signer)
    _run([digests])
    for image in published:
        # The tag may name another image with a valid signature, such as that of an earlier release.
        if (found := _output(signer.digest(image.name)).strip()) != image.digest:
            raise ReleaseError(f"{image.name} is {found}, but {image.digest} was released. Do not use it")
    _run(others)
    click.echo(f"Release {version} is as it was signed.")


def _folder(version: str, output: Path | None) -> Path:
    plans.parse(version)
    return (output or ROOT / FOLDER / version).resolve()


def _run(commands: Iterable[list[str]]) -> None:
    """Run commands of crane and cosign. Raises ReleaseError at the first that fails."""
    for words in commands:
        click.echo(f"$ {' '.join(words)}", err=True)
        _output(words)


def _output(words: list[str]) -> str:
    """The output of crane or cosign, which are built if necessary. Raises ReleaseError if it fails."""
    environment = {"COSIGN_PASSWORD": "", **os.environ, "PATH": f"{_programs()}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"`{' '.join(words[:2])}` failed for {words[-1]}: see above")
    return done.stdout


def _programs() -> Path:
    return build_programs([(RELEASE_FAMILY, tuple(RELEASE_FAMILY.programs))])


def _short(path: Path) -> str:
    return os.path.relpath(path, Path.cwd())


def _show(target: Path) -> None:
    """Print the files of a release, and the digests of its images."""
    artifacts = Artifacts(target / "artifacts")
    click.echo(f"{_short(target)}/")
    for path in sorted(path for path in target.iterdir() if path.name != "artifacts"):
        click.echo(f"  {path.name}{'/' if path.is_dir() else ''}")
    click.echo("  artifacts/")
    for path in [*artifacts.files(), Path(signing.SUMS)]:
        click.echo(f"    {path}")
    for part, name in artifacts.names().items():
        layout = artifacts.layout(part)
        click.echo(f"    {IMAGES}/{part}/  {name}  {', '.join(layout.platforms()) or 'any'}  {layout.digest}")


if __name__ == "__main__":
    exit_on_error(main)
