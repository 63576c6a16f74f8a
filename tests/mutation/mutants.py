"""The mutants of a checkout: automatic ones, which change one place, and those that tests/faults/mutants.yaml names."""

import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from mutation.lines import ROOTS, Masks, mask
from mutation.places import Key, mutated, places
from mutation.replacing import Pairs, changed
from mutation.running import apart

FILES = ("api/**/*.py", "operator/**/*.py", "webhooks/**/*.py", "agent/**/*.py")
EXCLUDED = (
    "*/__main__.py",  # run as processes
    "*/version.py",
)
WEIGHTS = {"name": 3, "text": 6}
"""One of so many mutants with these operators is a candidate: they are frequent and show little."""
NAMED = "named"

Codes = Mapping[str, CodeType]
"""The codes of modules, by their absolute path."""
Place = tuple[str, ...] | tuple[str, str, str, str, int]
"""What identifies a mutant when lines move: a path and a Key, or NAMED and a name."""


class Mutant(NamedTuple):
    """A change of modules. `lines` are those that it changes, `case` is a case that must detect it, if there is one."""

    id: str
    place: Place
    lines: Masks
    case: str
    codes: Callable[[], Codes]


def automatic(tree: Path, patterns: Sequence[str] = FILES) -> Iterator[Mutant]:
    """All automatic mutants of the files that match one of these patterns."""
    files = {file for pattern in patterns for file in tree.glob(pattern)}
    for file in sorted(file for file in files if not any(file.match(each) for each in EXCLUDED)):
        path = str(file.relative_to(tree))
        for place in places(file.read_text())[1]:
            operator, number = place.key[2:]
            name = f"{path}:{place.lines.start}:{place.column}:{operator}" + (f"#{number}" if number else "")
            lines = {path: mask(place.lines)}
            yield Mutant(name, (path, *place.key), lines, "", partial(_automatic, file, place.key))


def _automatic(file: Path, key: Key) -> Codes:
    return {str(file): mutated(file.read_text(), str(file), key)}


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Evenly over the files by their numbers of candidates, in random order."""
    generator = random.Random(seed)  # noqa: S311
    candidates = [each for each in mutants if not generator.randrange(WEIGHTS.get(str(each.place[3]), 1))]
    bounds = (len(candidates) * i // count for i in range(count + 1))
    chosen = [candidates[generator.randrange(*part)] for part in pairwise(bounds) if part[0] < part[1]]
    return generator.sample(chosen, len(chosen))


def named(tree: Path, folder: Path) -> Iterator[Mutant]:
    """The mutants that tests/faults/mutants.yaml names."""
    file = folder / "named.json"
    apart(tree, folder / "output", partial(_write_named, tree, folder / "sources", file))
    for name, (case, texts) in json.loads(file.read_text()).items():
        lines = {path: _changed_lines(tree / path, text) for path, text in texts.items()}
        yield Mutant(f"{NAMED}/{name}", (NAMED, name), lines, case, partial(_compiled, tree, texts))


def _write_named(tree: Path, folder: Path, file: Path) -> None:
    """Write the case and the texts of the changed modules of each named mutant."""
    sys.path[:0] = [str(tree / each) for each in (*ROOTS, "tools", "tests", "measure")]
    from faults.campaigns.mutants import copy_sources, mutants
    from faults.edits import apply_edit

    copy_sources(folder, tree)
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for name, mutant in mutants().items():
        texts: dict[str, str] = {}
        for edit in mutant.edits:
            path, text = apply_edit(edit, [folder / root for root in ROOTS])
            path.write_text(text)  # the next edit may change the same module
            texts[str(path.relative_to(folder))] = text
        for path in texts:
            (folder / path).write_text((tree / path).read_text())
        found[name] = mutant.case, texts
    file.write_text(json.dumps(found))


def _compiled(tree: Path, texts: dict[str, str]) -> Codes:
    return {str(tree / path): _code(text, tree / path) for path, text in texts.items()}


def _code(text: str, path: Path) -> CodeType:
    return compile(text, path, "exec", dont_inherit=True)


def pairs_of(codes: Codes) -> Pairs | None:
    """The functions that these codes change, and their new codes; None if they change more than functions."""
    found: Pairs = {}
    for path, code in codes.items():
        pairs = changed(_code(Path(path).read_text(), Path(path)), code)
        if pairs is None:
            return None
        found |= pairs
    return found


def _changed_lines(file: Path, text: str) -> int:
    """The lines of the functions that differ, or all lines if more differs."""
    pairs = pairs_of({str(file): _code(text, file)})
    if pairs is None:
        return mask(range(1, len(file.read_text().splitlines()) + 1))
    lines = {line for code in pairs for _, _, line in code.co_lines() if line and line != code.co_firstlineno}
    return sum(1 << line for line in lines)
