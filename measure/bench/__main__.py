"""Run the benchmark: measure, save the results in build/bench/results.json, publish them.

`make generate` then writes the tables of docs/performance.md, and the figures of README.md.
"""

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench import against, load, report, scale, scenarios
from bench.environment import LOGS
from cluster.console.progress import Progress
from integration.control_plane import ROOT, control_plane
from pages.figures import digest

RESULTS = LOGS / "results.json"
PUBLISHED = ROOT / "docs/performance-results.json"
PARTS = ("rounds", "fields", "slots", "autoscaler", "growth", "cluster", "admission")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the selected parts, by default all. Returns the exit code."""
    options = build_parser().parse_args(arguments)
    if options.scale:
        return grow(options)
    if options.against:
        return compare(options)
    results: dict[str, Any] = msgspec.json.decode(RESULTS.read_bytes()) if RESULTS.exists() else {}
    if not options.report:
        # Results of different sources are not published together.
        results = results if results.get("sources") == digest("bench") else {}
        results |= {"sources": digest("bench"), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
        results |= {"machine": machine(), "objects": options.objects}
        try:
            measure(options, results)
        except KeyboardInterrupt:
            print("\ninterrupted: nothing is published", file=sys.stderr)
            return 130
    missing = [part for part in PARTS if part not in results]
    if missing:
        print(f"no tables: {RESULTS} has no results of {', '.join(missing)}", file=sys.stderr)
        return 0 if options.only else 1
    found = report.published(results)
    print("\n\n".join(f"{name}\n{table}" for name, table in report.blocks(found).items()))
    if not options.dry_run:
        PUBLISHED.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        print(f"\nwrote {PUBLISHED.relative_to(ROOT)}; run `make generate`", file=sys.stderr)
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The command-line parser."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="number of rounds of the storm (default: 3)")
    parser.add_argument(
        "--objects", type=int, default=1000, metavar="N", help="number of objects per storm (default: 1000)"
    )
    parser.add_argument("--only", choices=PARTS, metavar="PART", help=f"measure only one part: {', '.join(PARTS)}")
    parser.add_argument("--report", action="store_true", help="measure nothing; publish the last results")
    parser.add_argument("--dry-run", action="store_true", help="publish nothing")
    parser.add_argument("--against", metavar="COMMIT", help="publish nothing; compare this checkout with a commit")
    parser.add_argument(
        "--scale", action="store_true", help="publish nothing; measure one leader with --objects objects"
    )
    return parser


def measure(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Measure each selected part on its own control plane. Results are saved after each part."""
    plan: list[tuple[str, str, scenarios.Part]] = [
        *(
            (
                "rounds",
                f"round {number + 1} of {options.rounds}",
                partial(scenarios.one_round, order=scenarios.rotated(number)),
            )
            for number in range(options.rounds)
        ),
        ("fields", "specs with every field", partial(scenarios.with_spec, spec=load.EVERY_FIELD)),
        ("slots", "objects with slots", partial(scenarios.with_spec, spec=load.STABLE)),
        ("autoscaler", "autoscaled objects", scenarios.autoscaler),
        ("growth", f"{scenarios.GROWTH * options.objects} objects", scenarios.growth),
        ("cluster", "all controllers, simulated nodes", scenarios.cluster),
        ("admission", "admission", scenarios.reviews),
    ]
    selected = [entry for entry in plan if options.only in (None, entry[0])]
    progress = Progress(len(selected))
    if any(part == "rounds" for part, _, _ in selected):
        results["rounds"] = []
    for part, title, scenario in selected:
        with progress.step(title), control_plane(f"bench-{os.getpid()}") as plane:
            figures = asyncio.run(scenario(plane, options.objects, lambda what: progress.say(f"        {what}")))
        if part == "rounds":
            results["rounds"] = [*results["rounds"], figures]
            progress.say(f"        {report.summary(figures, options.objects)}")
        else:
            results[part] = figures
        LOGS.mkdir(parents=True, exist_ok=True)
        RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    progress.say(f"measured in {progress.elapsed():.0f} s")


def compare(options: argparse.Namespace) -> int:
    """Print the figures of this checkout and of a commit. Each begins every second round."""
    pairs: list[against.Pair] = []
    progress = Progress(options.rounds)
    with against.checkout(options.against) as other:
        for number in range(options.rounds):
            trees = (ROOT, other) if number % 2 == 0 else (other, ROOT)
            title = f"round {number + 1} of {options.rounds}"
            with progress.step(title), control_plane(f"bench-{os.getpid()}") as plane:
                found = asyncio.run(
                    against.one_round(plane, options.objects, lambda what: progress.say(f"        {what}"), trees)
                )
            pairs.append((found[0], found[1]) if number % 2 == 0 else (found[1], found[0]))
    print(against.table(pairs))
    return 0


def grow(options: argparse.Namespace) -> int:
    """Print the figures of one leader with very many objects."""
    progress = Progress(1)
    with progress.step(f"{options.objects} objects"), control_plane(f"bench-{os.getpid()}") as plane:
        found = asyncio.run(scale.measure(plane, options.objects, lambda what: progress.say(f"        {what}")))
    print("\n".join(f"{name:44} {value:9.1f}" for name, value in found.items()))
    return 0


def machine() -> dict[str, str]:
    """The machine and its load, for the first table."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    total = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    one, five, _ = os.getloadavg()
    return {
        "machine": f"{os.cpu_count()} cores ({cpu.partition(':')[2].strip()}), {total:.0f} GiB",
        "system": f"Linux {platform.release()}, Python {platform.python_version()}",
        "load before the run": f"{one:.1f} (1 min), {five:.1f} (5 min)",
    }


if __name__ == "__main__":
    sys.exit(main())
