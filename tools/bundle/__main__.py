"""The command line of `python -m bundle`. `--check` writes nothing and exits 1 if a file would change."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from bundle import images
from bundle.catalog import CATALOG, catalog, read_bundle
from bundle.community import CI_FILE, findings
from bundle.compatible import incompatible
from bundle.generate import bundle_files
from bundle.installer import INSTALLER, installer
from bundle.objects import Rendered, mapping, name_of, parse
from bundle.release import ROOT, project_version, released
from cluster.errors import exit_on_error
from project.generated import check_option, read_tree, write

ICON: Final = ROOT / "config/manifests/bases/icon.svg"

output_option: Final = click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=ROOT,
    help="Directory to write to [this tree].",
)
image_option: Final = click.option(
    "--image", metavar="IMG", default="", help="The operator's image [that of the release]."
)
agent_image_option: Final = click.option(
    "--agent-image", metavar="AGENT_IMG", default="", help="The agent's image; set both or none."
)
version_option: Final = click.option(
    "--version", default=project_version, help="Version of the release [the project's].", metavar="X.Y.Z"
)
date_option: Final = click.option("--date", default="", metavar="YYYY-MM-DD", help="Date of the release.")
Given = str | tuple[str, ...]
"""The value of an option; empty if it is not set."""


def _words(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(word for word in text.replace(",", " ").split() if word)


@click.group()
def main() -> None:
    """Generate an OLM bundle (bundle/), a catalog (catalog/) and an installer without OLM (dist/)."""


@main.command()
@version_option
@date_option
@click.option("--channels", default="", callback=_words, help="Separated by commas.")
@click.option("--default-channel", default="", help="One of the channels [the first].")
@click.option("--replaces", default="", metavar="NAME.vX.Y.Z", help="The release that upgrades to this one.")
@click.option(
    "--skips", default="", callback=_words, metavar="NAME.vX.Y.Z", help="Releases that an upgrade leaves out."
)
@click.option("--skip-range", default="", metavar="RANGE", help="Versions that upgrade to this one: '>=0.1.0 <0.2.0'.")
@image_option
@agent_image_option
@click.option("--use-image-digests", is_flag=True, help="Write every image by the digest that its registry reports.")
@output_option
@check_option
def generate(use_image_digests: bool, output: Path, check: bool, version: str, **given: Given) -> None:
    """Write bundle/ and bundle.Dockerfile from the output of `kustomize build config/manifests` on standard input.

    Other values come from the release's table in pyproject.toml.
    """
    release = replace(released(version, str(given["date"])), **{key: value for key, value in given.items() if value})
    rendered = Rendered(parse(sys.stdin.read(), "standard input"))
    deployments = images.with_images(rendered.of("Deployment"), *release.images)
    deployments = images.pinned(deployments, images.by_digest) if use_image_digests else deployments
    files = bundle_files(rendered, release, ICON.read_text(encoding="utf-8"), deployments)
    write(output, files, "bundle", check=check, command="make bundle")


@main.command("catalog")
@click.argument("bundles", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--bundle-image", default="", metavar="BUNDLE_IMG", help="Image of the (one) bundle.")
@click.option("--keep-image", is_flag=True, help="Keep the image of a bundle that is in the catalog.")
@click.option("--inline", is_flag=True, help="Include the manifests, so that no image is needed: for tests.")
@output_option
@check_option
def write_catalog(
    bundles: tuple[Path, ...], bundle_image: str, keep_image: bool, inline: bool, output: Path, check: bool
) -> None:
    """Write catalog/ with the bundle of each directory of BUNDLES, oldest first [this tree].

    `generate --output` writes such a directory. Releases that the catalog in the output already contains are kept;
    the entries of BUNDLES are replaced. Channels and upgrades are those of the bundles.
    """
    packed = [read_bundle(place, bundle_image) for place in bundles or (ROOT,)]
    before = read_tree(output, CATALOG).get(CATALOG, "")
    write(
        output,
        {CATALOG: catalog(packed, before, inline=inline, keep_images=keep_image)},
        check=check,
        command="make catalog",
    )


@main.command("installer")
@version_option
@date_option
@image_option
@agent_image_option
@output_option
@check_option
def write_installer(version: str, date: str, image: str, agent_image: str, output: Path, check: bool) -> None:
    """Write dist/install.yaml from the output of `kustomize build config/default` on standard input."""
    if not (image and agent_image):
        release = released(version, date)
        release = replace(release, image=image or release.image, agent_image=agent_image or release.agent_image)
        image, agent_image = release.images
    text = installer(Rendered(parse(sys.stdin.read(), "standard input")), image, agent_image)
    write(output, {INSTALLER: text}, check=check, command="make build-installer")


@main.command("compatible")
@click.argument("earlier", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
def run_compatible(earlier: tuple[Path, ...]) -> None:
    """Check that objects and clients of EARLIER releases keep working with the CustomResourceDefinitions of the bundle.

    Each EARLIER is a directory that contains the bundle/ of a release that upgrades to this one.
    """
    later = read_bundle(ROOT)
    for place in earlier:
        before = read_bundle(place)
        if found := list(incompatible(before, later)):
            sys.exit("\n".join(found))
        click.echo(f"{name_of(later.csv())} is compatible with {name_of(before.csv())}")


@main.command("images")
@click.argument("olm", nargs=-1)
def list_images(olm: tuple[str, ...]) -> None:
    """Print every image of the release, one per line: those of its bundle, then OLM, the images that OLM reads."""
    related: list[dict[str, str]] = read_bundle(ROOT).csv()["spec"]["relatedImages"]
    click.echo("\n".join([*(each["image"] for each in related), *olm]))


@main.command("community")
def run_community() -> None:
    """Check the rules of community catalogs for the bundle, the catalog and ci.yaml."""
    files = read_tree(ROOT, CATALOG, CI_FILE)
    found = findings(read_bundle(ROOT), files[CATALOG], mapping(files[CI_FILE], CI_FILE))
    if found:
        sys.exit("\n".join(found))
    click.echo("The bundle follows the rules of community catalogs.")


if __name__ == "__main__":
    exit_on_error(main)
