"""Mutate the pure code, and report which mutants the unit tests detect.

A mutant changes one place. The tests that execute its lines run. If the lines are executed on import, those that
execute any line of the file run next, then those in the package's test folders. To compare two checkouts, run:

  python -m mutation --tests OLD --out old.jsonl
  python -m mutation --tests NEW --out new.jsonl --mutants old.jsonl
  python -m mutation --compare old.jsonl new.jsonl

The second run finds the places by function and text of the line. An interrupted run continues: mutants in --out do not
run again, and the coverage is in the same place with the suffix .tests. Delete both files after a change of the tests.
"""

import json
import pickle
import random
import signal
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import coverage
import pytest

from mutation.places import places
from mutation.running import BROKEN, Task, detect, measure, run_all

Row = dict[str, Any]
"""A mutant, after the run with its result."""

FILES = (
    "api/memcached_api/**/*.py",
    "operator/memcached_operator/memcached/**/*.py",
    "operator/memcached_operator/appservice/**/*.py",
    "operator/memcached_operator/workloads/**/*.py",
    "operator/memcached_operator/status/conditions.py",
    "operator/memcached_operator/status/events.py",
    "operator/memcached_operator/kube/compare.py",
    "operator/memcached_operator/reconcile/intent.py",
    "operator/memcached_operator/reconcile/ownership.py",
)
TESTS = ("api", "appservice", "crds", "memcached", "reconcile", "status", "webhooks", "workloads", ".")
"""Folders of tests/unit, with those inside them; the last one without."""
FOLDERS_OF_API = ("api", "crds", "webhooks")
WEIGHTS = {"name": 3, "text": 6}
"""One of so many mutants with these operators is a candidate: they are frequent and show little."""
RESULTS = {0: "survived", -signal.SIGALRM: "hung", pytest.ExitCode.NO_TESTS_COLLECTED: "error", BROKEN: "error"}
"""By exit code. Others are "detected", also a crash."""
SLOW = 0.01
"""Share of the time of all tests. A test that takes longer runs only if it executes the lines of a mutant."""
LIMIT = 120
"""Seconds for one mutant, in addition to ten times the usual time of its tests."""


def mutants_of(tree: Path) -> Iterator[Row]:
    """All mutants of a checkout, with their lines."""
    for file in sorted(file for pattern in FILES for file in tree.glob(pattern)):
        path = str(file.relative_to(tree))
        for place in places(file.read_text())[1]:
            operator, number = place.key[2:]
            name = f"{path}:{place.lines.start}:{place.column}:{operator}" + (f"#{number}" if number else "")
            yield {"id": name, "place": [path, *place.key], "lines": place.lines}


def unit_tests(tree: Path) -> list[str]:
    """The files of the tests that can detect a mutant, in a checkout."""
    patterns = (f"tests/unit/{each}/{'' if each == '.' else '**/'}test_*.py" for each in TESTS)
    return [str(file.relative_to(tree)) for pattern in patterns for file in sorted(tree.glob(pattern))]


