"""The memory control group of one server, in the unified hierarchy (cgroup v2) or in the memory hierarchy (v1).

v2 counts the buffers of TCP sockets towards the limit. v1 counts them separately.
"""

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.errors import ClusterError
from cluster.node import cgroups

UNLIMITED: Final = 2**50
"""Bytes. v1 counts the buffers of sockets only if they have a limit."""


@dataclass(frozen=True)
class MemoryGroup:
    """A control group. All amounts are in bytes."""

    path: Path
    unified: bool

    def join(self) -> None:
        """Move the calling process into the group."""
        self._write("cgroup.procs", "0")

    def current(self) -> tuple[int, int]:
        """The memory in use (user and kernel memory, and files in memory), and the buffers of sockets.

        Neither contains the page cache of other files, which the kernel drops before it ends a process.
        """
        cached = self._number("memory.stat", "file" if self.unified else "cache") - self._number("memory.stat", "shmem")
        if self.unified:
            sockets = self._number("memory.stat", "sock")
            return self._read("memory.current") - sockets - cached, sockets
        return self._read("memory.usage_in_bytes") - cached, self._read("memory.kmem.tcp.usage_in_bytes")

    def kills(self) -> int:
        """The number of processes that the kernel ended because the group was at its limit."""
        return self._number("memory.events" if self.unified else "memory.oom_control", "oom_kill")

    def set_limit(self, limit: int | None) -> None:
        """Set the limit; None: no limit, but v1 counts socket buffers."""
        if self.unified:
            self._write("memory.max", "max" if limit is None else str(limit))
            return
        self._write("memory.kmem.tcp.limit_in_bytes", str(UNLIMITED))
        if limit is not None:
            self._write("memory.limit_in_bytes", str(limit))

    def _number(self, file: str, name: str) -> int:
        lines = (line.split() for line in (self.path / file).read_text().splitlines())
        return next(int(words[1]) for words in lines if words[0] == name)

    def _read(self, name: str) -> int:
        return int((self.path / name).read_text())

    def _write(self, name: str, value: str) -> None:
        (self.path / name).write_text(value)


@contextmanager
def memory_group(name: str, limit: int | None = None) -> Generator[MemoryGroup]:
    """A control group with a limit in bytes; removed at the end. Raises ClusterError if it cannot be created."""
    unified = cgroups.is_v2()
    group = MemoryGroup((cgroups.ROOT if unified else cgroups.ROOT / "memory") / name, unified)
    try:
        _create(group, limit)
        yield group
    finally:
        _remove(group.path)


def _create(group: MemoryGroup, limit: int | None) -> None:
    """Only the memory controller is enabled (v2), not all of a kubelet: the tests need no other."""
    parent = group.path.parent
    try:
        if group.unified:
            (parent / "cgroup.subtree_control").write_text("+memory")
        group.path.mkdir()
        group.set_limit(limit)
    except OSError as error:
        raise ClusterError(
            f"the corner tests cannot create a memory control group in {parent} ({error.strerror}). They need root, a "
            "writable /sys/fs/cgroup and its memory controller: run them on the host, or in a container that was "
            "started with `docker run --privileged --cgroupns=host`"
        ) from error


def _remove(path: Path) -> None:
    """End the processes of a group, also one whose start was interrupted, and remove it as soon as they have ended."""
    deadline = time.monotonic() + cgroups.REMOVE_SECONDS
    while not cgroups.removed(path) and time.monotonic() < deadline:
        _kill(path / "cgroup.procs")
        time.sleep(0.05)


def _kill(processes: Path) -> None:
    with suppress(OSError):
        for line in processes.read_text().split():
            os.kill(int(line), signal.SIGKILL)
