"""The environment of commands that need a cluster: KUBECONFIG, and kubectl on the PATH."""

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from cluster.console.progress import Progress
from cluster.errors import ClusterError
from cluster.public import lifecycle
from cluster.public.lifecycle import foreign_kubeconfig, steps, up
from cluster.public.programs import build_programs, kubectl_of, wanted
from cluster.versions import SUPPORTED

ROOT = Path(__file__).resolve().parents[2]


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def terminate(_signal: int, _frame: FrameType | None) -> None:
    """A signal handler that raises Terminated."""
    raise Terminated


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminate)


@contextmanager
def signals_ignored() -> Generator[None, None, None]:
    """Ignore Ctrl-C, SIGTERM and SIGHUP: a second one must not interrupt a clean-up."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def use_cluster() -> None:
    """Set KUBECONFIG to the user's cluster, or else to the project's own, which is started if it is not running.

    Raises ClusterError if it cannot be started.
    """
    state = lifecycle.current()
    if given := foreign_kubeconfig(state):
        print(f"using the cluster of KUBECONFIG={given}", file=sys.stderr)
    else:
        _start_own_cluster()
        os.environ["KUBECONFIG"] = str(state.kubeconfig)
    use_kubectl()


def _start_own_cluster() -> None:
    name, mode = lifecycle.cluster_name(), lifecycle.choose_mode()
    version = lifecycle.choose_version(mode)
    up(name, mode, version, Progress(steps(mode, version), io.StringIO() if _is_ready() else sys.stderr))


def _is_ready() -> bool:
    try:
        state, _ = lifecycle.running()
    except ClusterError:
        return False
    return all(each.ready for each in lifecycle.statuses(state))


def find_cluster() -> bool:
    """As `use_cluster`, but starts nothing; returns False if there is no cluster."""
    if not os.environ.get("KUBECONFIG"):
        try:
            state, _ = lifecycle.running()
        except ClusterError:
            return False
        os.environ["KUBECONFIG"] = str(state.kubeconfig)
    use_kubectl()
    return True


def use_kubectl() -> None:
    """Append the project's own kubectl to the PATH if the user has none. It is built if necessary."""
    if not shutil.which("kubectl"):
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{build_programs(wanted(None))}"


def use_kubectl_of(version: str) -> None:
    """Put the kubectl of a version of Kubernetes, such as "v1.35.4", first in the PATH.

    KUBECTL_VERSION chooses another one. It is built if necessary. Raises ClusterError for a version that the project
    does not build.
    """
    chosen = f"v{(os.environ.get('KUBECTL_VERSION') or version).removeprefix('v')}"
    if chosen not in SUPPORTED:
        raise ClusterError(f"KUBECTL_VERSION={chosen[1:]} must be one of {', '.join(each[1:] for each in SUPPORTED)}")
    folder = build_programs(kubectl_of(chosen))
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])


@contextmanager
def changed(**variables: str | None) -> Generator[None, None, None]:
    """Set environment variables (None: unset) and restore the whole environment at the end."""
    before = dict(os.environ)
    try:
        for name, value in variables.items():
            os.environ.pop(name, None)
            os.environ |= {} if value is None else {name: value}
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def kubectl(*words: str | Path, stdin: str | None = None) -> str:
    """Run kubectl and return its standard output; warnings and errors are shown. Raises ClusterError if it fails."""
    return _kubectl(words, stdin, subprocess.PIPE)


def show_kubectl(*words: str | Path, stdin: str | None = None) -> None:
    """Run kubectl and show its output. Raises ClusterError if it fails."""
    _kubectl(words, stdin, None)


def _kubectl(words: Sequence[str | Path], stdin: str | None, stdout: int | None) -> str:
    command = ["kubectl", *map(str, words)]
    done = subprocess.run(command, input=stdin, stdout=stdout, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed ({done.returncode}): see above")
    return done.stdout
