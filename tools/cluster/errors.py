"""The error type whose message is shown to the user."""

import sys
from collections.abc import Callable


class ClusterError(Exception):
    """An expected failure: the message is one sentence with the problem and its remedy."""


def exit_on_error(main: Callable[[], object]) -> None:
    """Run a command line; print an expected failure without traceback, and exit with 1."""
    try:
        main()
    except ClusterError as error:
        sys.exit(f"error: {error}")
