"""Change the product in one place at a time, and report which level of tests detects it.

A mutant changes one place, or is one that tests/faults/mutants.yaml names. On each level, the tests that execute its
lines run: of the cases of the simulation, at most --cases of them. If the lines are executed on import, unit tests that
execute any line of the file run next, then those in the package's test folders. The integration tests do not run: they
need a control plane. To compare two checkouts, or a checkout with the stored matrix, run:

  python -m mutation --tests OLD --out old.jsonl
  python -m mutation --tests NEW --out new.jsonl --mutants old.jsonl
  python -m mutation --compare old.jsonl new.jsonl

The second run finds the places by function and text of the line. An interrupted run continues: mutants in --out do not
run again. What the tests execute is in the same place with the suffix .LEVEL.tests: delete these files after a change
of existing tests. New tests are added.
"""

import json
import signal
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from mutation import matrix
from mutation.detecting import Detection, Settings
from mutation.levels import LEVELS, Chosen
from mutation.matrix import MATRIX, Row
from mutation.mutants import FILES, Mutant, automatic, named, sample


def _parser() -> ArgumentParser:
    parser = ArgumentParser("mutation", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, default=Path.cwd(), help="checkout with the tests and the product")
    parser.add_argument("--out", type=Path, default=Path("mutation.jsonl"), help="results as JSON lines")
    parser.add_argument("--levels", type=lambda text: text.split(","), default=LEVELS, help="default: unit,simulation")
    parser.add_argument("--mutants", type=Path, help="results whose mutants to run, instead of a sample")
    parser.add_argument("--files", nargs="+", default=FILES, help="patterns of the files to change")
    parser.add_argument("--number", type=int, default=300, help="size of the sample of automatic mutants")
    parser.add_argument("--named", nargs="*", metavar="PATTERN", help="run named mutants, instead of a sample")
    parser.add_argument("--cases", type=int, default=80, help="cases of the simulation for each mutant")
    parser.add_argument("--measured", type=int, default=2000, help="cases from which those are chosen")
    parser.add_argument("--seed", type=int, default=1, help="seed of the samples")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at the same time")
    parser.add_argument("--keep-going", action="store_true", help="run tests of a mutant until one of each file fails")
    parser.add_argument("--store", action="store_true", help="add --out to the stored matrix; runs nothing")
    parser.add_argument("--table", action="store_true", help="print the stored matrix by package; runs nothing")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="compare two results; runs nothing")
    return parser


def main() -> None:
    options = _parser().parse_args()
    if options.compare:
        text, is_lost = matrix.compare(*map(matrix.read, options.compare))
        print(text)
        sys.exit(is_lost)
    if options.store:
        matrix.store(matrix.read(options.out))
    elif options.table:
        print(matrix.table(matrix.read(MATRIX)))
    else:
        _run(options)


def _run(options: Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tree = options.tests.resolve()
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        settings = _settings(options, tree, Path(name))
        chosen = _chosen(options, tree, settings.folder)
        for level in options.levels:
            done = {matrix.key(row) for row in matrix.read(options.out) if level in row}
            waiting = [each for each in chosen if matrix.key({"place": each.place}) not in done]
            kept = options.out.with_suffix(f".{level}.tests").resolve()
            if waiting:
                Detection(level, settings, kept, partial(_write, options.out.resolve())).run(waiting)
    rows = matrix.read(options.out)
    print(*matrix.undetected(rows), sep="\n")
    print(matrix.table(rows))


def _settings(options: Namespace, tree: Path, folder: Path) -> Settings:
    measured, chosen = (Chosen(count, options.seed) for count in (options.measured, options.cases))
    return Settings(tree, folder, options.jobs, measured, chosen, options.keep_going)


def _write(out: Path, row: Row) -> None:
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _chosen(options: Namespace, tree: Path, folder: Path) -> list[Mutant]:
    """The mutants to run."""
    if options.mutants:
        wanted = {matrix.key(row): row["id"] for row in matrix.read(options.mutants)}
        known = {matrix.key({"place": each.place}): each for each in (*automatic(tree), *named(tree, folder))}
        for missing in wanted.keys() - known.keys():
            print(f"missing: {wanted[missing]}")
        return [known[each] for each in wanted if each in known]
    if options.named is not None:
        patterns = options.named or ["*"]
        found = named(tree, folder)
        return [each for each in found if any(fnmatchcase(each.place[1], pattern) for pattern in patterns)]
    return sample(list(automatic(tree, options.files)), options.number, options.seed)


if __name__ == "__main__":
    main()
