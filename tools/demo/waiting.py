"""Waiting for something, in sight of the user."""

import time
from collections.abc import Callable
from typing import NamedTuple

from demo.errors import StoryError
from demo.screen import Screen

SECONDS = 180.0
"""So long may one thing take: on a cluster that pulls its images, most of it goes there."""
PATIENCE = 10.0
"""Seconds that a fault may stand before the story gives up: some pass by themselves."""
POLL = 0.3
"""Seconds between two looks; each is one kubectl."""


class Look(NamedTuple):
    """What one look showed: whether it is over, how far it is, and what is wrong, if something is."""

    done: bool
    text: str
    fault: str = ""


def wait(
    screen: Screen,
    look: Callable[[], Look],
    what: str,
    seconds: float = SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Look until it is done; the seconds it took. Raises StoryError when it takes too long, or a fault stays."""
    begun = screen.clock()
    wrong_since: float | None = None
    while True:
        seen = look()
        passed = screen.clock() - begun
        if seen.done:
            return passed
        screen.move(f"{seen.text} ({passed:.0f} s)" if screen.live else seen.text)
        wrong_since = (passed if wrong_since is None else wrong_since) if seen.fault else None
        if wrong_since is not None and passed - wrong_since >= PATIENCE:
            raise StoryError(f"{what} does not come about: {seen.fault}")
        if passed >= seconds:
            raise StoryError(f"{what} did not come about within {seconds:.0f} s; last seen: {seen.text}")
        sleep(POLL)
