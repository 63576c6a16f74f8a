"""The command line of `python -m bundle`. `--check` writes nothing and exits 1 if a file would change."""

import sys
from pathlib import Path
from typing import Final

import click

from bundle import images
from bundle.catalog import CATALOG, catalog
from bundle.checks import CHECKS, faults
from bundle.checks.subject import Subject
from bundle.errors import BundleError
from bundle.files import read_bundle, read_tree, write
from bundle.generate import bundle_files
from bundle.installer import INSTALLER, installer
from bundle.objects import Rendered, parse
from bundle.release import DOCKERFILE, ROOT, Release, project_version
from bundle.scorecard import TESTS

ICON: Final = ROOT / "config/manifests/bases/icon.svg"

check_option: Final = click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is outdated.")
output_option: Final = click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=ROOT,
    help="Directory to write to [this tree].",
)
image_option: Final = click.option(
    "--image", metavar="IMG", default="", help="The operator's image [the one config/base names]."
)


def _words(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").split() if word)


@click.group()
def main() -> None:
    """Pack config/ into an OLM bundle (bundle/), a catalogue (catalog/) and one file without OLM (dist/)."""


@main.command()
@click.option("--version", default=project_version, help="Version of the release [the project's].", metavar="X.Y.Z")
@image_option
@click.option("--channels", default="stable", callback=_words, show_default=True, help="Separated by commas.")
@click.option("--default-channel", default="", help="One of the channels [the first].")
@click.option("--replaces", default="", metavar="NAME.vX.Y.Z", help="The release that this one updates.")
@click.option("--skips", default="", callback=_words, metavar="NAME.vX.Y.Z", help="Releases an update may leave out.")
@click.option("--skip-range", default="", metavar="RANGE", help="Versions an update may come from: '>=0.1.0 <0.2.0'.")
@click.option("--use-image-digests", is_flag=True, help="Write every image by the digest its registry tells.")
@output_option
@check_option
def generate(
    image: str,
    use_image_digests: bool,
    output: Path,
    check: bool,
    **release: str,
) -> None:
    """Write bundle/ and bundle.Dockerfile from the output of `kustomize build config/manifests` on standard input."""
    rendered = Rendered(parse(sys.stdin.read(), "standard input"))
    deployments = rendered.of("Deployment")
    deployments = images.with_image(deployments, image) if image else deployments
    deployments = images.pinned(deployments, images.by_digest) if use_image_digests else deployments
    files = bundle_files(rendered, Release(**release), ICON.read_text(encoding="utf-8"), deployments)  # pyright: ignore[reportArgumentType]
    write(output, files, "bundle", check=check, command="make bundle")


@main.command("catalog")
@click.argument("bundles", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--bundle-image", default="", metavar="BUNDLE_IMG", help="Image of the (one) bundle.")
@click.option("--inline", is_flag=True, help="Put the manifests themselves in: for tests, no image is needed.")
@output_option
@check_option
def write_catalog(bundles: tuple[Path, ...], bundle_image: str, inline: bool, output: Path, check: bool) -> None:
    """Write catalog/ with the bundle of each directory of BUNDLES, oldest first [this tree].

    A directory is one that `generate --output` wrote. Releases that the catalogue in the output already has are kept; a
    bundle's own entry is written anew. Channels and the way from one release to the next are those of the bundles.
    """
    packed = [read_bundle(place, bundle_image) for place in bundles or (ROOT,)]
    before = read_tree(output, CATALOG).get(CATALOG, "")
    write(output, {CATALOG: catalog(packed, before, inline=inline)}, check=check, command="make catalog")


@main.command("installer")
@image_option
@output_option
@check_option
def write_installer(image: str, output: Path, check: bool) -> None:
    """Write dist/install.yaml from the output of `kustomize build config/default` on standard input."""
    text = installer(Rendered(parse(sys.stdin.read(), "standard input")), image)
    write(output, {INSTALLER: text}, check=check, command="make build-installer")


@main.command("check")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=ROOT)
def run_checks(directory: Path) -> None:
    """Check bundle/, bundle.Dockerfile and catalog/ of DIRECTORY [this tree] for what OLM or a catalogue refuses."""
    found = faults(read_tree(directory, "bundle", DOCKERFILE, "catalog"), read_tree(ROOT, "config"))
    if found:
        sys.exit("\n".join(map(str, found)))
    click.echo(f"{len(CHECKS)} checks passed")


@main.command("scorecard")
def run_scorecard() -> None:
    """Run the scorecard's six basic tests on bundle/, without a cluster."""
    subject = Subject(read_tree(ROOT, "bundle", DOCKERFILE), {})
    failed = 0
    for name, test in TESTS.items():
        errors = list(test(subject))
        failed += bool(errors)
        click.echo(f"{'fail' if errors else 'pass'}  {name}{''.join(f'{chr(10)}      {error}' for error in errors)}")
    if failed:
        sys.exit(f"{failed} of {len(TESTS)} tests failed")


def run() -> None:
    """`python -m bundle`: a BundleError is one sentence, not a traceback."""
    try:
        main()
    except BundleError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    run()
