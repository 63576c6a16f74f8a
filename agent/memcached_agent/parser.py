"""The parser of both command lines. `argparse` alone is imported: the options of the agent need other modules."""

import argparse
from typing import Final, Never

MAX_QUOTED: Final = 64
"""Characters of an invalid value that become part of a message."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> Never:
        """Print the message and exit with code 2."""
        self.exit(2, f"{self.prog}: {message} (--help describes the options)\n")
