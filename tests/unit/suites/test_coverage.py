"""The required coverage: of which files, and how the share of branches is computed."""

import json
from pathlib import Path

import pytest

from suites import coverage
from suites.coverage import GROUPS, Branches, Group

ROOT = Path(__file__).parents[3]

FOLDERS = ("agent", "api", "operator", "plugin", "webhooks")
SOURCES = [str(path.relative_to(ROOT)) for root in FOLDERS for path in ROOT.glob(f"{root}/**/*.py")]
GROUP = Group("two", 90, ("unit",), ("a/*", "b.py"))


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


@pytest.mark.parametrize(
    ("figures", "missed"),
    [
        ({"a/x.py": Branches(80, 90), "b.py": Branches(10, 10), "c.py": Branches(0, 50)}, ""),
        (
            {"a/x.py": Branches(8, 10), "b.py": Branches(9, 10)},
            "two: 85.0 % of the branches, at least 90 % required",
        ),
        ({"b.py": Branches(0, 0)}, "two: 0.0 % of the branches, at least 90 % required"),
    ],
)
def test_threshold_applies_to_the_sum_of_a_group(figures: dict[str, Branches], missed: str) -> None:
    assert coverage.missed([(GROUP, coverage.branches_of(GROUP, figures))]) == missed


def test_lines_do_not_count() -> None:
    lines = {"covered_lines": 99, "num_statements": 100, "percent_covered": 95.0}
    text = json.dumps({"files": {"b.py": {"summary": {**lines, "covered_branches": 1, "num_branches": 4}}}})
    found = coverage.figures_of(text)
    assert found == {"b.py": Branches(1, 4)}
    assert found["b.py"].percent == 25
