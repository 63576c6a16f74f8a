"""Runs tests with pytest: many times in copies of one process that has collected them, or once in a new process."""

import gc
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")
OPTIONS = (*PLUGINS, "-q", "--tb=line", "--assert=plain", "--capture=sys", "-W", "ignore::pytest.PytestWarning")
REPORT = "report.json"
LIMIT = 20
"""Seconds for one test, in addition to ten times its usual time."""
HUNG = 102
"""Exit code if a test exceeds its limit."""


class Reporter:
    """A pytest plugin: selects and orders tests, limits their time, keeps their seconds and the failed ones."""

    def __init__(self, order: Sequence[str], usual: Mapping[str, float]) -> None:
        """`order`: the tests to run, if not all. `usual`: the seconds of tests; others have no limit."""
        self._order = {name: i for i, name in enumerate(order)}
        self._usual = usual
        self._running = ""
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._order:
            chosen = [each for each in items if each.nodeid in self._order]
            items[:] = sorted(chosen, key=lambda each: self._order[each.nodeid])

    def stop_slow_tests(self, folder: Path) -> None:
        """Write what it has kept, and exit with the code HUNG, if a test exceeds its limit."""

        def stop(_number: int, _frame: object) -> None:
            self.failed.append(self._running)
            self.write(folder)
            os._exit(HUNG)

        signal.signal(signal.SIGALRM, stop)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running = nodeid
        if nodeid in self._usual:
            signal.alarm(LIMIT + round(10 * self._usual[nodeid]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        self.pytest_collectreport(report)

    def pytest_collectreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.passed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    def write(self, folder: Path) -> None:
        """Write what it has kept."""
        (folder / REPORT).write_text(json.dumps({"seconds": self.seconds, "failed": self.failed}))


class Collected:
    """A pytest session that has collected tests. Each copy of its process runs some of them."""

    def __init__(self, session: pytest.Session, reporter: Reporter) -> None:
        self._session, self._reporter = session, reporter
        self._items = {each.nodeid: each for each in session.items}
        self.names = list(self._items)

    def run(self, folder: Path, tests: Sequence[str], after: Callable[[str], None] = lambda _: None) -> int:
        """Run tests in this order; the exit code."""
        self._reporter.stop_slow_tests(folder)
        items = [self._items[each] for each in tests if each in self._items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            after(item.nodeid)
            if self._session.shouldfail:
                break
        return self._ended(folder)

    def run_until_each_file_fails(self, folder: Path, tests: Sequence[str]) -> int:
        """Run tests, of each file until one fails; the exit code."""
        self._reporter.stop_slow_tests(folder)
        for item in (self._items[each] for each in tests if each in self._items):
            if not any(each.startswith(f"{item.nodeid.partition('::')[0]}::") for each in self._reporter.failed):
                # Without the next one, which may not run, fixtures of modules end each time.
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self._ended(folder)

    def _ended(self, folder: Path) -> int:
        signal.alarm(0)
        self._reporter.write(folder)
        return pytest.ExitCode.TESTS_FAILED if self._session.testsfailed else pytest.ExitCode.OK


class _Loop:
    """A pytest plugin: does other work instead of the tests."""

    def __init__(self, reporter: Reporter, work: Callable[[Collected], None]) -> None:
        self._reporter, self._work = reporter, work

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed("tests cannot be collected")
        self._work(Collected(session, self._reporter))
        return True


def collect(
    files: Sequence[str], work: Callable[[Collected], None], usual: Mapping[str, float], options: Sequence[str] = ()
) -> None:
    """Collect the tests of files, and do work with them. Raises RuntimeError if that fails."""
    reporter = Reporter((), usual)
    code = pytest.main([*OPTIONS, *options, *files], [reporter, _Loop(reporter, work)])
    if code:
        raise RuntimeError(f"pytest ended with {code}")


def run_once(
    folder: Path, tests: Sequence[Sequence[str]], usual: Mapping[str, float], options: Sequence[str] = ()
) -> int:
    """Import and run groups of tests until one fails; the exit code."""
    gc.freeze()  # pytest collects garbage at its end
    for group in filter(None, tests):
        files = sorted({test.partition("::")[0] for test in group})
        reporter = Reporter(group, usual)
        reporter.stop_slow_tests(folder)
        result = pytest.main([*OPTIONS, *options, *files], [reporter])
        reporter.write(folder)
        if result:
            return result
    return 0
