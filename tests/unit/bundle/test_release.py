"""Releases: the tables in pyproject.toml, the options that override them, and the next release in the catalog."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundle import release
from bundle.catalog import CATALOG, blobs
from bundle.errors import BundleError
from bundle.objects import parse
from bundle.release import (
    CSV_FILE,
    DOCKERFILE,
    IMAGE_BASE,
    PACKAGE,
    ROOT,
    Release,
    next_minor,
    project_version,
    released,
)
from demo.olm import RELEASES
from unit.bundle.test_generate import rendered, run
from unit.bundle.tree import GOOD, NAME

NEXT = next_minor(project_version())
PROJECT = f"""
[project]
version = "0.2.0"
[tool.{PACKAGE}.releases."0.1.0"]
date = "2030-01-02"
[tool.{PACKAGE}.releases."0.2.0"]
date = "2030-03-04"
channels = ["stable", "fast"]
default-channel = "fast"
replaces = "{PACKAGE}.v0.1.0"
skips = ["{PACKAGE}.v0.1.1"]
skip-range = "<0.2.0"
image = "registry.example.com/op:0.2.0"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two releases."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    return tmp_path / "pyproject.toml"


def test_release_is_read_from_its_table(project: Path) -> None:
    assert released("0.1.0") == Release("0.1.0", "2030-01-02")
    assert released(project_version()) == Release(
        "0.2.0",
        "2030-03-04",
        channels=("stable", "fast"),
        default_channel="fast",
        replaces=f"{PACKAGE}.v0.1.0",
        skips=(f"{PACKAGE}.v0.1.1",),
        skip_range="<0.2.0",
        image="registry.example.com/op:0.2.0",
    )
    assert released("0.2.0").operator_image == "registry.example.com/op:0.2.0"
    assert released("0.1.0").operator_image == f"{IMAGE_BASE}:0.1.0"


def test_release_without_a_table_needs_a_date(project: Path) -> None:
    assert released("0.3.0", "2030-05-06") == Release("0.3.0", "2030-05-06")
    with pytest.raises(BundleError, match=r'release 0.3.0 has no date: write \[tool.*"0.3.0"\] .*DATE=2006-01-02'):
        released("0.3.0")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('colour = "red"', r'releases."0.3.0"\] of pyproject.toml has colour: known are channels, date'),
        ('channels = "stable"', "channels: 'stable' must be a list"),
        ('date = "tomorrow"', "the date 'tomorrow' of release 0.3.0 must be a date"),
        ('date = "2030-13-01"', "the date '2030-13-01' of release 0.3.0 must be a date"),
        ("", "the date '' of release 0.3.0 must be a date"),
    ],
)
def test_invalid_table_is_reported_in_one_sentence(line: str, message: str, project: Path) -> None:
    project.write_text(f'{PROJECT}[tool.{PACKAGE}.releases."0.3.0"]\n{line}\n')
    with pytest.raises(BundleError, match=message):
        released("0.3.0")


@pytest.mark.parametrize(("version", "following"), [("0.1.0", "0.2.0"), ("1.9.3", "1.10.0")])
def test_next_minor_version(version: str, following: str) -> None:
    assert next_minor(version) == following
    assert (project_version(), NEXT) == RELEASES


def test_image_tag_of_the_variants_is_the_project_version() -> None:
    image = yaml.safe_load((ROOT / "config/base/kustomization.yaml").read_text())["images"][0]
    assert image["newTag"] == project_version()


def run_on_copy(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m bundle` on a copy of the tree's bundle and catalog in `tmp_path`."""
    if not tmp_path.joinpath("catalog").exists():
        for path, text in GOOD.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
    return run(*words, stdin=yaml.safe_dump_all(rendered().objects, sort_keys=False))


def test_next_release_is_generated_and_added_to_the_catalog(tmp_path: Path) -> None:
    """The commands of `make bundle` and `make catalog`."""
    here, image = f"--output={tmp_path}", f"--bundle-image={IMAGE_BASE}-bundle:v{NEXT}"
    generate = ("generate", here, f"--version={NEXT}", "--date=2030-01-02", f"--replaces={NAME}")
    assert not run_on_copy(tmp_path, *generate).returncode
    done = run_on_copy(tmp_path, "catalog", here, "--check", image, "--keep-image", str(tmp_path))
    assert (done.returncode, done.stderr) == (1, f"not as generated: {CATALOG}; run `make catalog`\n")
    assert not run_on_copy(tmp_path, "catalog", here, image, "--keep-image", str(tmp_path)).returncode
    found = blobs((tmp_path / CATALOG).read_text())
    assert [blob["image"] for blob in found if blob["schema"] == "olm.bundle"][-1:] == [image.partition("=")[2]]
    assert [blob for blob in found if blob["name"] == NAME] == [
        blob for blob in blobs(GOOD[CATALOG]) if blob["name"] == NAME
    ], "the previous release must not change"
    again = [
        run_on_copy(tmp_path, *generate, "--check"),
        run_on_copy(tmp_path, "catalog", here, "--check", str(tmp_path)),
    ]
    assert [(done.returncode, done.stdout) for done in again] == [(0, ""), (0, "")]


def test_options_override_the_table_and_the_image_follows_the_version(tmp_path: Path) -> None:
    words = ("generate", f"--output={tmp_path}", f"--version={NEXT}", "--date=2030-01-02", "--channels=fast,stable")
    assert not run_on_copy(tmp_path, *words).returncode
    csv = parse((tmp_path / CSV_FILE).read_text(), CSV_FILE)[0]
    annotations: dict[str, Any] = csv["metadata"]["annotations"]
    assert annotations["createdAt"] == "2030-01-02T00:00:00Z"
    assert annotations["containerImage"] == f"{IMAGE_BASE}:{NEXT}"
    assert "channels.v1=fast,stable" in (tmp_path / DOCKERFILE).read_text()
    done = run_on_copy(tmp_path, "generate", f"--output={tmp_path}", "--version=999.0.0")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "release 999.0.0 has no date" in done.stderr


def make(*words: str, **environ: str) -> list[str]:
    """The `python -m bundle` commands that make would run."""
    plain = {
        key: value for key, value in os.environ.items() if key not in ("IMG", "VERSION", "BUNDLE_IMG", "MAKEFLAGS")
    }
    done = subprocess.run(
        ["make", "--dry-run", *words], cwd=ROOT, env=plain | environ, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.replace("\\\n", " ").splitlines() if "-m bundle " in line]


def test_make_bundle_and_make_generated_use_the_same_options() -> None:
    for words in ([], ["IMG=registry.example.com/op:1", "CHANNELS=fast", "VERSION=0.9.0", "USE_IMAGE_DIGESTS=true"]):
        made, checked = (
            next(line for line in make(target, *words) if " generate " in line) for target in ("bundle", "generated")
        )
        assert checked.split(" generate ")[1].replace("--check", "").split() == made.split(" generate ")[1].split()


def test_make_passes_only_the_images_that_the_user_sets() -> None:
    assert not any("--image" in line for line in make("bundle"))
    for line in (make("bundle", "IMG=x.example.com/op:1")[0], make("bundle", IMG="x.example.com/op:1")[0]):
        assert '--image="x.example.com/op:1"' in line
    assert "--keep-image" in make("catalog")[0]
    assert "--keep-image" not in make("catalog", "BUNDLE_IMG=x.example.com/b:1")[0]
    assert '--version="0.9.0"' in make("bundle", VERSION="0.9.0")[0]
