"""Finds and kills a cluster's processes by command line, never by a stored process ID alone."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from cluster.errors import ClusterError

PROC = Path("/proc")
END_SECONDS = 15.0
SUPERVISOR = "cluster.run.supervisor"
COMPONENT_PROGRAMS = frozenset(
    {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"},
)
"""Components that run in the host's PID namespace in control-plane mode."""


def commands() -> Iterator[tuple[int, list[str]]]:
    """Every process and its command line."""
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")


def of_cluster(state_dir: Path) -> list[int]:
    """The supervisor and the components of a cluster that are visible in this PID namespace."""
    return [pid for pid, words in commands() if belongs(words, state_dir)]


def belongs(words: list[str], state_dir: Path) -> bool:
    """Tell whether a command line is one of the cluster's own (and not, say, a user's kubectl)."""
    if SUPERVISOR in words:
        return str(state_dir) in words
    return Path(words[0]).name in COMPONENT_PROGRAMS and any(f"{state_dir}/" in word for word in words[1:])


def supervisor(state_dir: Path) -> int | None:
    """The supervisor's process ID, if it runs; in node mode its parent is `unshare`."""
    for pid, words in commands():
        if SUPERVISOR in words and str(state_dir) in words and not words[0].endswith("unshare"):
            return pid
    return None


def host_pid(supervisor_pid: int, inner: int) -> int:
    """A component's process ID in this PID namespace; `inner` is the one in the supervisor's."""
    for pid in children(supervisor_pid):
        if inner_pid(pid) == inner:
            return pid
    return inner


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    try:
        return [int(word) for word in (PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def inner_pid(pid: int) -> int:
    """A process's ID in its own PID namespace."""
    with contextlib.suppress(OSError):
        for line in (PROC / f"{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return pid


def kill(pids: list[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal; ignores processes that no longer exist."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def waiting(pids: set[int]) -> set[int]:
    """The processes that wait for a child: `unshare` exits after the supervisor, and must be able to reap it."""
    return {pid for pid in pids if pids & set(children(pid))}


def alive(pid: int) -> bool:
    """Tell whether a process exists and is not a zombie (PID 1 of a namespace remains until all others ended)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return (PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def end_all(state_dir: Path) -> None:
    """Kill all processes of a cluster and wait until they ended; raises ClusterError after END_SECONDS."""
    deadline = time.monotonic() + END_SECONDS
    known: set[int] = set()
    while found := set(of_cluster(state_dir)) | {pid for pid in known if alive(pid)}:
        known |= found
        kill(sorted(found - waiting(found)))
        time.sleep(0.05)
        if time.monotonic() > deadline:
            raise ClusterError(f"the processes {sorted(found)} do not end")
