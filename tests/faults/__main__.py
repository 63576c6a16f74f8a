"""Command line: `python -m faults`."""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from faults import report
from faults.campaigns import (
    admission,
    bursts,
    certificates,
    drift,
    fields,
    fuzz,
    leaders,
    mutants,
    permissions,
    port,
    semantics,
    soak,
    stale,
    watches,
    world,
    writes,
)
from faults.case import Case
from faults.confinement import policies_in_place
from faults.proxy import certificate
from faults.runner import Result, Runner
from faults.stage import Plane, Settings
from integration.control_plane import ControlPlane, client_of, control_plane

BUSY = "FAULTS_PATIENCE=3 lets everything that is waited for take three times as long, for a machine that is busy."
CAMPAIGNS = (
    writes,
    watches,
    stale,
    drift,
    fields,
    semantics,
    admission,
    bursts,
    certificates,
    fuzz,
    port,
    leaders,
    permissions,
    world,
    soak,
)


def main() -> int:
    """Run the cases that are asked for; 1 where one of them fails."""
    options = _parser().parse_args()
    chosen = _chosen(every(), options.filters, gate=options.gate)
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if options.report:
        report.write(chosen)
        return 0
    if not chosen:
        print(f"No case has a name like {' or '.join(options.filters)}; --list shows them all.", file=sys.stderr)
        return 2
    started = time.monotonic()
    with _plane() as plane:
        results = asyncio.run(_run(plane, chosen, Settings(relist=options.relist), options.lanes, options.keep))
    failed = [result for result in results if result.fault]
    print(f"{len(results) - len(failed)} of {len(results)} cases passed in {time.monotonic() - started:.0f} s.")
    return 1 if failed else 0


def every() -> list[Case]:
    """All cases of all campaigns."""
    found = [case for campaign in CAMPAIGNS for case in campaign.cases()]
    return found + mutants.cases(found)


def _plane() -> AbstractContextManager[ControlPlane]:
    """The cluster of KUBECONFIG, whose CRDs must be installed, or one that is started for this run."""
    given = os.environ.get("KUBECONFIG")
    if given:
        return nullcontext(ControlPlane(Path(given), Path(os.devnull)))
    return control_plane(f"faults-{os.getpid()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m faults", description=__doc__, epilog=BUSY)
    parser.add_argument("filters", nargs="*", metavar="NAME", help="names of cases, or patterns such as 'T1/*'; all")
    parser.add_argument("--gate", action="store_true", help="only the cases of the gate")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    parser.add_argument("--lanes", type=int, default=8, help="cases at the same time (8)")
    parser.add_argument("--relist", type=float, default=5.0, help="seconds between readings of everything (5)")
    parser.add_argument(
        "--report", action="store_true", help="write the figures of the last runs into docs/reliability.md"
    )
    parser.add_argument("--keep", type=Path, help="directory for the operators' logs; else they go")
    return parser


def _chosen(cases: Sequence[Case], filters: Sequence[str], *, gate: bool) -> list[Case]:
    named = [case for case in cases if not filters or any(fnmatchcase(case.name, each) for each in filters)]
    return [case for case in named if case.gate or not gate]


async def _run(
    plane: ControlPlane, cases: list[Case], settings: Settings, lanes: int, keep: Path | None
) -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        connection = plane.connection
        logs = keep or Path(directory)
        logs.mkdir(parents=True, exist_ok=True)
        async with client_of(connection) as client:
            # A copy, so that a run is about one state of the tree, whatever happens to that meanwhile.
            own = replace(settings, sources=mutants.copied(Path(directory, "sources")))
            async with policies_in_place(client):
                return await Runner(Plane(connection, client, certificate(), logs), own, lanes, tell).run(cases)


def tell(result: Result) -> None:
    """One line per case, and one for the report."""
    report.keep(result)
    print(f"{'FAIL' if result.fault else 'ok  '} {result.seconds:6.1f} s  {result.name}  {result.fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
