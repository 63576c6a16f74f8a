"""Progress on standard error: one line per step, with the time it has taken so far."""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

REMINDER = 30.0
"""Seconds between progress lines if the output is not a terminal."""


def line(number: int, total: int, title: str, note: str) -> str:
    """One aligned line of progress."""
    return f"[{number:2d}/{total:2d}] {title:<44} {note}".rstrip()


class Progress:
    """Numbers the steps and shows each one's elapsed time; live on a terminal, plain lines elsewhere."""

    def __init__(self, total: int, out: TextIO = sys.stderr) -> None:
        self.total, self.number, self.out = total, 0, out
        self.live = out.isatty()
        self.started = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Generator[list[str], None, None]:
        """Run a step; what the body appends to the yielded list is shown in place of "done"."""
        self.number += 1
        notes: list[str] = []
        begun, ended = time.monotonic(), threading.Event()
        ticker = threading.Thread(target=self._tick, args=(title, begun, ended), daemon=True)
        ticker.start()
        note = "failed after"
        try:
            yield notes
            note = ", ".join(notes) or "done"
        finally:
            ended.set()
            ticker.join()
            self._write(title, f"{note} {time.monotonic() - begun:.1f} s", last=True)

    def say(self, text: str) -> None:
        """Print a line between the steps."""
        print(text, file=self.out, flush=True)

    def elapsed(self) -> float:
        """Seconds since the first step."""
        return time.monotonic() - self.started

    def _tick(self, title: str, begun: float, ended: threading.Event) -> None:
        if self.live:
            self._write(title, "...")
        while not ended.wait(1.0 if self.live else REMINDER):
            self._write(title, f"... {time.monotonic() - begun:.0f} s")

    def _write(self, title: str, note: str, *, last: bool = False) -> None:
        text = line(self.number, self.total, title, note)
        if self.live:
            text = f"\r\033[K{text}"
        self.out.write(text + ("\n" if last or not self.live else ""))
        self.out.flush()
