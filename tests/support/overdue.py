"""Tests that take long: they are named while they run, with the programs that they wait for, and fail at their limit.

pytest-timeout has one timer for all attempts of a test, so a test that stands still when it runs again is not ended.
"""

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import FrameType

import pytest

from support.waiting import BUSY

LIMIT = float(os.environ.get("TEST_LIMIT") or 600)
"""Seconds for a test with its fixtures, which may start a control plane. Without the mark `long`, it takes at most a
minute. TEST_LIMIT is set for suites whose fixtures compile programs, and for those that run nightly."""
PERIOD = 60.0
"""Seconds after which a running test is named, again and again."""
AGAIN = 10.0
"""Seconds until a test that exceeds its limit is interrupted again: a task of asyncio may have caught the error."""
STEP = 1.0
"""Seconds between two looks at the running test."""
MAX_PROGRAMS = 6
"""Programs of one test that are shown, the youngest first. Those of session fixtures are older."""
LONGEST = 160
"""Characters of a command line that are shown."""


OVERDUE = pytest.StashKey["Overdue"]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the terminal, which pytest takes away from tests and from the processes that run them."""
    config.stash[OVERDUE] = Overdue(os.dup(2))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Each attempt has a limit of its own."""
    mark = item.get_closest_marker("long")
    item.config.stash[OVERDUE].begin(item.nodeid, LIMIT + (BUSY * mark.args[0] if mark else 0))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """The limit includes the teardown."""
    with item.config.stash[OVERDUE].ending():
        return (yield)


class OverdueError(pytest.fail.Exception):
    """A test exceeded its limit. It does not run again."""


@dataclass(frozen=True)
class Attempt:
    """One run of a test."""

    name: str
    limit: float
    started: float

    @property
    def seconds(self) -> float:
        """For how long it has run."""
        # Not `time.monotonic`, which a simulation replaces: hours of its time pass within a second.
        return monotonic() - self.started


class Overdue:
    """Names and ends the running test of this process. `output`: the file descriptor of the terminal."""

    def __init__(self, output: int, period: float = PERIOD) -> None:
        self._output = output
        self._period = period
        self._attempt: Attempt | None = None
        signal.signal(signal.SIGALRM, self._fail)
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, name: str, limit: float) -> None:
        """An attempt starts. `limit`: its seconds."""
        self._attempt = Attempt(name, limit, monotonic())

    @contextmanager
    def ending(self) -> Generator[None]:
        """The attempt ends after the block."""
        try:
            yield
        finally:
            self._attempt = None

    def _watch(self) -> None:
        due: dict[Attempt, float] = {}
        while True:
            time.sleep(STEP)
            if (attempt := self._attempt) is None:
                continue
            shown = due.setdefault(attempt, self._period)
            if attempt.seconds >= attempt.limit:
                self._interrupt(attempt)
            elif attempt.seconds >= shown:
                self._print(f"{attempt.name} has run for {attempt.seconds:.0f} s{described()}")
                due = {attempt: shown + self._period}

    def _interrupt(self, attempt: Attempt) -> None:
        """Fail a test in its thread, until it has ended."""
        self._print(f"{attempt.name} exceeds its limit of {attempt.limit:g} s{described()}")
        with suppress(OSError):
            faulthandler.dump_traceback(self._output)
        while self._attempt is attempt:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            time.sleep(AGAIN)

    def _fail(self, _number: int, _frame: FrameType | None) -> None:
        if (attempt := self._attempt) and attempt.seconds >= attempt.limit:
            raise OverdueError(f"{attempt.name} exceeded its limit of {attempt.limit:g} s{described()}")

    def _print(self, text: str) -> None:
        with suppress(OSError):  # the terminal is closed
            os.write(self._output, f"\n{text}\n".encode())


def described() -> str:
    """A clause about the programs that this process has started, the youngest first."""
    found = [text for _, text in sorted(programs(os.getpid()), reverse=True)][:MAX_PROGRAMS]
    return f"; its programs: {'; '.join(found)}" if found else ""


def programs(process: int) -> Iterator[tuple[int, str]]:
    """The ID and the command line of each descendant of a process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):  # it has exited
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    waiting = list(children.get(process, ()))
    while waiting:
        found = waiting.pop()
        waiting += children.get(found, ())
        with suppress(OSError):
            words = Path(f"/proc/{found}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if text := " ".join(words).strip():
                yield found, text[:LONGEST]
