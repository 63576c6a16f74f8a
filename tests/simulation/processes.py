"""Runs simulations in processes of their own: with changed sources, or beside work that needs the real clock."""

import multiprocessing
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from faults.process import ROOTS

if TYPE_CHECKING:
    from faults.esr import Reference

_PROCESSES: Final = multiprocessing.get_context("forkserver")
# They do not change: a new process has them already.
_PROCESSES.set_forkserver_preload(["aiohttp", "cryptography.x509", "kopf", "msgspec", "prometheus_client", "pytest"])
_TIMEOUT: Final = 120.0
"""Seconds for one case."""


class Outcome(NamedTuple):
    """The class and the message of an error, both empty without one, and the logs and exits of the operators."""

    kind: str
    message: str
    log: str
    exits: tuple[int, ...]


def outcome(case: str, sources: Path, references: Mapping[str, Any]) -> Outcome:
    """A case with these sources. Raises TimeoutError, and RuntimeError if the test itself fails.

    `references`: the arguments of the state of each workload without faults and without changes.
    """
    paths = [str(sources / root) for root in ROOTS]
    return Outcome(*_result(_run, case, paths, references))


def simulated_writes(workload: str) -> list[str]:
    """What the operator writes for a workload without faults: traces.writes_of. Raises as `outcome`."""
    return _result(_trace, workload)


def _result(work: Callable[..., None], name: str, *arguments: Any) -> Any:
    """What `work` sends, in a process of its own."""
    receiver, sender = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=work, args=(sender, name, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(_TIMEOUT):
            raise TimeoutError(name)
        return receiver.recv()
    except EOFError:
        raise RuntimeError(f"{name} cannot run") from None
    finally:
        process.kill()
        process.join()


def as_arguments(reference: "Reference") -> dict[str, Any]:
    """The arguments of a reference, without classes of the sources."""
    counts = {"created": dict(reference.created), "deleted": dict(reference.deleted)}
    return {"state": reference.state, **counts}


def _run(sender: Connection, case: str, paths: list[str], references: Mapping[str, Any]) -> None:
    sys.path[:0] = paths
    # Only now: these are from the changed sources.
    from faults.esr import Reference
    from simulation.campaigns import CASES
    from simulation.cases import REFERENCES, run_case

    REFERENCES.update({name: Reference(**arguments) for name, arguments in references.items()})
    found = run_case(CASES[case])
    kind = type(found.error).__name__ if found.error else ""
    sender.send((kind, str(found.error or ""), found.log, found.exits))


def _trace(sender: Connection, workload: str) -> None:
    from faults.campaigns.traces import WORKLOADS, writes_of
    from simulation.cases import measure

    sender.send(writes_of(measure(WORKLOADS[workload]).requests))
