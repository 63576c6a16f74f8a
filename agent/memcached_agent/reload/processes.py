"""Find the process of memcached in the process namespace that the containers of the pod share, and signal it."""

import os
import signal
from contextlib import suppress
from typing import Final, NamedTuple

from memcached_agent.reload.errors import InvalidError, UnverifiedError

NAME: Final = "memcached"
_CATCHES_SIGHUP: Final = 1 << (signal.SIGHUP - 1)


class Process(NamedTuple):
    """A process. `started`: clock ticks from the boot of the node, so that a later one with this number differs."""

    number: int
    started: int


def find(users_file: str, proc: str = "/proc") -> Process:
    """The memcached whose command line names this file. Raises InvalidError if there is none."""
    for entry in os.listdir(proc):  # noqa: PTH208 - pathlib needs 0.6 MiB
        if entry.isdecimal():
            with suppress(OSError):  # the process has ended
                arguments = _read(f"{proc}/{entry}/cmdline").split("\0")
                # The name of the agent's process can begin with `memcached`, and its option ends with the file.
                if _read(f"{proc}/{entry}/comm").startswith(NAME) and users_file in arguments:
                    return Process(int(entry), _started(f"{proc}/{entry}"))
    raise InvalidError(
        f"no process of memcached with -Y {users_file} is visible: memcached does not run, or the pod has no "
        "shareProcessNamespace: true"
    )


def hang_up(process: Process, proc: str = "/proc") -> None:
    """Send SIGHUP, upon which memcached reads the file of users again within 1 s.

    A memcached that does not handle the signal yet would end. Raises UnverifiedError then, and InvalidError without the
    permission to send it.
    """
    try:
        if _started(f"{proc}/{process.number}") != process.started or not _catches(f"{proc}/{process.number}"):
            raise UnverifiedError("memcached is starting; the users are reloaded when it has started")
        os.kill(process.number, signal.SIGHUP)
    except (FileNotFoundError, ProcessLookupError):
        raise UnverifiedError("memcached has ended; the users are reloaded when it has started") from None
    except PermissionError:
        raise InvalidError(
            "the agent may not send a signal to memcached, which runs as another user; set "
            "spec.podTemplate.spec.securityContext.runAsUser, so that both have the same user"
        ) from None


def _started(directory: str) -> int:
    return int(_read(f"{directory}/stat").rpartition(")")[2].split()[19])  # field 22 of proc(5)


def _catches(directory: str) -> bool:
    mask = _read(f"{directory}/status").partition("SigCgt:")[2].split()[0]
    return bool(int(mask, 16) & _CATCHES_SIGHUP)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
        return file.read(2**16)
