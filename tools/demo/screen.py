"""What the user sees: numbered steps, the commands, what came of them, and a line that moves."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

BOLD, DIM, GREEN, RED, PLAIN = "\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[0m"
INDENT = "    "


class Screen:
    """Writes to a terminal, live and in colour, or to anything else in plain lines."""

    def __init__(self, total: int, out: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.number, self.out, self.clock = total, 0, out, clock
        self.live = out.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.started = clock()
        self._moving = ""

    @contextmanager
    def step(self, title: str, about: str) -> Generator[None, None, None]:
        """Number a step, and tell how long it took or that it failed."""
        self.number += 1
        begun = self.clock()
        self._print("", self._in(BOLD, f"[{self.number}/{self.total}] {title}"), INDENT + about)
        try:
            yield
        except BaseException:
            self._print(f"{INDENT}{self._in(RED, 'stopped')} after {self.clock() - begun:.1f} s")
            raise
        self._print(f"{INDENT}{self._in(GREEN, 'ok')} {self.clock() - begun:.1f} s")

    def command(self, text: str) -> None:
        """A command as a user types it."""
        first, *rest = text.splitlines()
        # What a shell reads until END must not be indented, or it could not be copied: only the prompt is.
        self._print(f"{INDENT}{self._in(BOLD, f'$ {first}')}", *(self._in(BOLD, line) for line in rest))

    def result(self, text: str) -> None:
        """What a command printed."""
        self._print(*(f"{INDENT}{line}".rstrip() for line in text.rstrip().splitlines()))

    def say(self, text: str = "") -> None:
        """A line of the narrator."""
        self._print(*(f"{INDENT}{line}".rstrip() for line in text.splitlines() or [""]))

    def move(self, text: str) -> None:
        """Show how far something is: the same line again on a terminal, a new one elsewhere and only if it differs."""
        if self.live:
            width = max(20, shutil.get_terminal_size().columns - 1)
            self.out.write(f"\r\033[K{self._in(DIM, f'{INDENT}... {text}'[:width])}")
            self.out.flush()
        elif text != self._moving:
            self._print(f"{INDENT}... {text}")
        self._moving = text

    def elapsed(self) -> float:
        """Seconds since the story began."""
        return self.clock() - self.started

    def _print(self, *lines: str) -> None:
        if self.live and self._moving:
            self.out.write("\r\033[K")
        self._moving = ""
        self.out.write("".join(f"{line}\n" for line in lines))
        self.out.flush()

    def _in(self, style: str, text: str) -> str:
        return f"{style}{text}{PLAIN}" if self.colour else text
