"""Waiting for a condition while the user sees the progress."""

import time
from collections.abc import Callable
from typing import NamedTuple

from demo.errors import DemoError
from demo.screen import Screen

SECONDS = 180.0
"""The default timeout: on a cluster that pulls its images, the pull takes most of it."""
PROBLEM_SECONDS = 10.0
"""How long a problem may persist until the wait fails: some disappear by themselves."""
POLL = 0.3
"""Seconds between two checks; each runs kubectl."""


class Progress(NamedTuple):
    """The result of one check: whether the wait is over, the progress, and a problem if there is one."""

    done: bool
    text: str
    problem: str = ""


def wait(
    screen: Screen,
    check: Callable[[], Progress],
    what: str,
    seconds: float = SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Check until it is done; returns the seconds it took. Raises DemoError on a timeout or a persistent problem."""
    begun = screen.clock()
    problem_since: float | None = None
    while True:
        found = check()
        passed = screen.clock() - begun
        if found.done:
            return passed
        screen.move(f"{found.text} ({passed:.0f} s)" if screen.live else found.text)
        problem_since = (passed if problem_since is None else problem_since) if found.problem else None
        if problem_since is not None and passed - problem_since >= PROBLEM_SECONDS:
            raise DemoError(f"waiting for {what} failed: {found.problem}")
        if passed >= seconds:
            raise DemoError(f"waiting for {what} timed out after {seconds:.0f} s; last state: {found.text}")
        sleep(POLL)
