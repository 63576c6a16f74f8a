"""The changes of a release's commit: version, changelog, table, images and base image."""

import re
import tomllib
from collections.abc import Mapping
from contextlib import nullcontext

import pytest

from bundle.release import PACKAGE, project_version
from memcached_api.images import DEFAULT_AGENT_IMAGE
from release.commit import changelog, places, plan
from release.commit.versions import check_newer, parse
from release.errors import ReleaseError
from release.output.images import Names
from support import programs
from unit.config.rendered import ROOT
from unit.release.trees import files

LOG = """# Changelog

## [Unreleased]

### Added

- Something.

## [0.2.0] - 2027-01-15

- Before.

[Unreleased]: https://example.com/p/compare/v0.2.0...HEAD
[0.2.0]: https://example.com/p/releases/tag/v0.2.0
"""
NEW, DATE = "7.8.9", "2030-01-02"
AGENT = DEFAULT_AGENT_IMAGE.rpartition(":")[0]
NAMES = Names("registry.example.com/acme/op", "registry.example.com/acme/op-agent")
BASE = f"docker.io/library/python:3.13-slim@sha256:{'0' * 64}"


@pytest.mark.parametrize("text", ["", "0.2", "v0.2.0", "0.2.0-rc.1", "0.02.0", "0.2.0\n", "a.b.c"])
def test_versions_are_three_numbers(text: str) -> None:
    with pytest.raises(ReleaseError, match=r"must be three numbers, such as 0\.2\.0$"):
        parse(text)


@pytest.mark.parametrize(
    ("version", "released", "newer"),
    [
        ("0.1.0", [], True),
        ("0.10.0", ["0.9.0", "0.1.0"], True),
        ("0.2.0", ["0.1.0", "0.2.0"], False),
        ("0.1.9", ["0.2.0"], False),
    ],
)
def test_release_is_newer_than_every_other(version: str, released: list[str], newer: bool) -> None:
    with nullcontext() if newer else pytest.raises(ReleaseError, match=f"^VERSION={version} is not newer than 0.2.0"):
        check_newer(version, released)


def test_unreleased_changes_become_the_section_of_the_release() -> None:
    text = changelog.release(LOG, "0.3.0", DATE)
    assert changelog.released(text) == ["0.3.0", "0.2.0"]
    assert f"## [Unreleased]\n\n## [0.3.0] - {DATE}\n\n### Added" in text
    assert changelog.notes(text, "0.3.0") == "### Added\n\n- Something.\n"
    assert changelog.notes(text, "0.2.0") == "- Before.\n", "the links at the end are not part of the last section"
    assert text.splitlines()[-3:] == [
        "[Unreleased]: https://example.com/p/compare/v0.3.0...HEAD",
        "[0.3.0]: https://example.com/p/compare/v0.2.0...v0.3.0",
        "[0.2.0]: https://example.com/p/releases/tag/v0.2.0",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LOG.replace("### Added\n\n- Something.\n\n", ""), "the section [Unreleased] is empty"),
        (LOG.replace("## [Unreleased]", "## Next"), "has no section [Unreleased]"),
        (LOG.replace("...HEAD", "...main"), "the link [Unreleased] must end with"),
    ],
)
def test_changelog_without_changes_is_not_released(text: str, problem: str) -> None:
    with pytest.raises(ReleaseError, match=re.escape(problem)):
        changelog.release(text, "0.3.0", DATE)


@pytest.fixture(scope="module")
def changed() -> Mapping[str, str]:
    """The changed files of a release of this tree with a registry and a base image by digest."""
    made = plan.planned(files(), NEW, DATE, NAMES, BASE)
    return plan.changes(files(), made)


def test_every_place_names_the_new_version_and_images(changed: Mapping[str, str]) -> None:
    assert (plan.names(changed), plan.dockerfile_base(changed)) == (NAMES, BASE)
    assert f'DEFAULT_AGENT_IMAGE: Final = "{NAMES.agent}:{NEW}"' in changed["api/memcached_api/images.py"]
    tag = re.compile(rf":v?{re.escape(project_version())}")
    left = {name: len(tag.findall(text)) for name, text in changed.items() if name != "pyproject.toml"}
    assert {name: count for name, count in left.items() if count} == {}, "an image keeps the old tag"


def test_table_of_the_release_replaces_the_newest_one(changed: Mapping[str, str]) -> None:
    project = tomllib.loads(changed["pyproject.toml"])
    assert project["project"]["version"] == NEW
    assert project["tool"][PACKAGE]["releases"][NEW] == {
        "date": DATE,
        "channels": ["stable"],
        "replaces": f"{PACKAGE}.v{project_version()}",
        "image": f"{NAMES.operator}:{NEW}",
        "agent-image": f"{NAMES.agent}:{NEW}",
    }
    assert (plan.released(changed, NEW, "").names, plan.released(changed, NEW, "").base) == (NAMES, BASE)


def test_released_version_is_not_released_again() -> None:
    with pytest.raises(ReleaseError, match="is not newer than"):
        plan.planned(files(), project_version(), DATE, NAMES, BASE)


@pytest.mark.parametrize(
    ("names", "base", "problem"),
    [
        (Names("localhost/a/op", "localhost/a/op-agent"), BASE, "the images have no registry: set IMG="),
        (NAMES, "docker.io/library/python:3.13-slim", "has no digest: set BASE_IMAGE="),
    ],
)
def test_release_that_others_cannot_use_is_not_committed(names: Names, base: str, problem: str) -> None:
    with pytest.raises(ReleaseError, match=problem):
        plan.Plan(NEW, DATE, names, base).check_publishable()


@pytest.mark.parametrize(
    ("image", "agent", "names"),
    [
        ("", "", Names(AGENT.removesuffix("-agent"), AGENT)),
        (
            "registry.example.com:5000/op:1",
            "",
            Names("registry.example.com:5000/op", "registry.example.com:5000/op-agent"),
        ),
        (
            "registry.example.com/op",
            "registry.example.com/a:2",
            Names("registry.example.com/op", "registry.example.com/a"),
        ),
    ],
)
def test_names_of_the_images(image: str, agent: str, names: Names) -> None:
    assert plan.names(files(), image, agent) == names


GENERATED = ("bundle/", "catalog/", "dist/", "config/crd/bases/", "docs/api.md")
EXAMPLES = ("api/memcached_api/shared/rules/monitoring.py", "charts/", "docs/releasing.md", "tests/")
"""Files with an example of an image, whose version does not matter."""


def test_no_other_file_names_an_image_of_this_version() -> None:
    words = ["git", "grep", "-lIE", rf"memcached-operator(-\w+)?:v?{re.escape(project_version())}", "--", "."]
    done = programs.run(words, cwd=ROOT)
    found = {name for name in done.stdout.split() if not name.startswith((*GENERATED, *EXAMPLES))}
    assert found - {place.file for place in places.PLACES} == set(), "add it to tools/release/commit/places.py"
