"""Runs the tests of a level for mutants."""

import json
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from mutation.baseline import Baseline
from mutation.levels import Chosen, Groups, cases, files_of, spread, unit_tests
from mutation.matrix import Row
from mutation.mutants import Mutant, pairs_of
from mutation.replacing import Functions, before_import
from mutation.running import BROKEN, Done, Task, apart, prepare, run_all
from mutation.sessions import HUNG, REPORT, Collected, collect, run_once

LIMIT = 300
"""Seconds for one mutant, in addition to ten times the usual time of its tests. Each test has a limit of its own."""
IMPORTED = 101
"""Exit code if a mutant changes more than functions: it needs a process that imports it."""
RESULTS = {
    pytest.ExitCode.OK: "survived",
    -signal.SIGALRM: "hung",
    -signal.SIGXCPU: "hung",
    HUNG: "hung",
    pytest.ExitCode.NO_TESTS_COLLECTED: "error",
    BROKEN: "error",
}
"""By exit code. Others are "detected", even a crash."""


class Settings(NamedTuple):
    """A checkout, a folder for files, mutants at the same time, and whether all tests of a mutant run.

    `measured`, `chosen`: the cases of the simulation that are measured, and those of them that run for a mutant.
    """

    tree: Path
    folder: Path
    jobs: int
    measured: Chosen
    chosen: Chosen
    keep_going: bool

    @property
    def options(self) -> tuple[str, ...]:
        """The options of pytest."""
        return () if self.keep_going else ("-x",)


class Detection:
    """The mutants to run on one level, with their tests."""

    def __init__(self, level: str, settings: Settings, kept: Path, write: Callable[[Row], None]) -> None:
        """`kept`: the file for the baseline. `write`: called with each row."""
        self._level, self._settings, self._write = level, settings, write
        self._files, self._baseline = files_of(level, settings.tree), Baseline(kept)
        self._mutants: dict[str, Mutant] = {}
        self._tests: dict[str, Groups] = {}

    def run(self, mutants: Sequence[Mutant]) -> None:
        """Run the tests of the level for mutants."""
        settings = self._settings
        self._baseline.measure(settings.tree, settings.folder, self._files, settings.jobs, self._select)
        for test in self._baseline.failing:
            print(f"left out, fails without a mutant: {test}", flush=True)
        self._mutants = {str(i): each for i, each in enumerate(mutants)}
        self._tests = {name: self._tests_of(each) for name, each in self._mutants.items()}
        for name in [name for name, groups in self._tests.items() if not any(groups)]:
            self._record(name, "uncovered")
            del self._tests[name]
        imported = [name for name in self._tests if self._baseline.is_imported(self._mutants[name].lines)]
        imported += self._run_copies([name for name in self._tests if name not in set(imported)])
        tasks = {name: self._task(name, partial(self._run_imported, name)) for name in imported}
        for done in run_all(settings.folder, tasks, settings.jobs):
            self._record_done(done)

    def _select(self, tests: Sequence[str]) -> Sequence[str]:
        return spread(tests, self._settings.measured) if self._level == "simulation" else tests

    def _tests_of(self, mutant: Mutant) -> Groups:
        if self._level == "unit":
            return unit_tests(self._baseline, mutant.lines)
        return cases(self._baseline, mutant.lines, mutant.case, self._settings.chosen)

    def _task(self, name: str, run: Callable[[Path], int]) -> Task:
        seconds = sum(self._baseline.seconds[test] for group in self._tests[name] for test in group)
        return Task(LIMIT + round(10 * seconds), run)

    def _run_copies(self, names: Sequence[str]) -> list[str]:
        """Run mutants in copies of a process that has collected all tests. Returns those that it cannot run."""
        if not names:
            return []
        settings, file = self._settings, self._settings.folder / "imported.json"

        def work(collected: Collected) -> None:
            functions, left = Functions(), list[str]()
            tasks = {name: self._task(name, partial(self._run_copy, name, collected, functions)) for name in names}
            for done in run_all(settings.folder, tasks, settings.jobs):
                if done.code == IMPORTED:
                    left.append(done.name)
                else:
                    self._record_done(done)
            file.write_text(json.dumps(left))

        usual = self._baseline.seconds
        apart(settings.tree, settings.folder / "output", lambda: collect(self._files, work, usual, settings.options))
        return json.loads(file.read_text())

    def _run_copy(self, name: str, collected: Collected, functions: Functions, folder: Path) -> int:
        codes = self._mutants[name].codes()
        pairs = pairs_of(codes)
        if pairs is None:
            return IMPORTED
        before_import(codes.get)
        functions.replace(pairs)
        tests = [test for group in self._tests[name] for test in group]
        if self._settings.keep_going:
            return collected.run_until_each_file_fails(folder, tests)
        return collected.run(folder, tests)

    def _run_imported(self, name: str, folder: Path) -> int:
        prepare(self._settings.tree)
        before_import(self._mutants[name].codes().get)
        return run_once(folder, self._tests[name], self._baseline.seconds, self._settings.options)

    def _record_done(self, done: Done) -> None:
        file = done.folder / REPORT
        failed: list[str] = json.loads(file.read_text())["failed"] if file.exists() else []
        result = RESULTS.get(done.code, "detected")
        if result == "error":
            print(f"{self._mutants[done.name].id}:\n{(done.folder / 'output').read_text()[-2000:]}", flush=True)
        self._record(done.name, result, failed, done.seconds)

    def _record(self, name: str, result: str, failed: Sequence[str] = (), seconds: float = 0.0) -> None:
        mutant, number = self._mutants[name], sum(map(len, self._tests[name]))
        figures = {"by": failed, "tests": number, "seconds": round(seconds, 1)}
        by_level = {figure: {self._level: value} for figure, value in figures.items()}
        self._write({"id": mutant.id, "place": mutant.place, self._level: result, **by_level})
