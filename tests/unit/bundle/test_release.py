"""Releases: the tables in pyproject.toml."""

from pathlib import Path

import pytest

from bundle import release
from bundle.errors import BundleError
from bundle.release import IMAGE_BASE, PACKAGE, Release, next_minor, project_version, released

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
agent-image = "registry.example.com/agents:0.2.0"
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
        agent_image="registry.example.com/agents:0.2.0",
    )
    assert released("0.2.0").images == ("registry.example.com/op:0.2.0", "registry.example.com/agents:0.2.0")
    assert released("0.1.0").images == (f"{IMAGE_BASE}:0.1.0", f"{IMAGE_BASE}-agent:0.1.0")


def test_release_without_a_table_needs_a_date(project: Path) -> None:
    assert released("0.3.0", "2030-05-06") == Release("0.3.0", "2030-05-06")
    with pytest.raises(BundleError, match=r'release 0.3.0 has no date: write \[tool.*"0.3.0"\] .*DATE=2006-01-02'):
        released("0.3.0")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('colour = "red"', r'releases."0.3.0"\] of pyproject.toml has colour: known are agent-image, channels, date'),
        ('channels = "stable"', "channels: 'stable' must be a list"),
        ('date = "2030-13-01"', "the date '2030-13-01' of release 0.3.0 must be a date"),
        ('date = "tomorrow"', "the date 'tomorrow' of release 0.3.0 must be a date"),
        ('date = "2030-01-02"\nimage = "op:1"', "release 0.3.0 names only one image: set `image` and `agent-image`"),
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
