"""Compares the messages of tests with those in tests/goldens/messages (CONTRIBUTING.md, Generators).

A test fails if it makes a message that the file of its suite lacks, and a suite if none of its tests makes one of them.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest

from support.messages import recorded

TESTS: Final = Path(__file__).parents[1]
FOLDER: Final = TESTS / "goldens/messages"
UPDATE: Final = "--update-messages"
GENERATED: Final = "walks"
"""In the path of tests with other steps for each seed."""
PARTIAL: Final = ("keyword", "markexpr", "deselect", "lf", "ignore", "ignore_glob")
"""Options with which only some of the tests run."""
SHOWN: Final = 5
"""Messages in a text."""


class Recording:
    """The messages of one process, by suite. The controller of pytest-xdist adds those of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._made: dict[str, set[str]] = {}
        self._stored = {path.stem: set(path.read_text().splitlines()) for path in FOLDER.glob("*.txt")}
        self._left: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Observe the product before the first unit test; the simulation reports what it stores."""
        if any(item.path.is_relative_to(TESTS / "unit") for item in session.items):
            from support.message_sources import observe_all  # tests that need a cluster do not import the product

            observe_all()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record one test."""
        suite = item.path.relative_to(TESTS).parts[0]
        is_hypothesis = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        is_generated = GENERATED in str(item.path.relative_to(TESTS))
        if suite not in self._stored or is_hypothesis or is_generated:
            return (yield)
        with recorded(observes=suite == "unit") as lines:
            result = yield
        self._made.setdefault(suite, set()).update(lines)
        if (new := lines - self._stored[suite]) and not self._config.getoption(UPDATE):
            pytest.fail(_text("This test makes messages that {} does not have", suite, new), pytrace=False)
        return result

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Send the messages to the controller, store them, or compare them with all that are stored."""
        if hasattr(self._config, "workerinput"):
            sent = {suite: list(made) for suite, made in self._made.items()}
            cast("Any", self._config).workeroutput["messages"] = sent
            return
        for suite, made in self._made.items():
            is_whole = exitstatus == pytest.ExitCode.OK and self._is_whole(suite)
            left = self._stored[suite] - made if is_whole else set[str]()
            if self._config.getoption(UPDATE):
                path_of(suite).write_text("".join(f"{line}\n" for line in sorted((self._stored[suite] | made) - left)))
            elif left:
                self._fail(session, _text("No test makes these messages of {}", suite, left))

    def _fail(self, session: pytest.Session, text: str) -> None:
        """Count as a failed test, for the summary of all suites."""
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        name = str(FOLDER.relative_to(TESTS.parent))
        report = pytest.TestReport(name, (name, None, name), {}, "failed", text, "call")
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.stats.setdefault("failed", []).append(report)
        self._left.append(text)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the messages of a worker; one that crashed has none."""
        for suite, made in getattr(node, "workeroutput", {}).get("messages", {}).items():
            self._made.setdefault(suite, set()).update(made)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what is left over."""
        if "skipped" in terminalreporter.stats and any(map(self._made.get, self._stored)):
            terminalreporter.write_line("Because tests were skipped, messages that none makes any more are not found.")
        for text in self._left:
            terminalreporter.section("messages")
            terminalreporter.write_line(text)

    def _is_whole(self, suite: str) -> bool:
        """Whether all tests of a suite have run."""
        config = self._config
        folders = [(config.invocation_params.dir / each).resolve() for each in config.args]
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        is_partial = any(getattr(config.option, name, None) for name in PARTIAL)
        return TESTS / suite in folders and not is_partial and "skipped" not in reporter.stats


def path_of(suite: str) -> Path:
    """The file with the messages of a suite."""
    return FOLDER / f"{suite}.txt"


def _text(problem: str, suite: str, lines: set[str]) -> str:
    """A problem with some of its messages, and the remedy. A braced part of `problem`: the file."""
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    file = path_of(suite).relative_to(TESTS.parent)
    remedy = f"After an intended change: make test-{suite} ARGS={UPDATE}, then read the diff."
    return "\n".join([f"{problem.format(file)}:", *(f"  {line}" for line in sorted(lines)[:SHOWN] + more), remedy])
