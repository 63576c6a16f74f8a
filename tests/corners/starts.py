"""Starts many memcacheds at once and compares what each does 5 s later with what is expected."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import sleep
from typing import Final, NamedTuple

from cluster.public.releases import VERSIONS
from corners.containers import Spec, container
from corners.disk.volume import own_file
from corners.server import Outcome, open_files_limits, started

SETTLE_SECONDS: Final = 5.0
"""A server that runs so long after its start has not crashed at once."""
FIRST_PORT: Final = 20_000
TOO_FEW_FILES: Final = 71
"""How memcached exits if it may not open a file for each connection, where root cannot raise this limit."""


class Start(NamedTuple):
    """A spec, valid or not, whose container is started without a memory limit."""

    spec: Spec
    outcomes: Sequence[Outcome] = ("runs",)
    """What each release does, the oldest first. The last one is also that of all newer releases."""

    def expected(self, version: str) -> Outcome:
        """What a release should do."""
        if container(self.spec).connections > open_files_limits()[1]:
            return TOO_FEW_FILES
        return self.outcomes[min(VERSIONS.index(version), len(self.outcomes) - 1)]


def problems(version: str, root: Path, starts: Mapping[str, Start]) -> dict[str, str]:
    """Why the results of some starts, by name, are not the expected ones. `root`: the directory of the release."""
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(started(root, _command(start.spec, port), port))
            for port, (name, start) in enumerate(starts.items(), FIRST_PORT)
        }
        for server in servers.values():
            server.wait_until_started()
        sleep(SETTLE_SECONDS)
        found = {name: problem(start.expected(version), *servers[name].outcome()) for name, start in starts.items()}
    return {name: reason for name, reason in found.items() if reason}


def _command(spec: Spec, port: int) -> list[str]:
    return own_file(container({**spec, "containerPort": port}).command, port)


def problem(expected: Outcome, found: Outcome, reason: str) -> str:
    """Why what a server does is not what is expected; else empty."""
    if found == expected:
        return ""
    return reason if expected == "runs" else f"expected {expected!r}, found {found!r}: {reason}".removesuffix(": ")
