"""A virtual clock: time advances to the next timer whenever nothing is left to do."""

import asyncio
import random
import selectors
import sys
import time
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, Self, TypeVar, cast
from unittest import mock

T = TypeVar("T")

EPOCH: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""The wall clock at the start of a simulation."""
TICK: Final = 1e-6
"""Seconds that pass with each step: a delay shorter than the resolution of a float would otherwise never end."""
PACKAGES: Final = ("memcached_operator", "memcached_webhooks", "memcached_process", "simulation", "faults")
MAX_STEPS: Final = 20_000
"""Steps of the event loop in a second, on average since the start: a hundred times as many as usual."""


class NothingScheduledError(Exception):
    """Every task waits for another one: no event and no timer would ever happen."""


class EndlessError(Exception):
    """There is always something left to do, without time passing."""


class _Clock(selectors.SelectSelector):
    """Waits for no file: if nothing is ready, the next timer is due."""

    now = 0.0
    steps = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingScheduledError("nothing is scheduled")
        self.steps += 1
        if self.steps > MAX_STEPS * (1 + self.now):
            raise EndlessError(f"{self.steps} steps in {self.now:.3f} s")
        self.now = round(self.now + max(timeout, 0.0), 6) + TICK
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop with virtual time, which begins at 0."""

    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def wall_clock(self) -> datetime:
        """The time of the wall clock, in UTC."""
        return EPOCH + timedelta(seconds=self._clock.now)

    def look(self) -> None:
        """Let a moment pass, so that no two things happen at the same time of the wall clock."""
        self._clock.now += TICK


def run(work: Coroutine[Any, Any, T], seed: int = 0) -> T:
    """Run a coroutine in virtual time; equal seeds have equal results. Cancels the tasks that are left.

    Raises NothingScheduledError if every task waits for another one, and EndlessError if they never wait.
    """
    random.seed(seed)
    loop = Loop()
    with _virtual_time(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


def now() -> datetime:
    """The wall clock of the simulation that runs."""
    return cast("Loop", asyncio.get_running_loop()).wall_clock()


@contextmanager
def _virtual_time(loop: Loop) -> Generator[None]:
    """Let the modules of the product and of the simulation read the virtual clock. They use no processor time."""

    class Virtual(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            loop.look()
            return cls.fromtimestamp(loop.wall_clock().timestamp(), tz)

    names = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    importing = [name for name in names if getattr(sys.modules[name], "datetime", None) is datetime]
    patches = [mock.patch.object(sys.modules[name], "datetime", Virtual) for name in importing]
    patches += [mock.patch.object(time, "monotonic", loop.time), mock.patch.object(time, "thread_time", float)]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
