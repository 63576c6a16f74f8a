"""Compare predicted hit ratios with those of memcacheds that are really larger, and publish the results.

All workloads run at the same time. `make generate` then writes the tables of docs/insight.md.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context

import msgspec

from cluster.public import releases
from corners import machine
from insight import cost, report, trace
from insight.campaign import Outcome, Plan, run
from insight.report import Published
from insight.workloads import TRACE, WORKLOADS, Workload
from integration.control_plane import ROOT
from pages.figures import digest

PUBLISHED = ROOT / "docs/insight-results.json"
FIRST_PORT = 17_000
"""The first port of the first workload; the others follow. They are below those of other tests."""
PORTS = 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected workloads, by default all. Returns 1 if a prediction misses its goal."""
    options = build_parser().parse_args(arguments)
    selected = [each for each in WORKLOADS if options.only in (None, each.name)]
    plan = Plan(rate=options.rate).scaled(options.scale)
    releases.ensure(options.memcached)
    if TRACE in selected and not options.only_cost:
        trace.ensure()
    machine.require()
    machine.enter_network()
    outcomes = merged(() if options.only_cost else measured(selected, options.memcached, plan))
    costs = published().cost if options.only_predictions else cost.measured(options.memcached, FIRST_PORT)
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    found = Published(digest("insight"), date, options.memcached, plan.measure, plan.rate, outcomes, costs)
    print("\n\n".join(f"{name}\n{text}" for name, text in report.blocks(found).items()))
    failures = report.failures(outcomes)
    print(*failures, sep="\n", file=sys.stderr)
    if not options.dry_run:
        PUBLISHED.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        print(f"\nwrote {PUBLISHED.relative_to(ROOT)}; run `make generate`", file=sys.stderr)
    return 1 if failures else 0


def merged(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """These outcomes, and the published ones of the other workloads."""
    found = {each.workload: each for each in (*published().outcomes, *outcomes)}
    return [found[each.name] for each in WORKLOADS if each.name in found]


def published() -> Published:
    """The results of the last run."""
    return msgspec.json.decode(PUBLISHED.read_bytes(), type=Published)


def build_parser() -> argparse.ArgumentParser:
    """The command-line parser."""
    parser = argparse.ArgumentParser("python -m insight", description=__doc__)
    names = [each.name for each in WORKLOADS]
    parser.add_argument(
        "--only", choices=names, metavar="NAME", help=f"measure one workload, and keep the others: {', '.join(names)}"
    )
    parser.add_argument("--memcached", choices=releases.VERSIONS, default=releases.VERSIONS[-1], help="its version")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of gets (default: 1)")
    parser.add_argument(
        "--rate", type=float, default=3000.0, metavar="N", help="gets per second of each workload (default: 3000)"
    )
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--only-cost", action="store_true", help="measure the cost; keep the published predictions")
    part.add_argument("--only-predictions", action="store_true", help="measure them; keep the published cost")
    parser.add_argument("--dry-run", action="store_true", help="publish nothing")
    return parser


def measured(selected: Sequence[Workload], version: str, plan: Plan) -> list[Outcome]:
    """The outcome of each workload. Each has a process of its own."""
    with ProcessPoolExecutor(len(selected), mp_context=get_context("fork")) as pool:
        pending = [
            pool.submit(run_by_name, each.name, version, FIRST_PORT + PORTS * number, plan)
            for number, each in enumerate(selected)
        ]
        return [each.result() for each in pending]


def run_by_name(name: str, version: str, base_port: int, plan: Plan) -> Outcome:
    """Run the workload with this name, in a process of its own."""
    (workload,) = (each for each in WORKLOADS if each.name == name)
    return run(workload, version, base_port, plan)


if __name__ == "__main__":
    sys.exit(main())
