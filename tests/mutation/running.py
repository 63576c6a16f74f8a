"""Runs tests of a checkout in forked processes: once with coverage, then with one mutant each."""

import gc
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import coverage
import hypothesis
import pytest

from mutation.places import Key, mutated

IMPORTED = ("aiohttp", "click", "cryptography.x509", "kopf", "kubernetes", "prometheus_client", "yaml")
"""Packages that the tests import; imported once, before the processes are forked."""
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")
OPTIONS = (*PLUGINS, "-q", "--tb=line", "--assert=plain", "-W", "ignore::pytest.PytestWarning")
EXAMPLES = 20
"""Examples of Hypothesis for each test that sets no number."""
BROKEN = 100
"""Exit code if pytest did not run."""


class Task(NamedTuple):
    """A limit in seconds, and a function of a folder for its files that returns the exit code."""

    limit: int
    run: Callable[[Path], int]


class Done(NamedTuple):
    """A task that ended. A negative exit code is that of a signal. The folder is deleted after use."""

    name: str
    folder: Path
    code: int
    seconds: float
    report: Mapping[str, Any]


class Reporter:
    """A pytest plugin: selects and orders tests, keeps their seconds and the failed ones, measures coverage."""

    def __init__(self, order: Mapping[str, int], measured: coverage.Coverage | None = None) -> None:
        self.order = order
        self._measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order:
            chosen = [each for each in items if each.nodeid in self.order]
            items[:] = sorted(chosen, key=lambda each: self.order[each.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._measured:
            self._measured.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        self.pytest_collectreport(report)

    def pytest_collectreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.passed:
            self.failed.append(report.nodeid)


def measure(folder: Path, files: Sequence[str]) -> int:
    """Run tests with the coverage of each."""
    measured = coverage.Coverage(str(folder / "coverage"), include=["api/*", "operator/*"], config_file=False)
    measured.start()
    result = _pytest(folder, files, Reporter({}, measured))
    measured.stop()
    measured.save()
    return result


def detect(folder: Path, tests: Sequence[Sequence[str]], file: Path, key: Key) -> int:
    """Run groups of tests with a mutated file until one fails."""
    code, original = mutated(file.read_text(), str(file), key), SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return code if self.path == str(file) else original(self, fullname)

    SourceFileLoader.get_code = get_code
    for group in filter(None, tests):
        files = sorted({test.partition("::")[0] for test in group})
        if result := _pytest(folder, files, Reporter({test: i for i, test in enumerate(group)}), "-x"):
            return result
    return 0


def _pytest(folder: Path, files: Sequence[str], reporter: Reporter, *options: str) -> int:
    result = pytest.main([*OPTIONS, *options, f"--basetemp={folder}/tmp", *files], [reporter])
    (folder / "report.json").write_text(json.dumps({"seconds": reporter.seconds, "failed": reporter.failed}))
    return result


def run_all(tree: Path, folder: Path, tasks: Mapping[str, Task], jobs: int) -> Iterator[Done]:
    """Run tasks, `jobs` at a time, each in a folder and a process group of its own."""
    for package in IMPORTED:
        import_module(package)
    running: dict[int, tuple[str, float]] = {}
    waiting = list(tasks)[::-1]
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop()
                (folder / name).mkdir()
                pid = os.fork() or _child(tree, folder / name, tasks[name])
                running[pid] = name, time.monotonic()
            pid, status = os.wait()
            _kill(pid)
            name, start = running.pop(pid)
            file = folder / name / "report.json"
            report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
            yield Done(name, folder / name, os.waitstatus_to_exitcode(status), time.monotonic() - start, report)
            shutil.rmtree(folder / name)
    finally:
        for pid in running:
            _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _child(tree: Path, folder: Path, task: Task) -> int:
    code = BROKEN
    try:
        gc.freeze()  # pytest collects garbage at its end
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(task.limit)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(folder / "output", os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(1, 2)
        os.chdir(tree)
        os.environ.pop("PYTHONPATH", None)
        # pytest adds the folders of the checkout; those of this program must not hide them.
        sys.path[:] = [each for each in sys.path if each.startswith(sys.base_prefix) or "site-packages" in each]
        # The profile of conftest.py inherits from this one: the same examples each time, and fewer, to save time.
        hypothesis.settings.register_profile("mutation", database=None, derandomize=True, max_examples=EXAMPLES)
        hypothesis.settings.load_profile("mutation")
        code = task.run(folder)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)
