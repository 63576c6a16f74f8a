"""Suites run one after the other: one that fails does not stop the others, and failed tests run once more."""

import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cluster.errors import ClusterError
from suites import cli, results, session
from suites.session import Options, Session, command, matching
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


def test_second_attempt_that_writes_no_results_has_failed(tree: Path) -> None:
    (tree / "tests/one/test_one.py").write_text(FAILS_ONCE.format(mark="", then="pass"))
    assert run(tree, [ONE]) == 0
    (tree / "tests/one/test_one.py").write_text(FAILS_ONCE.format(mark="", then="__import__('os')._exit(1)"))
    (tree / "tests/one/tried").unlink()
    assert run(tree, [ONE]) == 1


def test_flaky_test_fails_at_night(tree: Path) -> None:
    (tree / "tests/one/test_one.py").write_text(FAILS_ONCE.format(mark="", then="pass"))
    assert run(tree, [ONE], flaky_fails=True) == 1


@pytest.mark.parametrize("options", [{"times": 2}, {"arguments": ("-q",)}], ids=["repeated", "with ARGS"])
def test_test_that_is_examined_does_not_run_again(options: dict[str, Any], tree: Path) -> None:
    (tree / "tests/one/test_one.py").write_text(FAILS_ONCE.format(mark="", then="pass"))
    assert run(tree, [ONE], **options) == 1
    assert "flaky" not in summary(tree)[-1]


def test_many_failures_stop_a_suite_and_do_not_run_again(tree: Path) -> None:
    tests = "import pytest\n@pytest.mark.parametrize('n', range(30))\ndef test_it(n): assert False\n"
    (tree / "tests/one/test_one.py").write_text(tests)
    setup = Setup()
    assert run(tree, setup=setup) == 1
    assert summary(tree)[results.MAX_FAILURES] == f"one 0 passed, {results.MAX_FAILURES} failed s"
    assert setup.prepared_for == [("one", False), ("two", False)]


def test_second_attempt_has_a_time_limit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECONDS_AGAIN", 3)
    (tree / "tests/one/test_one.py").write_text(FAILS_ONCE.format(mark="", then="import signal; signal.pause()"))
    assert run(tree, [ONE]) == 1


def test_no_suite_starts_after_the_limit(tree: Path) -> None:
    assert run(tree, until=0) == 1
    assert summary(tree) == [f"not run: {name}: {session.TOO_LATE}" for name in ("one", "two")] + [
        "0 passed, 1 failed in"
    ]


def test_interrupted_session_is_summed_up(tree: Path) -> None:
    text = "import os, signal\ndef test_one(): pass\ndef test_two(): os.kill(os.getppid(), signal.SIGINT)\n"
    (tree / "tests/one/test_one.py").write_text(text)
    with pytest.raises(KeyboardInterrupt):
        run(tree)
    assert summary(tree) == [
        "one 2 passed, 1 failed s interrupted",
        "not run: two: interrupted",
        "2 passed, 2 failed in",
    ]


def test_results_are_added_to_those_of_the_command_before(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "DIRECTORY", tree / "build")
    monkeypatch.setattr("suites.cli.SUITES", {"one": ONE, "two": TWO})
    monkeypatch.setattr("suites.table.SUITES", {"one": ONE, "two": Suite("two", "", Needs.NOTHING, "two")})
    for words, code, end in (
        (["one"], 0, "1 passed in"),
        (["--add", "two"], 0, "2 passed in"),
        (["--add", "two"], 0, "2 passed in"),
        (["--minutes=-1", "one"], 1, "0 passed, 1 failed in"),
        (["--add", "two"], 1, "1 passed, 1 failed in"),
        (["two"], 0, "1 passed in"),
    ):
        monkeypatch.setattr(signal, "signal", mock.Mock())
        assert cli.main(words) == code
        assert capsys.readouterr().out.splitlines()[-1].startswith(end)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("-k", "two"), ["two"]),
        (("-k", "it"), ["one", "two"]),
        (("--no-such",), ["one", "two"]),
        (("tests/two/test_two.py",), ["two"]),
        (("-k", "it", "tests/one/test_one.py"), ["one"]),
    ],
)
@pytest.mark.usefixtures("tree")
def test_suites_without_a_matching_test_are_left_out(arguments: tuple[str, ...], left: list[str]) -> None:
    assert [suite.name for suite in matching([ONE, TWO], arguments)] == left


def test_paths_replace_the_folder_of_a_suite() -> None:
    path = "tests/two/test_two.py::test_it"
    assert command(TWO, "1", ["-x", path, "tests/one"])[-2:] == ["-x", path]
    assert command(TWO, "1", ["-x"])[-2:] == command(TWO, "1", ["-x", "tests/two"])[-2:] == ["-x", "tests/two"]


@pytest.mark.usefixtures("tree")
def test_no_matching_test_is_an_error() -> None:
    expected = "^no test ran: ARGS='-k typo' matches no test in tests/one, tests/two$"
    with pytest.raises(ClusterError, match=expected):
        matching([ONE, TWO], ["-k", "typo"])


@pytest.mark.parametrize(
    ("names", "environ", "left_out"),
    [
        (["all"], {"CLUSTER": "control-plane"}, {"smoke", "e2e", "disruptive", "olm"}),
        (["all"], {"CLUSTER": "control-plane", "KUBECONFIG": "/mine"}, {"olm"}),
        (["unit", "faults"], {"CLUSTER": "control-plane"}, set[str]()),
        (["olm"], {"CLUSTER": "control-plane"}, None),
    ],
)
def test_suites_that_cannot_run_here_are_named(
    names: list[str], environ: dict[str, str], left_out: set[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KUBECONFIG", raising=False)
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.setattr(signal, "signal", mock.Mock())
        assert cli.main(["--plan", *names]) == (0 if left_out is not None else 1)
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(": ")[1] for line in lines if line.startswith("left out: ")} == (left_out or set())


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
    [("e2e", {"smoke", "disruptive", "nightly"}), ("integration", {"sweep", "nightly"}), ("olm", {"modes"})],
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
    ("seconds", "workers", "order"),
    [
        ([0, 0, 0], 2, "abc"),
        ([0, 2, 0, 3, 1], 1, "dbeac"),
        ([0, 2, 0, 3, 1, 0], 2, "deabcf"),
        ([1, 2, 3], 4, "cba"),
    ],
)
def test_each_worker_begins_with_long_tests(seconds: list[float], workers: int, order: str) -> None:
    assert "".join(parts.balanced("abcdef"[: len(seconds)], seconds, workers)) == order


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
