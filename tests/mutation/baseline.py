"""The tests that pass without a mutant, with their seconds and the lines that they execute."""

import json
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mutation.lines import Masks, Recorder
from mutation.running import Task, apart, run_all
from mutation.sessions import REPORT, Collected, collect

LIMIT = 7200
"""Seconds for one process."""
LINES = "lines"
PART = 40
"""Tests that one process measures."""
IMPORT = ""
"""The name of what is executed when the tests are collected."""

Select = Callable[[Sequence[str]], Sequence[str]]
"""A choice of tests."""


class Test(NamedTuple):
    """Of a test that fails without a mutant, the seconds are negative."""

    seconds: float
    lines: Masks


class Baseline:
    """The tests of a level. What has been measured is kept in a file; tests that are missing there are measured."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self.tests: dict[str, Test] = {}
        """The tests that pass, fastest first."""
        self.seconds: dict[str, float] = {}
        self.failing: list[str] = []
        """The tests that fail without a mutant."""
        self._imported: Masks = {}

    def measure(self, tree: Path, folder: Path, files: Sequence[str], jobs: int, select: Select) -> None:
        """Measure those tests of files of a checkout that `select` returns."""

        def work() -> None:
            recorder = Recorder(tree)  # before the modules are imported
            part = _Measurement(folder, recorder, jobs)
            collect(files, lambda collected: part.run(collected, select(collected.names), self._kept), {})

        apart(tree, folder / "output", work)
        tests = _load(self._kept)
        self._imported = tests.pop(IMPORT).lines
        self.failing = sorted(name for name, test in tests.items() if test.seconds < 0)
        passed = sorted(tests.keys() - set(self.failing), key=lambda name: tests[name].seconds)
        self.tests = {name: tests[name] for name in passed}
        self.seconds = {name: test.seconds for name, test in self.tests.items()}

    def is_imported(self, lines: Masks) -> bool:
        """True if any of these lines is executed when the tests are collected."""
        return executes(self._imported, lines)


def _load(kept: Path) -> dict[str, Test]:
    tests: dict[str, Test] = {}
    if kept.exists():
        with kept.open("rb") as file, suppress(EOFError):
            while True:
                tests.update(pickle.load(file))  # noqa: S301
    return tests


def executes(executed: Masks, lines: Masks) -> bool:
    """True if any of the lines is among the executed ones."""
    return any(executed.get(path, 0) & each for path, each in lines.items())


class _Measurement:
    def __init__(self, folder: Path, recorder: Recorder, jobs: int) -> None:
        self._folder, self._recorder, self._jobs = folder, recorder, jobs

    def run(self, collected: Collected, tests: Sequence[str], kept: Path) -> None:
        """Measure the tests that are missing in the file, and append them."""
        imported, known = {IMPORT: Test(0.0, self._recorder.take())}, _load(kept)
        waiting = [each for each in tests if each not in known]
        parts = [waiting[i : i + PART] for i in range(0, len(waiting), PART)]
        tasks = {f"baseline-{i}": Task(LIMIT, partial(self._run, collected, part)) for i, part in enumerate(parts)}
        with kept.open("ab") as file:
            pickle.dump(imported, file)
            for done in run_all(self._folder, tasks, self._jobs):
                pickle.dump(_tests(done.folder), file)
                file.flush()

    def _run(self, collected: Collected, part: Sequence[str], folder: Path) -> int:
        executed: dict[str, Masks] = {}
        self._recorder.take()
        code = collected.run(folder, part, lambda name: executed.update({name: self._recorder.take()}))
        (folder / LINES).write_bytes(pickle.dumps(executed))
        return code


def _tests(folder: Path) -> dict[str, Test]:
    """The tests that a process has measured."""
    if not (folder / LINES).exists():
        raise RuntimeError((folder / "output").read_text())
    report = json.loads((folder / REPORT).read_text())
    executed: dict[str, Masks] = pickle.loads((folder / LINES).read_bytes())  # noqa: S301
    seconds = {name: -1.0 if name in report["failed"] else report["seconds"][name] for name in executed}
    return {name: Test(seconds[name], lines) for name, lines in executed.items()}
