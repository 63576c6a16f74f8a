"""The required coverage: of which files, and how the share of branches is computed."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from project import branches
from project.branches import INPUT_OUTPUT, PURE, Branches, Group
from unit.config.rendered import ROOT

FOLDERS = ("agent", "api", "operator", "webhooks")
SOURCES = [str(path.relative_to(ROOT)) for root in FOLDERS for path in ROOT.glob(f"{root}/**/*.py")]
GROUP = Group("two", 90, ("a/*", "b.py"))


@pytest.mark.parametrize("group", [PURE, *INPUT_OUTPUT], ids=lambda group: group.name)
def test_every_pattern_matches_a_file(group: Group) -> None:
    unused = [each for each in group.patterns if not any(Group("", 0, (each,)).matches(path) for path in SOURCES)]
    assert unused == []


@pytest.mark.parametrize(
    "folder", ["agent", "webhooks", "operator/memcached_process", "operator/memcached_operator/certificates"]
)
def test_every_file_of_agent_admission_and_certificates_belongs_to_a_group(folder: str) -> None:
    mine = [path for path in SOURCES if path.startswith(f"{folder}/") and (ROOT / path).stat().st_size]
    missing = [path for path in mine if not any(group.matches(path) for group in (PURE, *INPUT_OUTPUT))]
    assert mine
    assert missing == []


def test_no_file_belongs_to_two_groups() -> None:
    twice = [path for path in SOURCES if sum(group.matches(path) for group in (PURE, *INPUT_OUTPUT)) > 1]
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
    assert branches.missed([GROUP], figures) == missed


def test_lines_do_not_count() -> None:
    lines = {"covered_lines": 99, "num_statements": 100, "percent_covered": 95.0}
    text = json.dumps({"files": {"b.py": {"summary": {**lines, "covered_branches": 1, "num_branches": 4}}}})
    found = branches.figures_of(text)
    assert found == {"b.py": Branches(1, 4)}
    assert found["b.py"].percent == 25


MODULE = """
def sign(number):
    if number < 0:
        return -1
    if number > 0:
        return 1
    return 0
"""
RUN = "import subprocess, sys, m; m.sign(-1); subprocess.run([sys.executable, '-c', 'import m; m.sign(1)'], check=True)"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data of two runs: the first executes both ways of one `if` and one of the other, the second the rest."""
    (tmp_path / "m.py").write_text(MODULE)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.coverage.run]\nbranch = true\nparallel = true\npatch = ["subprocess"]\nsource_pkgs = ["m"]\n'
    )
    monkeypatch.setattr(branches, "ROOT", tmp_path)
    for name, code in (("one", RUN), ("two", "import m; m.sign(0)")):
        (tmp_path / "run.py").write_text(code)
        file = branches.data_file(tmp_path, name)
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "COVERAGE_FILE": str(file)}
        for words in (["run", "run.py"], ["combine", "--quiet"]):
            subprocess.run([*branches.COVERAGE, *words], cwd=tmp_path, check=True, env=env)
    return tmp_path


@pytest.mark.parametrize(
    ("runs", "least", "problem"),
    [
        (["one"], 75, ""),
        (["one"], 76, "m: 75.0 % of the branches, at least 76 % required"),
        (["one", "two"], 100, ""),
        (["two"], 100, ""),  # no threshold for this run alone
    ],
)
def test_runs_and_their_child_processes_are_counted_together(
    runs: list[str], least: int, problem: str, measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = (Group("m", least, ("m.py",)),)
    monkeypatch.setattr(branches, "CHECKS", {("one",): groups, ("one", "two"): groups})
    assert branches.problem(measured, runs) == problem
