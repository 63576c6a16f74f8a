"""The levels of tests, and the tests of each that can detect a mutant."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from mutation.baseline import Baseline, executes
from mutation.lines import Masks

FOLDERS = (
    *("agent", "api", "appservice", "certificates", "crds", "kube", "memcached", "memcachedproxy", "process"),
    *("engine", "findings", "parts", "webhooks", "world", "."),
)
"""Folders of tests/unit with tests of the product, with those inside them; the last one without."""
FOLDERS_OF_API = ("api", "crds", "webhooks")
CASES = (
    *("tests/simulation/test_cases.py", "tests/simulation/scaling/test_phases.py"),
    "tests/simulation/in_place/test_remedies.py",
)
"""Tests of the simulation with many cases, of which some run for a mutant."""
SCENARIOS = ("tests/simulation/test_lists.py", "tests/simulation/test_statuses.py", "tests/simulation/test_rings.py")
"""Tests of the simulation about what no case reaches."""
LEVELS = ("unit", "simulation")
SLOW = 0.01
"""Share of the time of all tests. A test that takes longer runs only if it executes the lines of a mutant."""

Groups = list[list[str]]
"""Tests that run one group after the other."""


def files_of(level: str, tree: Path) -> list[str]:
    """The files of the tests of a level, in a checkout."""
    if level == "simulation":
        return [*CASES, *SCENARIOS]
    patterns = (f"tests/unit/{each}/{'' if each == '.' else '**/'}test_*.py" for each in FOLDERS)
    return [str(file.relative_to(tree)) for pattern in patterns for file in sorted(tree.glob(pattern))]


@dataclass(frozen=True)
class Chosen:
    """How the cases of the simulation are chosen: at most `count` for each mutant."""

    count: int
    seed: int


def unit_tests(baseline: Baseline, lines: Masks) -> Groups:
    """Those that execute the lines. If these are executed on import: then others that may depend on them."""
    tests = baseline.tests
    first = [name for name, test in tests.items() if executes(test.lines, lines)]
    if not baseline.is_imported(lines):
        return [first]
    slow = SLOW * sum(baseline.seconds.values())
    fast = {name: test for name, test in tests.items() if name not in set(first) and test.seconds < slow}
    second = [name for name, test in fast.items() if not lines.keys().isdisjoint(test.lines)]
    prefixes = tuple(f"tests/unit/{each}/" for path in lines for each in _folders(Path(path)))
    third = [name for name in fast if name not in set(second) and name.startswith(prefixes)]
    return [first, second, third]


def _folders(path: Path) -> tuple[str, ...]:
    """The folders of the tests of a file."""
    return (
        *(FOLDERS_OF_API if path.parts[0] == "api" else ()),
        path.parts[1].removeprefix("memcached_"),
        path.parts[2],
    )


def cases(baseline: Baseline, lines: Masks, case: str, chosen: Chosen) -> Groups:
    """Some that execute the lines, else the file if these are executed on import; first the one with this name.

    Then all scenarios that execute them.
    """
    tests = baseline.tests
    first = [name for name, test in tests.items() if executes(test.lines, lines)]
    if not first and baseline.is_imported(lines):
        first = [name for name, test in tests.items() if not lines.keys().isdisjoint(test.lines)]
    scenarios = [name for name in first if name.startswith(SCENARIOS)]
    kept = set(spread(set(first) - set(scenarios), chosen))
    named = [name for name in tests if case and name.endswith(f"[{case}]")]
    return [[*named, *(name for name in tests if name in kept and name not in named), *scenarios]]


def spread(tests: Iterable[str], chosen: Chosen) -> list[str]:
    """At most `count` of the tests, the same number of each campaign where possible."""
    generator = random.Random(chosen.seed)  # noqa: S311
    campaigns: dict[str, list[str]] = {}
    for name in sorted(tests):
        campaigns.setdefault(name.partition("[")[2].partition("/")[0], []).append(name)
    drawn = [generator.sample(names, len(names)) for names in campaigns.values()]
    return [name for names in zip_longest(*drawn) for name in names if name][: chosen.count]
