"""Shared parts of our command lines: a function for each command, one sentence for each error."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from cluster.errors import ClusterError

INTERRUPTED = 130
PUBLIC = 0o022
"""The umask: users of containers read the files of images and of volumes. What is secret has a mode of its own."""
Run = Callable[[argparse.Namespace], int | None]


class Commands:
    """A command line with subcommands. Each has a function that returns the exit code, or None for 0."""

    def __init__(self, program: str, description: str, epilog: str) -> None:
        self.parser = argparse.ArgumentParser(
            program, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self._commands = self.parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(self, name: str, run: Run, text: str) -> argparse.ArgumentParser:
        """Add a command; returns its parser, for arguments."""
        sub = self._commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub


def perform(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, interrupted: str) -> int:
    """Run one command; returns the exit code: its own, 1 for an error, 130 on Ctrl-C, with the hint `interrupted`.

    Wrong usage ends the process with exit code 2.
    """
    options = parser.parse_args(arguments)
    return complete(lambda: options.run(options), interrupted)


def complete(work: Callable[[], int | None], interrupted: str) -> int:
    """Do the work of a command; returns its exit code as `perform` does."""
    os.umask(PUBLIC)
    try:
        return work() or 0
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.strerror}: {error.filename or ''}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\ninterrupted: {interrupted}", file=sys.stderr)
        return INTERRUPTED
