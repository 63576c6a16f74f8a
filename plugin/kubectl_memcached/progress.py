"""The progress of a command that takes more than a second, on standard error."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rich.console import Console

DELAY: Final = 1.0
"""Seconds without output."""


class Progress:
    """Counts completed steps. A terminal shows one line that changes. Any other output gets one line."""

    def __init__(self, doing: str, number: int) -> None:
        self._doing = doing
        self._number = number
        self._done = 0
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._status = self._console.status(self._text())
        self._lock = threading.Lock()
        self._timer = threading.Timer(DELAY, self._show)
        self._timer.daemon = True
        self._shown = self._ended = False
        self.reported = threading.Event()
        """Set when something was written."""

    def start(self) -> None:
        """Begin to measure the time."""
        self._timer.start()

    def step(self) -> None:
        """Count one more completed step."""
        with self._lock:
            self._done += 1
            if self._shown:
                self._status.update(self._text())

    def stop(self) -> None:
        """Remove the line from a terminal."""
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._shown:
                self._status.stop()

    def _show(self) -> None:
        with self._lock:
            if self._ended:
                return
            if self._console.is_terminal:
                self._shown = True
                self._status.start()
                self._status.update(self._text())
            else:
                sys.stderr.write(f"{self._text()}\n")
            self.reported.set()

    def _text(self) -> str:
        return f"{self._doing}: {self._done} of {self._number}…" if self._number else f"{self._doing}…"


@contextmanager
def progress(doing: str, number: int = 0) -> Generator[Progress]:
    """Show the progress of the block. `number`: its steps. 0: not known."""
    display = Progress(doing, number)
    display.start()
    try:
        yield display
    finally:
        display.stop()
