"""Errors of the event loop: one line a minute while the process, or its node, has no file descriptor or memory left."""

import asyncio
import errno
import logging
from collections.abc import Callable
from typing import Any, Final

log = logging.getLogger(__name__)

ERRORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Upon these, asyncio accepts no connection for 1 s. It logs a traceback for each attempt, in a burst eight of them."""
RETRY: Final = "._start_serving("
"""A part of the message about an attempt of asyncio to accept again. It fails if the listener has been closed since."""
PERIOD: Final = 60.0
"""Seconds between two lines."""


class Exhaustion:
    """An exception handler of an event loop. `clock`: seconds of a clock that is never set."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = clock()

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error, with its traceback unless it is one of ERRORS. A retry on a closed listener is no error."""
        error = context.get("exception")
        if isinstance(error, ValueError) and RETRY in context["message"]:
            return
        if not isinstance(error, OSError) or error.errno not in ERRORS:
            loop.default_exception_handler(context)
        elif self._clock() >= self._next:
            self._next = self._clock() + PERIOD
            log.error("no connection can be accepted: %s; logged at most once a minute", error.strerror)
