"""The runs of each test suite, and which of them have tests that match the user's arguments for pytest."""

import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from project.environment import ROOT

PYTEST = (sys.executable, "-m", "pytest")
FAULTS = (sys.executable, "-m", "faults", "--gate")
NO_TESTS = 5
"""pytest's exit code if it found no tests, or deselected all of them."""
SUITES = ("unit", "integration", "e2e", "clients", "faults", "olm")


@dataclass(frozen=True)
class Run:
    """A command of a suite: a folder of tests/ with options for pytest; without one, the gate of the fault tests."""

    name: str
    folder: str
    options: tuple[str, ...] = ()

    def words(self, arguments: Sequence[str], results: Path) -> list[str]:
        """The command, which writes its results. The user's arguments follow the options: they take precedence."""
        if not self.folder:
            return [*FAULTS, f"--results={results}"]
        options = merge_marks(self.options, arguments)
        return [*PYTEST, f"--junit-xml={results}", *options, f"tests/{self.folder}"]

    def results(self, directory: Path) -> Path:
        """The file of its results."""
        return directory / f"{self.name}.{'xml' if self.folder else 'jsonl'}"


def runs(suite: str, workers: str) -> tuple[Run, ...]:
    """The runs of a suite. `workers` tests run at the same time, except for tests that disturb the whole operator."""
    parallel = ("-n", workers)
    match suite:
        case "unit":
            return (Run(suite, suite, ("-q", *parallel)),)
        case "integration":
            return (Run(suite, suite, parallel),)
        case "e2e":
            return Run(suite, suite, (*parallel, "-m", "not disruptive")), Run(
                "disruptive", suite, ("-m", "disruptive")
            )
        case "faults":
            return (Run(suite, ""),)
        case _:
            return (Run(suite, suite),)


def split(arguments: str) -> list[str]:
    """The words of ARGS, as a shell splits them. Raises ClusterError for an open quotation."""
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise ClusterError(f"ARGS={arguments!r} cannot be split into words: {error}") from error


def merge_marks(options: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Options and arguments. pytest uses only the last `-m`: it gets the expressions of both."""
    at = next((at for at, word in enumerate(arguments) if word.startswith("-m")), len(arguments))
    end = at + (2 if [*arguments[at:]][:1] == ["-m"] else 1)
    expression = "".join(arguments[at:end]).removeprefix("-m").lstrip("=")
    if not expression or "-m" not in options:
        return [*options, *arguments]
    own = options[options.index("-m") + 1]
    return [*options, *arguments[:at], "-m", f"({own}) and ({expression})", *arguments[end:]]


def select(suites: dict[str, tuple[Run, ...]], arguments: Sequence[str]) -> dict[str, tuple[Run, ...]]:
    """The runs in which the arguments leave a test. Raises ClusterError if there are none."""
    tests = {suite: tuple(run for run in every if run.folder) for suite, every in suites.items()}
    found = {suite: tuple(run for run in every if _collects(run, arguments)) for suite, every in tests.items()}
    chosen = {suite: each for suite, each in found.items() if each}
    if not chosen:
        raise ClusterError(no_tests(tests.values(), arguments))
    return chosen


def no_tests(suites: Iterable[tuple[Run, ...]], arguments: Sequence[str]) -> str:
    """The error for arguments that match no test."""
    folders = dict.fromkeys(f"tests/{run.folder}" for every in suites for run in every)
    return f"no test ran: ARGS={shlex.join(arguments)!r} matches no test in {', '.join(folders)}"


def _collects(run: Run, arguments: Sequence[str]) -> bool:
    """Whether a run would find a test; True if the collection itself fails, so that the run shows the error."""
    marks = run.options[run.options.index("-m") :] if "-m" in run.options else ()
    words = [*PYTEST, "--collect-only", "-q", *merge_marks(marks, arguments), f"tests/{run.folder}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode != NO_TESTS
