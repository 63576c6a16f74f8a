"""Running the test suites. With arguments for pytest, suites without a matching test are left out."""

import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from cluster import record
from cluster.console.commands import INTERRUPTED
from cluster.console.progress import Progress
from cluster.down import down
from olm import running
from project import branches, deployment, images, results
from project.environment import ROOT, call, changed, signals_ignored, use_cluster
from project.results import Outcome
from project.runs import Run, runs, select, split

DIRECTORY = "build/tests"
"""Results, coverage and summary of the last command."""
SUMMARY = "summary.txt"
MEASURED = ("unit", "integration")
DEPLOYED = ("e2e", "clients")
"""Suites for which the operator is deployed."""


@dataclass(frozen=True)
class Setup:
    """What suites with the operator need: its image, the arguments of its build, and the overlay to deploy."""

    image: str
    build_arguments: Sequence[str]
    overlay: str


@dataclass
class Session:
    """The runs of one command. Writes the summary after each run."""

    planned: Sequence[str]
    arguments: Sequence[str]
    directory: Path
    started: float = field(default_factory=time.monotonic)
    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    def run(self, run: Run) -> int:
        """Run one command and check the coverage; returns the exit code."""
        file, code = run.results(self.directory), INTERRUPTED
        problem = ""
        try:
            with self._measured(run) as options:
                code = call(run.words([*options, *self.arguments], file))
            if options and not code:
                problem = "the coverage was not computed"  # in case the next line fails
                problem = branches.problem(self.directory, [*(each.name for each in self.outcomes), run.name])
        finally:
            self.outcomes.append(results.outcome(run.name, file, code, self._elapsed(), problem))
            self.write_summary()
        return code or bool(self.outcomes[-1].problem)

    def _measured(self, run: Run) -> AbstractContextManager[Sequence[str]]:
        """Options that measure the coverage of a complete run."""
        if self.arguments or run.name not in MEASURED:
            return nullcontext(())
        return _coverage_file(branches.data_file(self.directory, run.name))

    def _elapsed(self) -> float:
        """Seconds since the end of the previous run."""
        return time.monotonic() - self.started - sum(each.seconds for each in self.outcomes)

    def write_summary(self) -> str:
        """Write the summary so far; return it."""
        lines = results.summary(self.outcomes, self.planned, time.monotonic() - self.started)
        text = "\n".join(lines)
        (self.directory / SUMMARY).write_text(f"{text}\n")
        return text


def test(suites: Sequence[str], workers: str, arguments: str, setup: Setup) -> int:
    """Run suites up to the first failure; returns its exit code, or 0. Raises ClusterError if no test matches."""
    words = split(arguments)
    every = {suite: runs(suite, workers) for suite in suites}
    chosen = select(every, words) if words else every
    session = Session([run.name for found in chosen.values() for run in found], words, _emptied(ROOT / DIRECTORY))
    session.write_summary()
    try:
        return next((code for suite, found in chosen.items() if (code := _run(session, suite, found, setup))), 0)
    finally:
        _report(session)


def _report(session: Session) -> None:
    """Write the last summary. After several runs, print it below the slowest tests."""
    text = session.write_summary()
    if len(session.planned) > 1:
        print("\nslowest tests:", *results.slowest(session.outcomes), f"\n{text}", sep="\n", flush=True)


def _emptied(directory: Path) -> Path:
    """The directory without the files of an earlier command."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    return directory


def _run(session: Session, suite: str, found: Sequence[Run], setup: Setup) -> int:
    with _prepared(suite, setup):
        return next((code for code in map(session.run, found) if code), 0)


@contextmanager
def _coverage_file(path: Path) -> Generator[Sequence[str], None, None]:
    with changed(COVERAGE_FILE=str(path)):
        yield branches.MEASURED


@contextmanager
def _prepared(suite: str, setup: Setup) -> Generator[None, None, None]:
    """The environment of a suite: the deployed operator's cluster, a cluster with OLM, or no cluster."""
    if suite == "olm":
        with _olm_cluster(setup):
            yield
    elif suite == "faults":
        with changed(KUBECONFIG=None, PYTHONPATH=f"{ROOT / 'tests'}:{ROOT / 'tools'}"):
            yield
    else:
        with changed(PYTHONPATH=None):
            if suite in DEPLOYED:
                _deploy(setup)
            yield


def _deploy(setup: Setup) -> None:
    use_cluster()
    _provide(setup)
    deployment.deploy(setup.image, setup.overlay)


def _provide(setup: Setup) -> None:
    images.build(setup.image, setup.build_arguments)
    images.push("IMG", setup.image, into_cluster=True)


@contextmanager
def _olm_cluster(setup: Setup) -> Generator[None, None, None]:
    """The project's own cluster with OLM and the operator's image; it is removed at the end."""
    name = f"{record.cluster_name()}-olm"
    with changed(CLUSTER_NAME=name, KUBECONFIG=None, IMG=setup.image, PYTHONPATH=None):
        try:
            _provide(setup)
            running.up(Progress(running.STEPS))
            yield
        finally:
            with signals_ignored():
                down(name)
