"""The required coverage: of which files."""

from pathlib import Path

import pytest

from suites.coverage import GROUPS, Group

ROOT = Path(__file__).parents[3]

FOLDERS = ("agent", "api", "operator", "plugin", "webhooks")
SOURCES = [str(path.relative_to(ROOT)) for root in FOLDERS for path in ROOT.glob(f"{root}/**/*.py")]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_pattern_matches_a_file(group: Group) -> None:
    patterns = (*group.patterns, *group.without)
    unused = [each for each in patterns if not any(Group("", 0, (), (each,)).matches(path) for path in SOURCES)]
    assert unused == []


@pytest.mark.parametrize(
    "folder", ["agent", "plugin", "webhooks", "operator/memcached_process", "operator/memcached_operator/certificates"]
)
def test_every_file_of_these_folders_belongs_to_a_group(folder: str) -> None:
    mine = [path for path in SOURCES if path.startswith(f"{folder}/") and (ROOT / path).stat().st_size]
    missing = [path for path in mine if not any(group.matches(path) for group in GROUPS)]
    assert mine
    assert missing == []


def test_no_file_belongs_to_two_groups() -> None:
    twice = [path for path in SOURCES if sum(group.matches(path) for group in GROUPS) > 1]
    assert twice == []
