"""Suites run one after the other: one that fails does not stop the others, and failed tests run once more."""

import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cluster.errors import ClusterError
from suites import cli, session
from suites.session import Options, Session
from suites.table import GROUPS, SUITES, Needs, Suite
from support import parts

ROOT = Path(__file__).parents[3]
ONE, TWO = Suite("one", "the first", Needs.NOTHING, "one"), Suite("two", "the second", Needs.OPERATOR, "two")
PASSES = "def test_it(): pass\n"
FAILS = "def test_it(): assert False, 'what is\\nwrong'\n"
WHY = "failed: tests/one/test_one.py::test_it: AssertionError: what is wrong assert False"
FAILS_ONCE = """
from pathlib import Path
import pytest
def test_other(): pass
{mark}
def test_it():
    mark = Path(__file__).with_name("tried")
    if not mark.exists():
        mark.touch()
        assert False
    {then}
"""


class Setup:
    """Prepares nothing, but records it; fails for suites in `broken`."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = broken
        self.prepared_for: list[tuple[str, bool]] = []

    @contextmanager
    def prepared(self, suite: Suite, *, fresh: bool = False) -> Generator[None, None, None]:
        """Nothing."""
        self.prepared_for.append((suite.name, fresh))
        if suite.name in self.broken:
            raise ClusterError("no cluster")
        yield


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the suites `one` and `two`, each with a test that passes."""
    for folder in ("one", "two"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text(PASSES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  race\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for module in ("suites.session", "project.environment"):
        monkeypatch.setattr(f"{module}.ROOT", tmp_path)
    return tmp_path


def run(tree: Path, suites: Sequence[Suite] = (ONE, TWO), setup: Setup | None = None, **options: Any) -> int:
    """The exit code of a session."""
    found = Session(setup or Setup(), Options(**options), {}, tree / "build")
    return found.run(suites)


def summary(tree: Path) -> list[str]:
    """The lines of the summary, without its seconds."""
    lines = (tree / "build" / session.SUMMARY).read_text().splitlines()
    return [" ".join(word for word in line.split() if word[0] not in "0123456789" or "." not in word) for line in lines]


@pytest.mark.parametrize(
    ("one", "broken", "code", "lines"),
    [
        (PASSES, [], 0, ["one 1 passed s", "two 1 passed s", "2 passed in"]),
        (FAILS, [], 1, [WHY, "one 0 passed, 1 failed s", "two 1 passed s", "1 passed, 1 failed in"]),
        ("", [], 1, ["one 0 passed, 1 failed s exit code 5, no results", "two 1 passed s", "1 passed, 1 failed in"]),
        (
            "import os; os._exit(3)\n",
            [],
            1,
            ["one 0 passed, 1 failed s exit code 3, no results", "two 1 passed s", "1 passed, 1 failed in"],
        ),
        (
            PASSES,
            ["one"],
            1,
            ["one 0 passed, 1 failed s not prepared: no cluster", "two 1 passed s", "1 passed, 1 failed in"],
        ),
    ],
    ids=["passes", "fails", "empty", "crashes", "not prepared"],
)
def test_failed_suite_does_not_stop_the_next_one(
    one: str, broken: list[str], code: int, lines: list[str], tree: Path
) -> None:
    (tree / "tests/one/test_one.py").write_text(one)
    assert run(tree, setup=Setup(broken)) == code
    assert summary(tree) == lines


@pytest.mark.parametrize(
    ("mark", "then", "result", "code"),
    [
        ("", "pass", "1 passed, 1 flaky", 0),
        ("", "assert False", "1 passed, 1 failed", 1),
        ("", "pytest.skip()", "1 passed, 1 failed", 1),
        ("@pytest.mark.race", "pass", "1 passed, 1 failed", 1),
    ],
    ids=["passes", "fails", "is skipped", "is a race"],
)
def test_failed_test_runs_once_more_on_a_fresh_operator(
    mark: str, then: str, result: str, code: int, tree: Path
) -> None:
    (tree / "tests/two/test_two.py").write_text(FAILS_ONCE.format(mark=mark, then=then))
    setup = Setup()
    assert run(tree, [TWO], setup) == code
    assert setup.prepared_for == [("two", False), ("two", True)]
    assert summary(tree)[-2:] == [f"two {result} s", f"{result} in"]
    assert f"{'failed' if code else 'flaky'}: tests/two/test_two.py::test_it: assert False" in summary(tree)
    assert "<failure" in (tree / "build/two.xml").read_text()
    assert (tree / "build/two-again.xml").exists()


@pytest.mark.parametrize("abort", ["raise KeyboardInterrupt", "pytest.exit('over', 2)", "__import__('os')._exit(3)"])
def test_suite_that_was_aborted_is_not_flaky(abort: str, tree: Path) -> None:
    tests = FAILS_ONCE.format(mark="", then="pass") + f"def test_z(): {abort}\n"
    (tree / "tests/one/test_one.py").write_text(tests)
    assert run(tree, [ONE]) == 1


def test_flaky_test_fails_at_night(tree: Path) -> None:
    (tree / "tests/one/test_one.py").write_text(FAILS_ONCE.format(mark="", then="pass"))
    assert run(tree, [ONE], flaky_fails=True) == 1


NIGHTLY = {
    "integration-nightly",
    "e2e-nightly",
    "campaigns",
    "olm-modes",
    "servers",
    "clients",
    "release",
    "chart",
    "certmanager",
    "dashboards",
    "monitoring",
    "incidents",
}


def test_every_suite_is_in_the_gate_or_runs_nightly() -> None:
    # At night, the suite `servers` runs the tests of `newest` and `oldest`.
    assert SUITES.keys() - set(GROUPS["all"]) - {"newest", "oldest"} == NIGHTLY
    assert set(GROUPS["all"]) == {*GROUPS["test"], *GROUPS["rest"]}
    workflow = (ROOT / ".github/workflows/nightly.yaml").read_text()
    targets = {name: "faults" if name == "campaigns" else name for name in NIGHTLY}
    assert {name for name, target in targets.items() if f"target: test-{target}," in workflow} == NIGHTLY


@pytest.mark.parametrize(
    ("folder", "marks"),
    [("e2e", {"smoke", "disruptive", "nightly"}), ("integration", {"nightly"}), ("olm", {"modes"})],
)
def test_suites_of_a_folder_have_all_its_parts(folder: str, marks: set[str]) -> None:
    options = {option for suite in SUITES.values() if suite.folder == folder for option in suite.options}
    assert {f"--part={each}" for each in (*marks, "rest")} <= options
    text = "".join(file.read_text() for file in (ROOT / "tests" / folder).glob("*.py"))
    assert {each for each in parts.PARTS if f"mark.{each}" in text} == marks


def test_suite_that_cannot_run_is_a_failure_of_a_complete_run(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "DIRECTORY", tree / "build")
    monkeypatch.setattr("suites.table.SUITES", {"one": ONE, "two": TWO})
    monkeypatch.setattr("suites.table.GROUPS", {"test": ("one", "two")})
    monkeypatch.setattr(signal, "signal", mock.Mock())
    monkeypatch.setenv("CLUSTER", "control-plane")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("TESTS_COMPLETE", raising=False)
    assert cli.main(["test"]) == 0
    monkeypatch.setenv("TESTS_COMPLETE", "yes")
    assert cli.main(["test"]) == 1
    assert "not run: two: it needs root on Linux, for real pods" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("marks", "part", "server", "selected"),
    [
        ({"smoke"}, "smoke", "default", True),
        ({"smoke"}, "rest", "default", False),
        ({"server"}, "rest", "default", True),
        ({"disruptive"}, "rest", "default", False),
        ({"disruptive"}, None, "default", True),
        ({"server"}, None, "oldest", True),
        ({"server"}, None, "1.33", True),
        (set[str](), None, "oldest", False),
        (set[str](), None, "all", False),
    ],
)
def test_tests_of_a_suite(marks: set[str], part: str | None, server: str, selected: bool) -> None:
    assert parts.selected(marks.__contains__, part, server) is selected
