"""Runs cases on a real control plane, one after the other in each process."""

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from faults.admission_policies import install_policies
from faults.campaigns.mutants import Mutant, check_detected
from faults.case import Case, References, namespace_of
from faults.esr import Reference
from faults.proxy import certificate
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Plane, Settings
from integration.control_plane import ControlPlane, client_of, control_plane

T = TypeVar("T")


@contextmanager
def started_plane(name: str) -> Generator[ControlPlane]:
    """Run a control plane with the admission policies until the block ends."""
    with control_plane(name) as started:
        started.call(install_policies)
        yield started


@dataclass(frozen=True)
class Session:
    """What the cases of a process share: an event loop, a control plane, and the results without faults."""

    loop: asyncio.Runner
    plane: Plane
    settings: Settings
    known: dict[str, Reference] = field(default_factory=dict[str, Reference])

    def run(self, case: Case, directory: Path) -> str:
        """Run a case; returns its note. Raises FailedError. `directory`: for logs and recorded requests."""
        return self._run(self._outcome(case, replace(self.plane, directory=directory)), directory)

    def detect(self, mutant: Mutant, case: Case, directory: Path) -> str:
        """Run the case of a mutant; returns the failed check. Raises FailedError if it does not detect the mutant."""
        plane = replace(self.plane, directory=directory)
        references = References(plane, self.settings, self.known)
        return self._run(check_detected(plane, references, self.settings, mutant, case), directory)

    def _run(self, work: Awaitable[T], directory: Path) -> T:
        async def awaited() -> T:
            return await work

        try:
            return self.loop.run(awaited())
        except Exception as error:
            error.add_note(f"logs and requests: {directory}")
            raise

    async def _outcome(self, case: Case, plane: Plane) -> str:
        try:
            async with (
                plane.sandbox(namespace_of(case.name), case.settings(self.settings)) as sandbox,
                asyncio.timeout(case.limit * TIMEOUT_FACTOR),
            ):
                return await case.run(sandbox, References(plane, self.settings, self.known)) or ""
        except TimeoutError:
            raise FailedError(f"timed out after {case.limit:g} s") from None


@contextmanager
def session(control: ControlPlane, directory: Path, sources: Path) -> Generator[Session]:
    """A session with a control plane and the sources of the operator."""
    connection = control.connection
    with ExitStack() as stack:
        loop = stack.enter_context(asyncio.Runner())
        client = client_of(connection)
        plane = Plane(connection, loop.run(client.__aenter__()), certificate(), directory)
        stack.callback(lambda: loop.run(client.__aexit__(None, None, None)))
        yield Session(loop, plane, Settings(sources=sources))
