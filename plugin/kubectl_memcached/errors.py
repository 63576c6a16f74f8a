"""The expected errors, and the exit codes of the program. docs/plugin.md lists them."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of the program: which kind of error has ended it."""

    OK = 0
    NEGATIVE = 1
    """The result is negative: the cache is not ready, or no pod has the key."""
    USAGE = 2
    """The command line is invalid. click uses the same code."""
    CLUSTER = 3
    """kubectl is missing, or it cannot reach the cluster or log in."""
    MISSING = 4
    """The object, its kind or a field does not exist."""
    FORBIDDEN = 5
    """A permission is missing."""
    POD = 6
    """A pod or its memcached did not reply."""
    BLOCKED = 7
    """An option of memcached blocks the command."""
    INTERRUPTED = 130


class PluginError(Exception):
    """An expected error. The message is for users. It names the problem and the remedy.

    `reason`: what kubectl has printed, without its prefix; empty if that is not known or not the cause.
    """

    def __init__(self, message: str, code: ExitCode, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
