"""The command line: `python -m bench`.

Measures, keeps the results in build/bench/results.json and writes the tables of docs/performance.md.
"""

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bench import report, scenarios
from bench.ground import LOGS
from cluster.progress import Progress
from integration.control_plane import ROOT, control_plane

RESULTS = LOGS / "results.json"
DOCUMENT = ROOT / "docs/performance.md"
PARTS = ("rounds", "growth", "cluster", "admission")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that are asked for, by default all; the exit code."""
    options = parser().parse_args(arguments)
    results: dict[str, Any] = msgspec.json.decode(RESULTS.read_bytes()) if RESULTS.exists() else {}
    if not options.report:
        results |= {"machine": machine(), "objects": options.objects}
        try:
            measure(options, results)
        except KeyboardInterrupt:
            print("\ninterrupted: nothing is written", file=sys.stderr)
            return 130
    missing = [part for part in PARTS if part not in results]
    if missing:
        print(f"{RESULTS} lacks {', '.join(missing)}: no tables", file=sys.stderr)
        return 0 if options.only else 1
    print(report.tables(results))
    if not options.dry_run:
        report.write(DOCUMENT, results)
        print(f"\nThe tables of {DOCUMENT.relative_to(ROOT)} are written anew.", file=sys.stderr)
    return 0


def parser() -> argparse.ArgumentParser:
    """All options."""
    top = argparse.ArgumentParser("python -m bench", description=__doc__)
    top.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of the storm (default: 3)")
    top.add_argument("--objects", type=int, default=1000, metavar="N", help="objects of a storm (default: 1000)")
    top.add_argument("--only", choices=PARTS, metavar="PART", help=f"measure one part again: {', '.join(PARTS)}")
    top.add_argument("--report", action="store_true", help="measure nothing: write the tables from the last results")
    top.add_argument("--dry-run", action="store_true", help="leave docs/performance.md as it is")
    return top


def measure(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Measure part by part, each on a control plane of its own; results are kept as they come."""
    plan: list[tuple[str, str, scenarios.Part]] = [
        *(
            ("rounds", f"round {number} of {options.rounds}", scenarios.one_round)
            for number in range(1, options.rounds + 1)
        ),
        ("growth", f"{scenarios.GROWN * options.objects} objects", scenarios.growth),
        ("cluster", "all controllers, pretended nodes", scenarios.cluster),
        ("admission", "admission", scenarios.reviews),
    ]
    chosen = [entry for entry in plan if options.only in (None, entry[0])]
    progress = Progress(len(chosen))
    if any(part == "rounds" for part, _, _ in chosen):
        results["rounds"] = []
    for part, title, scenario in chosen:
        with progress.step(title), control_plane(f"bench-{os.getpid()}") as plane:
            found = asyncio.run(scenario(plane, options.objects, lambda what: progress.say(f"        {what}")))
        if part == "rounds":
            results["rounds"] = [*results["rounds"], found]
        else:
            results[part] = found
        LOGS.mkdir(parents=True, exist_ok=True)
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    progress.say(f"measured in {progress.elapsed():.0f} s")


def machine() -> dict[str, str]:
    """What the figures belong to."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    total = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    one, five, _ = os.getloadavg()
    return {
        "machine": f"{os.cpu_count()} cores ({cpu.partition(':')[2].strip()}), {total:.0f} GiB",
        "system": f"Linux {platform.release()}, Python {platform.python_version()}",
        "load before the run": f"{one:.1f} (1 min), {five:.1f} (5 min)",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


if __name__ == "__main__":
    sys.exit(main())
