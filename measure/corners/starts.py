"""Starts many memcacheds at once and compares what each does 5 s later with what is expected."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import sleep
from typing import Final, NamedTuple

from corners.containers import Container, Spec, container
from corners.server import Outcome, Server, started

SETTLE_SECONDS: Final = 5.0
"""A server that runs so long after its start has not crashed at once."""
BATCH: Final = 64
"""Servers that run at the same time; together they use less than 500 MiB."""
FIRST_PORT: Final = 20_000


class Start(NamedTuple):
    """A spec, valid or not, whose container is started without a memory limit."""

    version: str
    spec: Spec
    expected: Outcome = "runs"

    @property
    def open_files(self) -> int:
        """The hard limit of open files that memcached needs: one for each connection that it allows."""
        return container(self.spec).connections


def problems(starts: Sequence[Start], root: Callable[[str], Path]) -> Iterator[str]:
    """For each start an empty string, or why the result is not the expected one. `root`: the directory of a release."""
    for first in range(0, len(starts), BATCH):
        yield from _batch(starts[first : first + BATCH], root)


def _batch(starts: Sequence[Start], root: Callable[[str], Path]) -> list[str]:
    with ExitStack() as stack:
        servers: list[Server] = []
        for port, start in enumerate(starts, FIRST_PORT):
            made = _container(start, port)
            servers.append(stack.enter_context(started(root(start.version), made.command, made.port)))
        for server in servers:
            server.wait_until_started()
        sleep(SETTLE_SECONDS)
        return [problem(start.expected, *server.outcome()) for start, server in zip(starts, servers, strict=True)]


def _container(start: Start, port: int) -> Container:
    """The container of the spec, with a port that no other server of the batch uses."""
    return container({**start.spec, "containerPort": port})


def problem(expected: Outcome, found: Outcome, reason: str) -> str:
    """Why what a server does is not what is expected; else empty."""
    if found == expected:
        return ""
    return reason if expected == "runs" else f"expected {expected!r}, found {found!r}: {reason}".removesuffix(": ")
