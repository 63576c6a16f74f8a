"""Running suites one after the other. One that fails does not stop the others; failed tests run once more, alone."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from cluster.errors import ClusterError
from project.environment import ROOT, call
from suites import coverage, results
from suites.environment import notes
from suites.results import FAILED, Outcome
from suites.table import Suite

PYTEST = (sys.executable, "-m", "pytest")
NO_TESTS = 5
"""pytest's exit code if it found no tests, or deselected all of them."""
DIRECTORY = ROOT / "build/tests"
"""Results, coverage and summary."""
OUTCOMES, SUMMARY = "outcomes.json", "summary.txt"
MAX_AGAIN, SECONDS_AGAIN = 5, 300.0
"""At most so many failed tests run once more, for so many seconds together."""
TOO_LATE = "the time for starting suites is over"
INTERRUPT = "interrupted"


class Prepared(Protocol):
    """What prepares the environment of a suite."""

    def prepared(self, suite: Suite, *, fresh: bool = False) -> AbstractContextManager[None]:
        """The environment, during the block."""
        ...


@dataclass(frozen=True)
class Options:
    """What the user asks for: WORKERS, arguments for pytest, coverage, repetitions, and whether a flaky test fails.

    `until` is the time, as `time.time()`, after which no suite starts.
    """

    workers: str = "4"
    arguments: tuple[str, ...] = ()
    measured: bool = False
    times: int = 1
    flaky_fails: bool = False
    until: float = float("inf")


@dataclass
class Session:
    """The suites of one command. The summary is written after each of them."""

    setup: Prepared
    options: Options
    left_out: Mapping[str, str]
    directory: Path
    started: float = field(default_factory=time.monotonic)
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    missing: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, suites: Sequence[Suite]) -> int:
        """Run all suites, also if one fails; returns the exit code. Ctrl-C ends the session after the clean-up."""
        numbers = range(self.options.times)
        runs = {_title(suite, number, self.options.times): suite for suite in suites for number in numbers}
        self.outcomes = [each for each in self.outcomes if each.suite not in runs]
        self.missing |= dict.fromkeys(runs, INTERRUPT)
        self.write()
        try:
            for title, suite in runs.items():
                self._run(suite, title)
            if self.options.measured and not self.options.arguments:
                self._check_coverage(suites)
        finally:
            self.report()
        return int(any(self._failed(each) for each in self.outcomes) or bool(self.missing))

    def _failed(self, each: Outcome) -> bool:
        return bool(each.counts[FAILED] or (self.options.flaky_fails and each.named(results.FLAKY)))

    def _run(self, suite: Suite, title: str) -> None:
        if time.time() > self.options.until:
            self.missing[title] = TOO_LATE
            return
        print(f"\n=== {title}: {suite.content}", flush=True)
        begun, outcome = time.monotonic(), Outcome(title, (), problem=INTERRUPT)
        try:
            outcome = self._attempts(suite, title)
        except ClusterError as error:
            outcome = replace(outcome, problem=f"not prepared: {error}")
            print(f"error: {outcome.problem}", file=sys.stderr, flush=True)
        finally:
            tests = outcome.tests or results.read(self._file(title))
            self.outcomes.append(replace(outcome, tests=tests, seconds=time.monotonic() - begun))
            self.missing.pop(title, None)
            self.write()

    def _attempts(self, suite: Suite, title: str) -> Outcome:
        """The outcome of the suite and, if a few of its tests failed, of one more attempt of these."""
        first = self._attempt(suite, title)
        failures = first.named(FAILED)
        again = suite.again and self.options.times == 1 and not self.options.arguments and not first.problem
        if not (again and 0 < len(failures) <= MAX_AGAIN):
            return first
        print(f"\n=== {title}: {len(failures)} failed tests once more, alone", flush=True)
        words = [*PYTEST, "--last-failed", "-m", "not race", *suite.options, f"tests/{suite.folder}"]
        file = self._file(f"{title}-again")
        with self.setup.prepared(suite, fresh=True):
            code = self._call(suite, words, file, SECONDS_AGAIN)
        return results.merged(first, results.read(file)) if code in (0, 1) else first

    def _attempt(self, suite: Suite, title: str) -> Outcome:
        file = self._file(title)
        with self.setup.prepared(suite), coverage.data_file(self.directory, suite.name, self.options.measured) as added:
            words = [*command(suite, self.options.workers, self.options.arguments), *added]
            code = self._call(suite, words, file)
        return results.outcome(title, results.read(file), code)

    def _call(self, suite: Suite, words: Sequence[str], file: Path, seconds: float | None = None) -> int:
        """Run pytest, which writes its results to the file."""
        file.unlink(missing_ok=True)
        cache = self.directory / "cache" / suite.name
        return call([*words, f"--junit-xml={file}", "-o", f"cache_dir={cache}"], seconds)

    def _file(self, title: str) -> Path:
        return self.directory / f"{title.replace('/', '-of-')}.xml"

    def _check_coverage(self, suites: Sequence[Suite]) -> None:
        try:
            problem = coverage.problem(self.directory, [suite.name for suite in suites])
        except subprocess.CalledProcessError as error:
            problem = f"the coverage was not computed: {error}"
        self.outcomes.append(Outcome("coverage", (), problem=problem))

    def write(self) -> str:
        """Write the outcomes and the summary so far; return the summary."""
        self.directory.mkdir(parents=True, exist_ok=True)
        results.store(self.directory / OUTCOMES, self.outcomes, self.missing)
        seconds = max(time.monotonic() - self.started, sum(each.seconds for each in self.outcomes))
        text = results.summary(self.outcomes, self.missing, notes(self.left_out), seconds)
        (self.directory / SUMMARY).write_text(f"{text}\n")
        return text

    def report(self) -> None:
        """Print the slowest tests and the summary."""
        text = self.write()
        print("\nslowest tests:", *results.slowest(self.outcomes), f"\n{text}", sep="\n", flush=True)


