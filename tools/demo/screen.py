"""What the user sees: numbered steps, commands, their output, and a progress line."""

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
    """Writes to a terminal, with colours and a live progress line, or to other outputs in plain lines."""

    def __init__(self, total: int, out: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.number, self.out, self.clock = total, 0, out, clock
        self.live = out.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.started = clock()
        self._moving = ""

    @contextmanager
    def step(self, title: str, about: str) -> Generator[None, None, None]:
        """Number a step, and show how long it took or that it failed."""
        self.number += 1
        begun = self.clock()
        self._print("", self._in(BOLD, f"[{self.number}/{self.total}] {title}"), INDENT + about)
        try:
            yield
        except BaseException:
            self._print(f"{INDENT}{self._in(RED, 'stopped')} after {self.clock() - begun:.1f} s")
            raise
        self._print(f"{INDENT}{self._in(GREEN, 'ok')} {self.clock() - begun:.1f} s")

    def command(self, line: str, stdin: str = "") -> None:
        """A command as a user types it, with its input as a here-document."""
        self._print(f"{INDENT}{self._in(BOLD, f'$ {line}')}" + (" <<'END'" if stdin else ""))
        if stdin:
            # Without indentation: a here-document must stay copyable.
            self._print(*(self._in(BOLD, each) for each in (*stdin.splitlines(), "END")))

    def result(self, text: str) -> None:
        """The output of a command."""
        self._print(*(f"{INDENT}{line}".rstrip() for line in text.rstrip().splitlines()))

    def say(self, line: str) -> None:
        """A line of narration."""
        self._print(f"{INDENT}{line}")

    def move(self, text: str) -> None:
        """Show progress: on a terminal in the same line, elsewhere in a new line if the text differs."""
        if self.live:
            width = max(20, shutil.get_terminal_size().columns - 1)
            self.out.write(f"\r\033[K{self._in(DIM, f'{INDENT}... {text}'[:width])}")
            self.out.flush()
        elif text != self._moving:
            self._print(f"{INDENT}... {text}")
        self._moving = text

    def elapsed(self) -> float:
        """Seconds since the demo began."""
        return self.clock() - self.started

    def _print(self, *lines: str) -> None:
        if self.live and self._moving:
            self.out.write("\r\033[K")
        self._moving = ""
        self.out.write("".join(f"{line}\n" for line in lines))
        self.out.flush()

    def _in(self, style: str, text: str) -> str:
        return f"{style}{text}{PLAIN}" if self.colour else text