def sample(mutants: Sequence[Row], count: int, seed: int) -> list[Row]:
    """Evenly over the files by their numbers of candidates, in random order."""
    generator = random.Random(seed)  # noqa: S311
    candidates = [each for each in mutants if not generator.randrange(WEIGHTS.get(each["place"][3], 1))]
    bounds = (len(candidates) * i // count for i in range(count + 1))
    chosen = [candidates[generator.randrange(*part)] for part in pairwise(bounds) if part[0] < part[1]]
    return generator.sample(chosen, len(chosen))


class Baseline:
    """The tests of a checkout that pass without a mutant, with their seconds and the lines that they execute."""

    def __init__(self, tree: Path, folder: Path, jobs: int, kept: Path) -> None:
        self._seconds: dict[str, float] = {}
        self._tests: dict[str, dict[int, set[str]]] = {}
        if kept.exists():
            self._seconds, self._tests = pickle.loads(kept.read_bytes())  # noqa: S301
            return
        files = unit_tests(tree)
        parts = {f"baseline-{i}": files[i :: 4 * jobs] for i in range(min(len(files), 4 * jobs))}
        tasks = {name: Task(7200, partial(measure, files=part)) for name, part in parts.items()}
        for done in run_all(tree, folder, tasks, jobs):
            if not done.report:
                raise SystemExit(f"error: the tests did not run:\n{(done.folder / 'output').read_text()}")
            failed = set(done.report["failed"])
            for test in sorted(failed):
                print(f"left out, fails without a mutant: {test}", flush=True)
            self._seconds |= {test: time for test, time in done.report["seconds"].items() if test not in failed}
            data = coverage.CoverageData(str(done.folder / "coverage"))
            data.read()
            for file in data.measured_files():
                lines = self._tests.setdefault(str(Path(file).relative_to(tree)), {})
                for line, tests in data.contexts_by_lineno(file).items():
                    lines.setdefault(line, set()).update(tests)
        kept.write_bytes(pickle.dumps((self._seconds, self._tests)))

    def tests_of(self, mutant: Row) -> list[list[str]]:
        """Groups of tests for a mutant, each fastest first."""
        path = Path(mutant["place"][0])
        lines = self._tests.get(str(path), {})
        first = set[str]().union(*(lines.get(line, ()) for line in mutant["lines"]))
        on_import = "" in first or not first
        file = set[str]().union(*lines.values()) if on_import else set[str]()
        folders = (*(FOLDERS_OF_API if path.parts[0] == "api" else ()), path.parts[2])
        prefixes = tuple(f"tests/unit/{each}/" for each in folders) if on_import else ()
        tests = sorted(self._seconds, key=self._seconds.__getitem__)
        slow = SLOW * sum(self._seconds.values())
        fast = [test for test in tests if test not in first and self._seconds[test] < slow]
        second = [test for test in fast if test in file]
        third = [test for test in fast if test not in file and test.startswith(prefixes)]
        return [[test for test in tests if test in first], second, third]

    def limit(self, tests: Sequence[Sequence[str]]) -> int:
        """Seconds for the tests of a mutant."""
        return LIMIT + round(10 * sum(self._seconds[test] for group in tests for test in group))


def run(tree: Path, chosen: Sequence[Row], jobs: int, kept: Path) -> Iterator[Row]:
    """Yield the mutants with their results. `kept` is the file for the baseline."""
    known = {tuple(each["place"]): each for each in mutants_of(tree)}
    tasks: dict[str, Task] = {}
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        baseline = Baseline(tree, Path(folder), jobs, kept)
        for row in chosen:
            place: tuple[str, str, str, str, int] = tuple(row["place"])
            if place not in known:
                yield row | {"result": "missing"}
                continue
            tests = baseline.tests_of(known[place])
            rows[name := str(len(rows))] = row | {"tests": sum(map(len, tests))}
            tasks[name] = Task(baseline.limit(tests), partial(detect, tests=tests, file=tree / place[0], key=place[1:]))
        for done in run_all(tree, Path(folder), tasks, jobs):
            by = done.report.get("failed")
            yield rows[done.name] | {"result": RESULTS.get(done.code, "detected"), "by": by, "seconds": done.seconds}


def table(rows: Sequence[Row]) -> str:
    """The numbers of results for each package and in total."""
    results = sorted({row["result"] for row in rows})
    lines = [f"{'package':56}{'mutants':>10}" + "".join(f"{each:>10}" for each in results)]
    for package in [*sorted({str(Path(row["place"][0]).parent) for row in rows}), "."]:
        of_package = [row["result"] for row in rows if package in (".", str(Path(row["place"][0]).parent))]
        counts = [len(of_package), *(of_package.count(each) for each in results)]
        lines.append(f"{package:56}" + "".join(f"{each:>10}" for each in counts))
    return "\n".join(lines)


def compare(before: Sequence[Row], after: Sequence[Row]) -> str:
    """The mutants that only one of two runs detects."""
    results = {row["id"]: row["result"] for row in after}
    pairs = [(row, results.get(row["id"], "not run")) for row in before]
    changed = [
        f"{row['id']}: {row['result']} -> {new}" for row, new in pairs if _detected(row["result"]) != _detected(new)
    ]
    return "\n".join([*changed, f"{len(changed)} of {len(before)} mutants are detected in only one of the runs"])


def _detected(result: str) -> bool:
    return result in ("detected", "hung")


def read(file: Path | None) -> list[Row]:
    """The rows of a result, if there is one."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []


def main() -> None:
    parser = ArgumentParser("mutation", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, default=Path.cwd(), help="checkout with the tests and the product")
    parser.add_argument("--out", type=Path, default=Path("mutation.jsonl"), help="results as JSON lines")
    parser.add_argument("--mutants", type=Path, help="results whose mutants to run, instead of a sample")
    parser.add_argument("--number", type=int, default=300, help="size of the sample")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at the same time")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="compare two results; runs nothing")
    options = parser.parse_args()
    if options.compare:
        print(compare(*map(read, options.compare)))
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tree = options.tests.resolve()
    chosen = read(options.mutants) or sample(list(mutants_of(tree)), options.number, options.seed)
    done = {row["id"] for row in read(options.out)}
    waiting = [{"id": row["id"], "place": row["place"]} for row in chosen if row["id"] not in done]
    with options.out.open("a") as out:
        for row in run(tree, waiting, options.jobs, options.out.with_suffix(".tests")):
            out.write(json.dumps(row) + "\n")
            out.flush()
    rows = read(options.out)
    print(*(f"{row['result']}: {row['id']}" for row in rows if not _detected(row["result"])), sep="\n")
    print(table(rows))


if __name__ == "__main__":
    main()