def _title(suite: Suite, number: int, times: int) -> str:
    return suite.name if times == 1 else f"{suite.name} {number + 1}/{times}"


def command(suite: Suite, workers: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command of a suite with the user's arguments, without the file of its results."""
    # An idle worker takes tests from another one, so that none waits behind a long test.
    number = str(suite.times * int(workers)) if workers.isdigit() else workers
    parallel = ("-n", number, "--dist=worksteal") if suite.parallel else ()
    return [*PYTEST, f"--maxfail={results.MAX_FAILURES}", *parallel, *suite.options, *selected(suite, arguments)]


def selected(suite: Suite, arguments: Sequence[str]) -> list[str]:
    """The user's arguments for a suite and its folder, or the paths that they name in it.

    Empty if all paths are in other folders. A path that is the value of an option must follow it with `=`.
    """
    folder = f"tests/{suite.folder}"
    paths = [each for each in arguments if each.startswith("tests/")]
    own = [each for each in paths if f"{each}/".startswith(f"{folder}/")]
    if paths and not own:
        return []
    return [*(each for each in arguments if each not in paths), *(own or [folder])]


def matching(suites: Sequence[Suite], arguments: Sequence[str]) -> list[Suite]:
    """The suites in which the user's arguments for pytest leave a test. Raises ClusterError if there are none."""
    if not arguments:
        return list(suites)
    found = [suite for suite in suites if _collects(suite, arguments)]
    if not found:
        folders = ", ".join(dict.fromkeys(f"tests/{suite.folder}" for suite in suites))
        raise ClusterError(f"no test ran: ARGS={shlex.join(arguments)!r} matches no test in {folders}")
    return found


def _collects(suite: Suite, arguments: Sequence[str]) -> bool:
    """Whether a run would find a test; True if the collection itself fails, so that the run shows the error."""
    if not (found := selected(suite, arguments)):
        return False
    words = [*PYTEST, "--collect-only", "-q", *suite.options, *found]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, check=False).returncode != NO_TESTS


def split(arguments: str) -> tuple[str, ...]:
    """The words of ARGS, as a shell splits them. Raises ClusterError for an open quotation."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError as error:
        raise ClusterError(f"ARGS={arguments!r} cannot be split into words: {error}") from error
