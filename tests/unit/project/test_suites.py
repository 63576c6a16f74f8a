"""The pytest runs of each suite, and the error if no test matches."""

import signal
import sys
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from project import cli, suites
from project.suites import Run, runs
from unit.config.rendered import ROOT

ONE = "def test_one(): pass\n"
IMAGE = "localhost/op:1"


@pytest.mark.parametrize(
    ("suite", "options"),
    [
        ("unit", [()]),
        ("integration", [("-n", "3")]),
        ("e2e", [("-n", "3", "-m", "not disruptive"), ("-m", "disruptive")]),
        ("olm", [()]),
        ("faults", []),
    ],
)
def test_runs_of_a_suite(suite: str, options: list[tuple[str, ...]]) -> None:
    found = runs(suite, 3)
    assert [run.options for run in found] == options
    assert {run.folder for run in found} <= {suite}


def test_coverage_measures_every_package_with_the_unit_tests() -> None:
    (run,) = runs("coverage", 2)
    packages = {path.name for root in ("api", "operator", "webhooks") for path in (ROOT / root).iterdir()}
    assert {f"--cov={name}" for name in packages if name.startswith("memcached_") and "." not in name} <= {*run.options}
    assert run.folder == "unit"


def test_user_arguments_follow_the_options() -> None:
    words = Run("e2e", "e2e", ("-n", "4")).words(suites.split("-k 'a or b' -n 1"))
    assert words == [sys.executable, "-m", "pytest", "-n", "4", "-k", "a or b", "-n", "1", "tests/e2e"]


def test_unclosed_quotation_is_reported_in_one_sentence() -> None:
    with pytest.raises(ClusterError, match=r"""^ARGS="-k 'a" cannot be split into words: No closing quotation$"""):
        suites.split("-k 'a")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose unit suite has one test, test_one, and whose e2e suite has one, test_two."""
    for folder, text in (("unit", ONE), ("e2e", ONE.replace("one", "two"))):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_it.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = disruptive\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    monkeypatch.setattr("project.environment.ROOT", tmp_path)
    monkeypatch.setattr(suites, "use_cluster", lambda: None)
    return tmp_path


def selected(names: list[str], *arguments: str) -> list[str]:
    """The suites with at least one matching test."""
    return list(suites.select({name: runs(name, 1) for name in names}, arguments))


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("expression", "left"),
    [("one", {"unit": 1}), ("two", {"e2e": 1}), ("one or two", {"unit": 1, "e2e": 1})],
)
def test_runs_without_a_matching_test_are_skipped(expression: str, left: dict[str, int]) -> None:
    every = {name: runs(name, 1) for name in ("unit", "e2e", "faults")}
    chosen = suites.select(every, ["-k", expression])
    assert {name: len(found) for name, found in chosen.items()} == left, "no test is disruptive"


@pytest.mark.usefixtures("tree")
def test_invalid_arguments_are_reported_by_pytest() -> None:
    assert suites.test(["unit"], 1, "--no-such-option", IMAGE, []) == 4


@pytest.mark.usefixtures("tree")
def test_no_matching_test_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["test", "unit", "e2e", "faults", "--args=-k typo", f"--image={IMAGE}"]
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert cli.main(words) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == ("error: no test ran: ARGS='-k typo' matches no test in tests/unit, tests/e2e\n")


def test_empty_suite_fails_without_arguments(tree: Path) -> None:
    (tree / "tests/unit/test_it.py").unlink()
    assert suites.test(["unit"], 1, "", IMAGE, []) == suites.NO_TESTS


def test_first_failed_suite_ends_the_command(tree: Path) -> None:
    (tree / "tests/unit/test_it.py").write_text("def test_one(): assert False\n")
    (tree / "tests/e2e/test_it.py").write_text("from pathlib import Path\nPath('reached').touch()\n")
    assert suites.test(["unit", "e2e"], 1, "", IMAGE, []) == 1
    assert not (tree / "reached").exists()
