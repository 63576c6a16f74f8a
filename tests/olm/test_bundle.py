"""The bundle of this tree: as generated, in order for every validator, and all of it in its image."""

import os
import subprocess
import tarfile
from collections.abc import Iterator
from io import BytesIO
from json import loads
from pathlib import Path

import pytest
import yaml

from cluster.images.build import choose_tool, save_image
from cluster.shell import run
from support import olm

IMAGE = "localhost/memcached-operator/memcached-operator-bundle:test"
BUNDLE = olm.ROOT / "bundle"


def make(*words: str) -> None:
    """Run make in this tree."""
    environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "IMG")}
    done = subprocess.run(
        ["make", "-s", *words], cwd=olm.ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_made_again_it_is_the_same() -> None:
    places = (BUNDLE, olm.ROOT / "catalog")
    dockerfile = (olm.ROOT / "bundle.Dockerfile").read_bytes()
    before = [contents(place) for place in places]
    make("bundle", "catalog")
    assert [contents(place) for place in places] == before
    assert (olm.ROOT / "bundle.Dockerfile").read_bytes() == dockerfile


def test_every_validator_is_content() -> None:
    report = olm.tool("olm", "validate", BUNDLE, olm.ROOT / "catalog").splitlines()
    assert len(report) == 7
    assert all(line.endswith("0 errors, 0 warnings") for line in report), report


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[tarfile.TarFile]:
    """The bundle's image, as a file."""
    make("bundle-build", f"BUNDLE_IMG={IMAGE}")
    try:
        save_image(IMAGE, tmp_path / "image.tar")
        with tarfile.open(tmp_path / "image.tar") as file:
            yield file
    finally:
        run(choose_tool().command("rmi", "--force", IMAGE))


def member(archive: tarfile.TarFile, name: str) -> bytes:
    """One file of an archive."""
    found = archive.extractfile(name)
    assert found is not None
    return found.read()


def test_its_image_holds_the_files_and_no_others(archive: tarfile.TarFile) -> None:
    (manifest,) = loads(member(archive, "manifest.json"))
    found: dict[str, bytes] = {}
    for name in manifest["Layers"]:
        with tarfile.open(fileobj=BytesIO(member(archive, name))) as layer:
            found |= {each.name.strip("/"): member(layer, each.name) for each in layer if each.isfile()}
    assert found == contents(BUNDLE)
    labels = loads(member(archive, manifest["Config"]))["config"]["Labels"]
    wanted: dict[str, str] = yaml.safe_load((BUNDLE / "metadata/annotations.yaml").read_text())["annotations"]
    assert {name: value for name, value in labels.items() if name.startswith("operators.")} == wanted
