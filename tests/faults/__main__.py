"""Run the fault campaigns: start a control plane, run the selected cases and print one line for each."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from faults import report
from faults.admission_policies import installed_policies
from faults.campaigns import (
    admission,
    agent,
    bursts,
    certificates,
    certificates_issuer,
    cluster,
    drift,
    fields,
    floods,
    foreign,
    fuzz,
    leaders,
    mounts,
    mutants,
    permissions,
    port,
    semantics,
    slots,
    soak,
    stale,
    tenants,
    updates,
    watches,
    writes,
)
from faults.case import Case
from faults.gate import GATE
from faults.proxy import certificate
from faults.runner import Result, Runner
from faults.sandbox import Plane, Settings
from integration.control_plane import ControlPlane, client_of, control_plane

EPILOG = "FAULTS_TIMEOUT_FACTOR=3 triples every deadline, for a busy machine."
CAMPAIGNS = (
    writes,
    watches,
    stale,
    drift,
    fields,
    foreign,
    slots,
    semantics,
    mounts,
    admission,
    bursts,
    certificates,
    certificates_issuer,
    fuzz,
    port,
    leaders,
    permissions,
    cluster,
    agent,
    updates,
    floods,
    tenants,
    soak,
)


def main() -> int:
    """Run the selected cases. Returns 1 if a case fails, 2 if no case matches, 130 after Ctrl-C or SIGTERM."""
    options = _parser().parse_args()
    selected = _selected(all_cases(), options.filters, gate=options.gate)
    if options.list:
        print("\n".join(case.name for case in selected))
        return 0
    if options.report and (options.filters or options.gate):
        print("--report describes all cases: use it without names and without --gate", file=sys.stderr)
        return 2
    if options.report and not report.publish(selected):
        print("no case has run with the present sources: nothing is published", file=sys.stderr)
        return 2
    if options.report:
        return 0
    if not selected:
        print(f"no case matches {' or '.join(options.filters)}; --list prints all names", file=sys.stderr)
        return 2
    started = time.monotonic()
    # SIGTERM ends the run like Ctrl-C: processes are stopped, and cases that have not ended are kept as interrupted.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background commands ignore it
    try:
        with _plane() as plane:
            settings, on_result = Settings(sync_period=options.sync_period), _reporter(options.results)
            results = asyncio.run(_run(plane, selected, settings, options.parallel, options.keep, on_result))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    failed = [result for result in results if result.error]
    print(f"{len(results) - len(failed)} of {len(results)} cases passed in {time.monotonic() - started:.0f} s.")
    return 1 if failed else 0


def _interrupt(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def all_cases() -> list[Case]:
    """All cases of all campaigns."""
    found = [case for campaign in CAMPAIGNS for case in campaign.cases()]
    return found + mutants.cases(found)


def _plane() -> AbstractContextManager[ControlPlane]:
    """The cluster of KUBECONFIG, whose CRDs must be installed, or a control plane that is started for this run."""
    given = os.environ.get("KUBECONFIG")
    if given:
        return nullcontext(ControlPlane(Path(given), Path(os.devnull)))
    return control_plane(f"faults-{os.getpid()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m faults", description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "filters", nargs="*", metavar="NAME", help="name of a case, or a pattern such as 'T1/*' (default: all)"
    )
    parser.add_argument("--gate", action="store_true", help="run only the cases of the gate")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and exit")
    parser.add_argument("--parallel", type=int, default=8, metavar="N", help="cases that run in parallel (default: 8)")
    parser.add_argument(
        "--sync-period", type=float, default=5.0, metavar="SECONDS", help="the operator's sync period (default: 5)"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="run nothing; publish the results of these sources; then run `make generate`",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="keep the operator's logs and its recorded requests here"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the results to this file, one per line")
    return parser


def _selected(cases: Sequence[Case], filters: Sequence[str], *, gate: bool) -> list[Case]:
    named = [case for case in cases if not filters or any(fnmatchcase(case.name, each) for each in filters)]
    return [case for case in named if not gate or case.name in GATE]


async def _run(
    plane: ControlPlane,
    cases: list[Case],
    settings: Settings,
    parallel: int,
    keep: Path | None,
    on_result: Callable[[Result], None],
) -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        connection = plane.connection
        logs = keep or Path(directory)
        logs.mkdir(parents=True, exist_ok=True)
        async with client_of(connection) as client:
            # A copy: later changes of the working tree do not affect this run.
            own = replace(settings, sources=mutants.copy_sources(Path(directory, "sources")))
            async with installed_policies(client):
                return await Runner(Plane(connection, client, certificate(), logs), own, parallel, on_result).run(cases)


def _reporter(file: Path | None) -> Callable[[Result], None]:
    """A function that prints each result immediately, keeps it for the report, and appends it to a new file."""
    if file:
        file.write_bytes(b"")

    def on_result(result: Result) -> None:
        report.keep(result)
        if file:
            report.append(file, result)
        outcome = "FAIL" if result.error else "ok  "
        print(f"{outcome} {result.seconds:6.1f} s  {result.name}  {result.error or result.note}", flush=True)

    return on_result


if __name__ == "__main__":
    sys.exit(main())
