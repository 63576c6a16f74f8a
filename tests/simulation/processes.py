"""Runs simulations in processes of their own: with changed sources, or beside work that needs the real clock."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from faults.workloads import Workload
from simulation import changed
from simulation.cases import reference_of

_PROCESSES: Final = multiprocessing.get_context("forkserver")
# A new process has imported everything already.
_PROCESSES.set_forkserver_preload(["simulation.campaigns", "simulation.cases", changed.__name__])
_TIMEOUT: Final = 600.0
"""Seconds after which a process hangs: a case takes a few, and the gate gives it only what other suites leave."""


class Outcome(NamedTuple):
    """The class and the message of an error, both empty without one, and the logs and exits of the operators."""

    kind: str
    message: str
    log: str
    exits: tuple[int, ...]


def outcome(case: str, sources: Path) -> Outcome:
    """A case with these sources. Raises TimeoutError, and RuntimeError if the test itself fails.

    The states of its workloads without faults are measured in this process, whose sources are unchanged.
    """
    return Outcome(*_result(_run, case, sources))


def simulated_writes(workload: str) -> list[str]:
    """What the operator writes for a workload without faults: traces.writes_of. Raises as `outcome`."""
    return _result(_trace, workload)


def _result(work: Callable[..., None], name: str, *arguments: Any) -> Any:
    """What `work` sends, in a process of its own. Before that, it may send workloads, whose references it gets."""
    _start_server()
    ours, theirs = _PROCESSES.Pipe()
    process = _PROCESSES.Process(target=work, args=(theirs, name, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        while True:
            if not ours.poll(_TIMEOUT):
                raise TimeoutError(name)
            found = ours.recv()
            if not isinstance(found, Workload):
                return found
            ours.send(reference_of(found))
    except EOFError:
        raise RuntimeError(f"{name} cannot run") from None
    finally:
        process.kill()
        process.join()


def _start_server() -> None:
    """Start the process that starts the others, unless it runs. It finds modules as this one does."""
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        forkserver.ensure_running()


def _run(connection: Connection, case: str, sources: Path) -> None:
    changed.use(sources)
    # Only now: these are from the changed sources.
    from simulation.campaigns import CASES
    from simulation.cases import run_case

    found = run_case(CASES[case], measured=partial(_ask, connection))
    kind = type(found.error).__name__ if found.error else ""
    connection.send((kind, str(found.error or ""), found.log, found.exits))


def _ask(connection: Connection, workload: object) -> Any:
    connection.send(workload)
    return connection.recv()


def _trace(connection: Connection, workload: str) -> None:
    from faults.campaigns.traces import WORKLOADS, writes_of
    from simulation.cases import measure

    connection.send(writes_of(measure(WORKLOADS[workload]).requests))
