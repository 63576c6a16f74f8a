"""One memcached process, run as in a container: its own root directory, a numeric user, a memory control group."""

import ctypes
import itertools
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, Literal

from corners.client import Client
from corners.groups import MemoryGroup, memory_group

Outcome = int | Literal["runs", "silent"]
"""The exit code of memcached; or it `runs` and replies to `version`; or it is `silent`: it runs and does not reply."""

USER: Final = 1001
"""The user and group of the operator's containers. memcached does not start as root."""
ITEMS_PREFIX: Final = "items-"
"""How the names of directories begin that one run has in the root directory of a release, which all runs share."""
START_SECONDS: Final = 30.0
"""Within this time, memcached replies or exits, on a busy machine too. It takes 0.05 s on an idle one."""
SAMPLE_SECONDS: Final = 0.01
OPEN_FILES: Final = 1024, 1048576
"""Soft and hard limit of open files in a container, as containerd sets them."""
NR_OPEN: Final = Path("/proc/sys/fs/nr_open")
LIBC: Final = ctypes.CDLL(None)
PR_SET_PDEATHSIG: Final = 1
"""Ends a server together with the tests, also if they are killed."""

_numbers = itertools.count()


def copy_root(root: Path, target: Path) -> None:
    """Copy the root directory of a release without what other runs change in it. `target` may be an empty directory."""
    shutil.copytree(root, target, ignore=shutil.ignore_patterns(f"{ITEMS_PREFIX}*"), dirs_exist_ok=True)


def raise_open_files() -> None:
    """Raise the limits of this process's open files as far as it may.

    Root may raise it up to `fs.nr_open` if it has the capability SYS_RESOURCE, which some containers lack.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(hard, min(OPEN_FILES[1], int(NR_OPEN.read_text())))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_limits() -> tuple[int, int]:
    """The limits of a server's open files: OPEN_FILES, or less where the hard limit of this process is lower."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(OPEN_FILES[0], hard), min(OPEN_FILES[1], hard)


@dataclass
class Server:
    """A started process. Amounts are in bytes."""

    process: subprocess.Popen[bytes]
    port: int
    group: MemoryGroup
    errors: IO[bytes]
    """Standard error, a file: an unread pipe would block memcached."""
    peak: int = 0
    """The largest sample of the memory in use without the buffers of sockets."""
    sockets: int = 0
    """The largest sample of the buffers of sockets."""

    def connect(self) -> Client:
        """A new connection."""
        return Client(self.port)

    def problem(self, seconds: float = START_SECONDS) -> str:
        """Wait for a reply to `version`; returns an empty string, or why there is none."""
        deadline = time.monotonic() + seconds
        reason = ""
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return self.exit_message()
            reason = self._attempt(max(0.1, deadline - time.monotonic()))
            if not reason:
                return ""
            time.sleep(0.02)
        return f"no reply to `version` within {seconds:.0f} s: {reason}"

    def wait_until_started(self, seconds: float = START_SECONDS) -> None:
        """Wait until the server accepts a connection or exits, but not longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError):
                self.connect().close()
                return
            time.sleep(0.02)

    def outcome(self) -> tuple[Outcome, str]:
        """What the server does now, and the reason unless it runs."""
        if self.process.poll() is not None:
            return self.process.returncode, self.exit_message()
        reason = self._attempt(START_SECONDS)
        return ("silent", f"no reply to `version`: {reason}") if reason else ("runs", "")

    def exit_message(self) -> str:
        """The exit code and the first line of standard error."""
        self.errors.seek(0)
        lines = self.errors.read(1000).decode(errors="replace").splitlines()
        return f"exited {self.process.returncode}: {lines[0] if lines else 'no message'}"

    def _attempt(self, timeout: float) -> str:
        try:
            client = Client(self.port, timeout)
        except OSError as error:
            return str(error)
        with client.socket:
            try:
                reply = client.request(b"version\r\n")
            except OSError as error:
                return str(error)
        return "" if reply.startswith(b"VERSION ") else reply.decode(errors="replace").strip()

    @contextmanager
    def sampled(self) -> Generator[None]:
        """Record the memory in use during the block."""
        stopped = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(stopped,), daemon=True)
        sampler.start()
        try:
            yield
        finally:
            stopped.set()
            sampler.join()

    def _sample(self, stopped: threading.Event) -> None:
        while not stopped.wait(SAMPLE_SECONDS):
            with suppress(OSError):
                memory, sockets = self.group.current()
                self.peak, self.sockets = max(self.peak, memory), max(self.sockets, sockets)


@contextmanager
def started(root: Path, command: Sequence[str], port: int, limit: int | None = None) -> Generator[Server]:
    """Start memcached with the command of a container; the process ends with the block.

    `root`: the directory of `releases.ensure`; `port`: where the command listens; `limit`: bytes of memory, or None.
    """
    with memory_group(f"corners-{os.getpid()}-{next(_numbers)}", limit) as group, TemporaryFile() as errors:
        files = open_files_limits()
        process = subprocess.Popen(
            command,
            env={"PATH": "/usr/bin"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=lambda: _enter(root, group, files),
        )
        try:
            yield Server(process, port, group, errors)
        finally:
            process.kill()
            process.wait()


def _enter(root: Path, group: MemoryGroup, files: tuple[int, int]) -> None:
    """Confine the child process before it becomes memcached."""
    group.join()
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
