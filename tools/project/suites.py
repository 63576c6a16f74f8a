"""Running the test suites. With arguments for pytest, suites without a matching test are left out."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cluster import record
from cluster.console.progress import Progress
from cluster.down import down
from cluster.errors import ClusterError
from olm import running
from project import images
from project.environment import ROOT, call, changed, use_cluster

PYTEST = (sys.executable, "-m", "pytest")
COVERAGE = (sys.executable, "-m", "coverage", "report", "--fail-under=95")
"""Of the pure code, which pyproject.toml lists."""
PACKAGES = ("memcached_api", "memcached_operator", "memcached_process", "memcached_webhooks")
NO_TESTS = 5
"""pytest's exit code if it found no tests, or deselected all of them."""
NEED_CLUSTER = ("integration", "e2e")
SUITES = ("unit", "coverage", "integration", "e2e", "faults", "olm")


@dataclass(frozen=True)
class Run:
    """One run of pytest: the suite it belongs to, a folder of tests/, and options."""

    suite: str
    folder: str
    options: tuple[str, ...] = ()

    def words(self, arguments: Sequence[str]) -> list[str]:
        """The command; the user's arguments follow the options, so that they take precedence."""
        return [*PYTEST, *self.options, *arguments, f"tests/{self.folder}"]


def runs(suite: str, workers: int) -> tuple[Run, ...]:
    """The runs of a suite. `workers` tests run at the same time, except for tests that disturb the whole operator."""
    parallel = ("-n", str(workers))
    match suite:
        case "coverage":
            measured = (*(f"--cov={name}" for name in PACKAGES), "--cov-branch", "--cov-report=")
            return (Run(suite, "unit", ("-q", *parallel, *measured)),)
        case "integration":
            return (Run(suite, suite, parallel),)
        case "e2e":
            return Run(suite, suite, (*parallel, "-m", "not disruptive")), Run(suite, suite, ("-m", "disruptive"))
        case "faults":
            return ()
        case _:
            return (Run(suite, suite),)


def split(arguments: str) -> list[str]:
    """The words of ARGS, as a shell splits them. Raises ClusterError for an open quotation."""
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise ClusterError(f"ARGS={arguments!r} cannot be split into words: {error}") from error


def test(suites: Sequence[str], workers: int, arguments: str, image: str, build_arguments: Sequence[str]) -> int:
    """Run suites up to the first failure; returns its exit code, or 0. Raises ClusterError if no test matches."""
    words = split(arguments)
    every = {suite: runs(suite, workers) for suite in suites}
    chosen = select(every, words) if words else every
    for suite, found in chosen.items():
        with _prepared(suite, image, build_arguments):
            code = _run(suite, found, words)
        if code:
            return code
    return 0


def select(suites: dict[str, tuple[Run, ...]], arguments: Sequence[str]) -> dict[str, tuple[Run, ...]]:
    """The runs in which the arguments leave a test. Raises ClusterError if there are none."""
    found = {suite: tuple(run for run in every if _collects(run, arguments)) for suite, every in suites.items()}
    chosen = {suite: each for suite, each in found.items() if each}
    if not chosen:
        raise ClusterError(no_tests(suites.values(), arguments))
    return chosen


def no_tests(suites: Iterable[tuple[Run, ...]], arguments: Sequence[str]) -> str:
    """The error for arguments that match no test."""
    folders = dict.fromkeys(f"tests/{run.folder}" for every in suites for run in every)
    return f"no test ran: ARGS={shlex.join(arguments)!r} matches no test in {', '.join(folders)}"


def _collects(run: Run, arguments: Sequence[str]) -> bool:
    """Whether a run would find a test; True if the collection itself fails, so that the run shows the error."""
    marks = run.options[run.options.index("-m") :] if "-m" in run.options else ()
    words = Run(run.suite, run.folder, (*marks, "--collect-only", "-q")).words(arguments)
    return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode != NO_TESTS


def _run(suite: str, found: Sequence[Run], arguments: Sequence[str]) -> int:
    commands = [run.words(arguments) for run in found]
    if suite == "coverage" and not arguments:
        commands.append(list(COVERAGE))
    if suite == "faults":
        commands.append([sys.executable, "-m", "faults", "--gate"])
    return next((code for code in map(call, commands) if code), 0)


@contextmanager
def _prepared(suite: str, image: str, build_arguments: Sequence[str]) -> Generator[None, None, None]:
    """The environment of a suite: the deployed operator's cluster, a cluster with OLM, or no cluster."""
    if suite == "olm":
        with _olm_cluster(image, build_arguments):
            yield
    elif suite == "faults":
        with changed(KUBECONFIG=None, PYTHONPATH=f"{ROOT / 'tests'}:{ROOT / 'tools'}"):
            yield
    else:
        with changed(PYTHONPATH=None):
            if suite in NEED_CLUSTER:
                use_cluster()
            yield


@contextmanager
def _olm_cluster(image: str, build_arguments: Sequence[str]) -> Generator[None, None, None]:
    """The project's own cluster with OLM and the operator's image; it is removed at the end."""
    name = f"{record.cluster_name()}-olm"
    with changed(CLUSTER_NAME=name, KUBECONFIG=None, IMG=image, PYTHONPATH=None):
        try:
            images.build(image, build_arguments)
            images.push("IMG", image, into_cluster=True)
            running.up(Progress(running.STEPS))
            yield
        finally:
            with _signals_ignored():
                down(name)


@contextmanager
def _signals_ignored() -> Generator[None, None, None]:
    """Ignore Ctrl-C, SIGTERM and SIGHUP: a second one must not leave the cluster behind."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
