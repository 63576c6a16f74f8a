"""The pytest runs of each suite, and the error if no test matches."""

import argparse
import signal
import sys
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from project import cli, runs
from project.runs import FAULTS, PYTEST, Run, merge_marks

FILE = Path("/results/e2e.xml")


@pytest.mark.parametrize(
    ("suite", "options"),
    [
        ("unit", {"unit": ("-q", "-n", "3")}),
        ("integration", {"integration": ("-n", "3")}),
        ("e2e", {"e2e": ("-n", "3", "-m", "not disruptive"), "disruptive": ("-m", "disruptive")}),
        ("clients", {"clients": ()}),
        ("olm", {"olm": ()}),
    ],
)
def test_runs_of_a_suite(suite: str, options: dict[str, tuple[str, ...]]) -> None:
    found = runs.runs(suite, "3")
    assert {run.name: run.options for run in found} == options
    assert {run.folder for run in found} == {suite}


def test_faults_suite_runs_the_gate_of_the_fault_tests() -> None:
    (run,) = runs.runs("faults", "3")
    file = run.results(Path("/results"))
    assert file == Path("/results/faults.jsonl")
    assert run.words(["-x"], file) == [*FAULTS, f"--results={file}"]


def test_user_arguments_follow_the_options() -> None:
    words = Run("e2e", "e2e", ("-n", "4")).words(runs.split("-k 'a or b' -n 1"), FILE)
    assert words == [*PYTEST, f"--junit-xml={FILE}", "-n", "4", "-k", "a or b", "-n", "1", "tests/e2e"]


@pytest.mark.parametrize(
    ("options", "arguments", "merged"),
    [
        (["-m", "a"], ["-x"], ["-m", "a", "-x"]),
        (["-n", "4"], ["-m", "b"], ["-n", "4", "-m", "b"]),
        (["-m", "a"], ["-m", "b or c", "-x"], ["-m", "a", "-m", "(a) and (b or c)", "-x"]),
        (["-m", "a"], ["-x", "-mb"], ["-m", "a", "-x", "-m", "(a) and (b)"]),
        (["-m", "a"], ["-m=b"], ["-m", "a", "-m", "(a) and (b)"]),
        (["-m", "a"], ["-m"], ["-m", "a", "-m"]),
    ],
)
def test_marks_of_the_user_narrow_those_of_the_suite(
    options: list[str], arguments: list[str], merged: list[str]
) -> None:
    assert merge_marks(options, arguments) == merged


def test_unclosed_quotation_is_reported_in_one_sentence() -> None:
    with pytest.raises(ClusterError, match=r"""^ARGS="-k 'a" cannot be split into words: No closing quotation$"""):
        runs.split("-k 'a")


@pytest.mark.parametrize("word", ["auto", "0", "16"])
def test_workers_are_a_number_or_auto(word: str) -> None:
    assert cli.workers(word) == word


@pytest.mark.parametrize("word", ["", "-1", "four", "1.5", "²"])
def test_other_workers_are_rejected(word: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is neither a number nor auto"):
        cli.workers(word)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with test_one in the unit suite; test_two, and test_three that is disruptive, in the e2e suite."""
    one, two = "def test_one(): pass\n", "def test_two(): pass\n"
    three = "import pytest\n@pytest.mark.disruptive\ndef test_three(): pass\n"
    for folder, text in (("unit", one), ("e2e", two + three)):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_it.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  disruptive\n  slow\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(runs, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["-k", "one"], ["unit"]),
        (["-k", "two"], ["e2e"]),
        (["-k", "one or two"], ["unit", "e2e"]),
        (["-m", "disruptive"], ["disruptive"]),
        (["-m", "not slow"], ["unit", "e2e", "disruptive"]),
    ],
)
def test_runs_without_a_matching_test_are_left_out(arguments: list[str], left: list[str]) -> None:
    every = {name: runs.runs(name, "1") for name in ("unit", "e2e", "faults")}
    chosen = runs.select(every, arguments)
    assert [run.name for found in chosen.values() for run in found] == left


@pytest.mark.usefixtures("tree")
def test_no_matching_test_is_an_error_before_any_setup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("project.suites.use_cluster", lambda: pytest.fail("starts a cluster"))
    words = ["test", "unit", "e2e", "faults", "--args=-k typo", "--image=localhost/op:1"]
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert cli.main(words) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "error: no test ran: ARGS='-k typo' matches no test in tests/unit, tests/e2e\n"


def test_commands_use_the_python_of_the_caller() -> None:
    assert PYTEST[0] == FAULTS[0] == sys.executable
