"""The figures in README.md, from the published results of the benchmark and of the fault tests."""

from collections.abc import Sequence

from bench.report import Published as Speed
from faults.case import Case
from faults.report import Published as Faults
from faults.report import totals
from faults.sources import measured
from pages.blocks import table


def blocks(speed: Speed, cases: Sequence[Case], faults: Faults) -> dict[str, str]:
    """The generated block of README.md."""
    rows = [("Property", "Measured"), *_speed(speed), *_faults(cases, faults)]
    dates = [
        measured(results.sources, results.date, f"The figures of the {name}")
        for name, results in (("benchmark", speed), ("fault tests", faults))
    ]
    return {"figures": f"{table(rows)}\n\n{' '.join(dates)}"}


def _speed(speed: Speed) -> list[tuple[str, str]]:
    def goal(row: str) -> str:
        return speed.cell("goals", row)

    return [
        (
            "No writes when nothing changes",
            f"{goal('writes in steady state')} in steady state; "
            f"{goal('restart with 1,000 objects: writes')} after a restart with 1,000 objects",
        ),
        (
            "Fast restart",
            f"1,000 objects reconciled in {goal('restart with 1,000 objects: current in')}, "
            f"5,000 in {speed.cell('operator', 'restart: current in')}",
        ),
        (
            "As fast as the API server allows",
            f"children of 1,000 objects accepted in {speed.cell('storm', 'children accepted')}; "
            f"a client that only sends the same requests takes {speed.cell('storm', 'children accepted', 1)}",
        ),
        (
            "No namespace blocks another",
            f"p99 {goal('second object in the storm, p99')} for an object in another namespace while 1,000 objects are "
            "being created",
        ),
        (
            "Small",
            f"{goal('CPU per object created')} of CPU per object created, "
            f"{goal('CPU per object created, relative to the same requests')} that of the same client; "
            f"{goal('RSS idle')} idle, {goal('RSS at 1,000 objects')} with 1,000 objects, "
            f"{goal('RSS at 5,000 objects')} with 5,000",
        ),
        (
            "Separate admission process",
            f"no permissions; p50 {goal('review idle, p50')} per review; "
            f"{goal('admission: RSS grows in 100,000 reviews')} after 100,000 reviews",
        ),
    ]


def _faults(cases: Sequence[Case], faults: Faults) -> list[tuple[str, str]]:
    mutants = [case for case in cases if case.name.startswith("T14/")]
    known = faults.of(cases)
    every, defects = totals(cases, known), totals(mutants, known)
    return [
        (
            "Tested with injected faults",
            f"{every.scripts} scripts with {every.cases:,} cases: crashes at every write, lost replies, stale watches, "
            "two leaders, expired certificates. "
            f"{every.run:,} have run, {every.passed:,} passed ([results](docs/reliability.md#figures))",
        ),
        (
            "The fault tests detect defects",
            f"{defects.cases} operators with a deliberate defect; {defects.run} have run, "
            f"{defects.passed} were detected",
        ),
    ]
