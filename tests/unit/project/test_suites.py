"""Suites run one after the other until one fails; each writes its results, and the last lines sum them up."""

import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError
from unittest import mock

import pytest

from cluster.errors import ClusterError
from project import branches, suites
from project.branches import INPUT_OUTPUT, Branches
from project.runs import NO_TESTS, Run
from project.suites import Session, Setup
from unit.project.test_branches import SOURCES

ONE = "def test_one(): pass\n"
SETUP = Setup("localhost/op:1", (), "config/default")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose unit suite has one test, test_one, and whose e2e suite has one, test_two. Nothing is measured."""
    for folder, text in (("unit", ONE), ("e2e", ONE.replace("one", "two"))):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_it.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = disruptive\naddopts = -p xdist.plugin\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for module in ("suites", "runs", "environment"):
        monkeypatch.setattr(f"project.{module}.ROOT", tmp_path)
    monkeypatch.setattr(suites, "MEASURED", ())
    monkeypatch.setattr(suites, "_deploy", mock.Mock())
    return tmp_path


def run(names: Sequence[str], arguments: str = "") -> int:
    """The exit code of the command."""
    return suites.test(names, "0", arguments, SETUP)


def summary(tree: Path) -> list[str]:
    """The lines of the summary, without its seconds."""
    lines = (tree / suites.DIRECTORY / suites.SUMMARY).read_text().splitlines()
    return [" ".join(word for word in line.split() if "." not in word and word != "s") for line in lines]


@pytest.mark.usefixtures("tree")
def test_invalid_arguments_are_reported_by_pytest() -> None:
    assert run(["unit"], "--no-such-option") == 4


def test_empty_suite_fails_without_arguments(tree: Path) -> None:
    (tree / "tests/unit/test_it.py").unlink()
    assert run(["unit"]) == NO_TESTS
    assert summary(tree) == ["unit 0 passed, 1 failed exit code 5, no results", "0 passed, 1 failed in"]


def test_first_failed_suite_ends_the_command(tree: Path) -> None:
    (tree / "tests/unit/test_it.py").write_text("def test_one(): assert False\n")
    (tree / "tests/e2e/test_it.py").write_text("from pathlib import Path\nPath('reached').touch()\n")
    assert run(["unit", "e2e"]) == 1
    assert not (tree / "reached").exists()
    assert summary(tree) == ["unit 0 passed, 1 failed", "not run: e2e, disruptive", "0 passed, 2 failed in"]


def test_suites_are_summed_up_with_the_slowest_tests(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "tests/e2e/test_it.py").write_text(
        "import pytest\ndef test_two(): pytest.skip()\ndef test_four(): pass\n"
        "@pytest.mark.disruptive\ndef test_three(): pass\n"
    )
    assert run(["unit", "e2e"]) == 0
    expected = ["unit 1 passed", "e2e 1 passed, 1 skipped", "disruptive 1 passed", "3 passed, 1 skipped in"]
    assert summary(tree) == expected
    printed = capsys.readouterr().out.splitlines()
    assert printed[-4:] == (tree / suites.DIRECTORY / suites.SUMMARY).read_text().splitlines()
    slow = printed[printed.index("slowest tests:") + 1 : -5]
    assert sorted(line.split()[2:] for line in slow) == [
        ["disruptive", "tests/e2e/test_it.py::test_three"],
        ["e2e", "tests/e2e/test_it.py::test_four"],
        ["e2e", "tests/e2e/test_it.py::test_two"],
        ["unit", "tests/unit/test_it.py::test_one"],
    ]


def test_failed_setup_is_summed_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(setup: Setup) -> None:
        raise ClusterError("no cluster")

    monkeypatch.setattr(suites, "_deploy", fail)
    with pytest.raises(ClusterError):
        run(["e2e"])
    assert summary(tree) == ["not run: e2e, disruptive", "0 passed, 1 failed in"]


def test_results_of_an_earlier_command_are_removed(tree: Path) -> None:
    run(["unit"])
    (tree / "tests/unit/test_it.py").write_text("import os; os._exit(3)\n")
    run(["unit"])
    assert summary(tree) == ["unit 0 passed, 1 failed exit code 3, no results", "0 passed, 1 failed in"]


def test_interrupted_run_counts_as_failed(tree: Path) -> None:
    (tree / "tests/unit/test_it.py").write_text(
        "import os, signal\ndef test_one(): pass\ndef test_two(): os.kill(os.getppid(), signal.SIGINT)\n"
    )
    with pytest.raises(KeyboardInterrupt):
        run(["unit", "e2e"])
    assert summary(tree) == [
        "unit 2 passed, 1 failed exit code 130",
        "not run: e2e, disruptive",
        "2 passed, 2 failed in",
    ]


def test_run_without_results_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "call", mock.Mock(return_value=0))
    tried = Session(["e2e"], (), tmp_path)
    assert tried.run(Run("e2e", "e2e")) == 1
    assert tried.outcomes[0].problem == "exit code 0, no results"


def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Session, list[Sequence[str]]]:
    """A session of two suites, and the commands that it calls, each with one test that passes."""
    called: list[Sequence[str]] = []

    def call(words: Sequence[str]) -> int:
        called.append(words)
        file = next(word for word in words if word.startswith("--junit-xml=")).partition("=")[2]
        Path(file).write_text('<testsuite><testcase classname="a" name="b"/></testsuite>')
        return 0

    monkeypatch.setattr(suites, "call", call)
    return Session(["unit", "integration", "e2e"], arguments, tmp_path), called


def test_missed_threshold_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = {next(path for path in SOURCES if group.matches(path)): Branches(10, 10) for group in INPUT_OUTPUT}
    figures = complete | {"api/a.py": Branches(9, 10), "operator/memcached_operator/kube/client.py": Branches(1, 10)}
    monkeypatch.setattr(branches, "_figures", mock.Mock(return_value=figures))
    tried, called = session(tmp_path, monkeypatch)
    assert [tried.run(Run(name, name)) for name in ("unit", "integration", "e2e")] == [1, 1, 0]
    assert [each.problem for each in tried.outcomes] == [
        "pure code: 90.0 % of the branches, at least 95 % required",
        "client: 10.0 % of the branches, at least 90 % required",
        "",
    ]
    assert tried.write_summary().splitlines()[-1].startswith("3 passed, 2 failed in ")
    assert ["--cov" in words for words in called] == [True, True, False]


def test_coverage_that_cannot_be_computed_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "_figures", mock.Mock(side_effect=CalledProcessError(1, ["coverage", "combine"])))
    tried, _ = session(tmp_path, monkeypatch)
    with pytest.raises(CalledProcessError):
        tried.run(Run("unit", "unit"))
    assert (tmp_path / suites.SUMMARY).read_text().splitlines()[0].endswith("  the coverage was not computed")
    assert tried.write_summary().splitlines()[-1].startswith("1 passed, 2 failed in ")


def test_arguments_leave_the_coverage_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "_figures", None)
    tried, called = session(tmp_path, monkeypatch, "-x")
    assert tried.run(Run("unit", "unit")) == 0
    assert called == [[sys.executable, "-m", "pytest", f"--junit-xml={tmp_path}/unit.xml", "-x", "tests/unit"]]
