"""Find the process of memcached in the process namespace that the containers of the pod share, and signal it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from memcached_agent.errors import InvalidError, UnverifiedError

PROC: Final = "/proc"
NAME: Final = "memcached"
MAX_FILE: Final = 2**16
"""Bytes of a file in /proc that are read. A command line of the operator has at most a few KiB."""


class Process(NamedTuple):
    """A process. `started`: clock ticks from the boot of the node, so that a later one with this number differs.

    `arguments`: its command line without the name of the program.
    """

    number: int
    started: int
    arguments: tuple[str, ...] = ()


def find(option: str, value: str, proc: str = PROC) -> Process:
    """The memcached whose command line has this option. Raises InvalidError unless there is exactly one.

    `value`: of the option, or what is before `:` in one of the settings in it, which commas separate.
    """
    try:
        processes = [process for process in _all(proc) if _has(process, option, value)]
    except OSError as error:
        raise InvalidError(f"the processes of the pod cannot be read: {error.strerror}") from None
    if len(processes) > 1:
        raise InvalidError(
            f"{len(processes)} processes of memcached with {option} {value} are visible; only the container memcached "
            "of "
            "the pod may run one"
        )
    if not processes:
        raise InvalidError(
            f"no process of memcached with {option} {value} is visible: memcached does not run, or the pod has no "
            "shareProcessNamespace: true"
        )
    return processes[0]


def _has(process: Process, option: str, value: str) -> bool:
    """Whether the command line has this option, as `find`."""
    values = (text for name, text in pairwise(process.arguments) if name == option)
    return any(text == value or any(each.startswith(f"{value}:") for each in text.split(",")) for text in values)


def send(process: Process, signum: int, proc: str = PROC) -> None:
    """Send a signal that memcached handles.

    A memcached that does not handle the signal yet would end. Raises UnverifiedError then, and InvalidError without the
    permission to send it.
    """
    directory = f"{proc}/{process.number}"
    try:
        if _started(directory) != process.started or not _catches(directory, signum):
            raise UnverifiedError("memcached is starting; the agent sends the signal when it has started")
        os.kill(process.number, signum)
    except (FileNotFoundError, ProcessLookupError):
        raise UnverifiedError("memcached has exited; the agent sends the signal when it has started again") from None
    except PermissionError:
        raise InvalidError(
            "the agent may not send a signal to memcached, which runs as another user; set "
            "spec.podTemplate.spec.securityContext.runAsUser, so that both run as the same user. This replaces the "
            "pods, and their items are lost"
        ) from None
    except OSError as error:
        raise InvalidError(f"the process of memcached cannot be read: {error.strerror}") from None


def _all(proc: str) -> Iterator[Process]:
    """The processes of memcached. Raises OSError if they cannot be read."""
    for entry in os.listdir(proc):  # noqa: PTH208 - pathlib needs 0.6 MiB
        directory = f"{proc}/{entry}"
        with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
            # The name of the agent's process can begin with `memcached`, too.
            if entry.isdecimal() and _read(f"{directory}/comm").startswith(NAME):
                words = _read(f"{directory}/cmdline").split("\0")
                yield Process(int(entry), _started(directory), tuple(words[1:-1]))


def _started(directory: str) -> int:
    return int(_read(f"{directory}/stat").rpartition(")")[2].split()[19])  # field 22 of proc(5)


def _catches(directory: str, signum: int) -> bool:
    mask = _read(f"{directory}/status").partition("SigCgt:")[2].split()[0]
    return bool(int(mask, 16) & 1 << (signum - 1))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
        return file.read(MAX_FILE)
