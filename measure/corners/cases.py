"""The cases of the corner tests, and what they share."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from cluster.public import releases
from corners import machine, memory, options, starts, table
from corners.memory import Measurement
from corners.starts import Start
from corners.table import Entry
from integration.control_plane import ControlPlane, control_plane
from memcached_operator.kube.client import ApiError
from memcached_operator.memcached.controller import MEMCACHEDS
from support.memcached import memcached

SAMPLE_STEP: Final = 4
"""The sample contains each fourth accepted spec of the table."""
SAMPLE_FILES: Final = 4096
"""The hard limit of open files that the sample needs at most; so many are allowed everywhere."""
SAMPLE_DENIED: Final = ("--help", "--memory-limit=1", "--verbose", "-o slab_sizes", "-o proxy_arg=x")
"""The denied items in the sample: memcached exits with several codes, crashes or runs, one by release."""
MESSAGE_LENGTH: Final = 300


@dataclass(frozen=True)
class Case:
    """A named case. `work`: a start, or a function that returns an empty string, or what is wrong."""

    name: str
    work: "Start | Callable[[Session], str]"
    sample: bool = False

    @property
    def group(self) -> str:
        """The part of the name before the case's own."""
        return "/".join(self.name.split("/")[:2]) if not self.name.startswith("admission") else "admission"

    @property
    def in_gate(self) -> bool:
        """Whether it is part of the gate's sample, with the oldest and the newest release."""
        return self.sample and (self.group == "admission" or self.group.split("/")[1] in releases.GATE)

    @property
    def open_files(self) -> int:
        """The hard limit of open files that the case needs."""
        return self.work.open_files if isinstance(self.work, Start) else 0


class Session:
    """What the cases share. `plane`: until the network namespace is entered."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._plane: ControlPlane | None = None
        self._roots: dict[str, Path] = {}
        self.measured: list[Measurement] = []

    @property
    def plane(self) -> ControlPlane:
        """A control plane, started on first use."""
        if self._plane is None:
            self._plane = self._stack.enter_context(control_plane(f"corners-{os.getpid()}"))
        return self._plane

    def prepare(self, versions: set[str]) -> None:
        """Provide memcached, then enter a network namespace. Raises ClusterError if the machine cannot run servers."""
        machine.require()
        self._roots = {version: releases.ensure(version) for version in sorted(versions)}
        machine.enter_network()

    def root(self, version: str) -> Path:
        """The directory of a release."""
        return self._roots[version]


def all_cases() -> Iterator[Case]:
    """All cases, those that need an API server first."""
    entries = table.entries()
    accepted = [entry for entry in entries if not table.errors(entry)]
    for entry in entries:
        yield Case(f"admission/{entry.name}", partial(_admission, entry))
    for version in releases.VERSIONS:
        yield from _table(version, accepted)
    for number, version in enumerate(releases.VERSIONS):
        for item, outcomes in options.DENIED_ITEMS.items():
            outcome = outcomes[min(number, len(outcomes) - 1)]
            start = Start(version, {"cache": {"memory": "2Mi", "extraArgs": [item]}}, outcome)
            yield Case(f"denied/{version}/option {item!r}", start, item in SAMPLE_DENIED)
    for version in releases.VERSIONS:
        for case in memory.cases(version):
            yield Case(case.name, partial(_measure, case), case.sample)


def _table(version: str, accepted: Sequence[Entry]) -> Iterator[Case]:
    # A warm restart needs a file system in memory for each server: the memory cases start these.
    cold = [entry for entry in accepted if not entry.spec.get("cache", {}).get("warmRestart")]
    for number, entry in enumerate(cold):
        start = Start(version, entry.spec)
        sample = number % SAMPLE_STEP == 0 and start.open_files <= SAMPLE_FILES
        yield Case(f"table/{version}/{entry.name}", start, sample)


def problems(session: Session, cases: Sequence[Case]) -> Iterator[str]:
    """For each case of a group an empty string, or what is wrong. The starts of a group run together."""
    together = [case.work for case in cases if isinstance(case.work, Start)]
    yield from starts.problems(together, session.root)
    for case in cases:
        if not isinstance(case.work, Start):
            yield case.work(session)


def _admission(entry: Entry, session: Session) -> str:
    return disagreement(session.plane, entry)


def _measure(case: memory.Case, session: Session) -> str:
    found = memory.measure(case, session.root(case.version))
    session.measured.append(found)
    return found.problem


def disagreement(plane: ControlPlane, entry: Entry) -> str:
    """Why admission of a spec is wrong: the two sides differ, or the result is not the expected one. Else empty."""
    webhook, server = "; ".join(table.errors(entry)), denial(plane, entry)
    if bool(webhook) != bool(server):
        return f"the webhook says {_said(webhook)}, the API server says {_said(server)}"
    if entry.valid is not None and entry.valid == bool(server):
        return f"expected to be {'accepted' if entry.valid else 'denied'}, but the API server says {_said(server)}"
    return ""


def denial(plane: ControlPlane, entry: Entry) -> str:
    """The API server's message for a dry run, or an empty string if it accepts the spec."""
    try:
        plane.would_create(MEMCACHEDS, memcached("default", **entry.spec))
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        return error.message
    return ""


def _said(message: str) -> str:
    return repr(message[:MESSAGE_LENGTH]) if message else "nothing"
