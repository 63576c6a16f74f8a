"""Bundle and catalog of this tree: as generated, as opm renders them, and complete in their images."""

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundle.catalog import CATALOG, blobs
from cluster.public.images import save_image, tool_with
from cluster.shell import run
from olm.programs import OPM, programs
from support import olm

pytestmark = pytest.mark.modes

BUNDLE, SERVED = olm.ROOT / "bundle", olm.ROOT / "catalog"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def by_value(properties: list[dict[str, Any]]) -> list[str]:
    """Properties in an order that does not depend on who wrote them."""
    return sorted(json.dumps(each, sort_keys=True) for each in properties)


def test_its_entry_in_the_catalog_is_what_opm_makes_of_it() -> None:
    ours = next(each for each in blobs((olm.ROOT / CATALOG).read_text()) if each["name"] == olm.csv_name(olm.VERSION))
    words = ["render", BUNDLE, "--output=json", f"--alpha-image-ref-template={ours['image']}"]
    text = run([programs((OPM,)) / "opm", *words, "--migrate-level=bundle-object-to-csv-metadata"])
    rendered = json.loads(text)
    assert by_value(ours.pop("properties")) == by_value(rendered.pop("properties"))
    assert ours == rendered


@dataclass(frozen=True)
class Image:
    """How an image is built, and what must be in it: the files of a directory, below another, and labels."""

    target: str
    variable: str
    files: Path
    place: str
    labels: dict[str, str]


ANNOTATIONS: dict[str, str] = yaml.safe_load((BUNDLE / "metadata/annotations.yaml").read_text())["annotations"]
IMAGES = {
    "bundle": Image("bundle-build", "BUNDLE_IMG", BUNDLE, "", ANNOTATIONS),
    "catalog": Image(
        "catalog-build",
        "CATALOG_IMG",
        SERVED,
        "configs/",
        {"operators.operatorframework.io.index.configs.v1": "/configs"},
    ),
}


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest) -> Image:
    """Each of the images."""
    return IMAGES[request.param]


@pytest.fixture
def archive(image: Image, tmp_path: Path) -> Iterator[tarfile.TarFile]:
    """It, as a file."""
    name = f"localhost/memcached-operator/memcached-operator-{image.target}:test"
    olm.make(image.target, f"{image.variable}={name}")
    try:
        save_image(name, tmp_path / "image.tar")
        with tarfile.open(tmp_path / "image.tar") as file:
            yield file
    finally:
        run(tool_with(name).command("rmi", "--force", name))


def member(archive: tarfile.TarFile, name: str) -> bytes:
    """One file of an archive."""
    found = archive.extractfile(name)
    assert found is not None
    return found.read()


def test_its_image_holds_the_files_and_no_others(image: Image, archive: tarfile.TarFile) -> None:
    (manifest,) = json.loads(member(archive, "manifest.json"))
    found: dict[str, bytes] = {}
    for name in manifest["Layers"]:
        with tarfile.open(fileobj=BytesIO(member(archive, name))) as layer:
            found |= {each.name.strip("/"): member(layer, each.name) for each in layer if each.isfile()}
    assert found == {f"{image.place}{path}": content for path, content in contents(image.files).items()}
    labels = json.loads(member(archive, manifest["Config"]))["config"]["Labels"]
    ours = ("operators.", "com.redhat.openshift.")  # buildah adds labels of its own
    assert {name: value for name, value in labels.items() if name.startswith(ours)} == image.labels
