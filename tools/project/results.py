"""Results of the test runs: a line for each run, the slowest tests, and the sum in the form of pytest's summary."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
MAX_ID = 110
"""Characters of a test's name in the list of the slowest."""
FAILED, SKIPPED, PASSED = "failed", "skipped", "passed"
MARKS = {"failure": FAILED, "error": FAILED, "skipped": SKIPPED}
"""The elements of a JUnit file that say that a test did not pass."""


@dataclass(frozen=True)
class Test:
    """One test: its id, its result and its seconds, including its fixtures."""

    __test__ = False  # not a test of pytest
    name: str
    result: str
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """One run: its name, its tests and its seconds, including the setup before it.

    `problem` is a failure of the run that is not one of a test; it counts as one failure.
    """

    name: str
    tests: tuple[Test, ...]
    seconds: float
    problem: str = ""


def of_junit(text: str) -> tuple[Test, ...]:
    """The tests in a JUnit file of pytest. An element without a name is a test that Ctrl-C ended."""
    found = ElementTree.fromstring(text).iter("testcase")  # noqa: S314 - written by our own run of pytest
    return tuple(Test(_id(each), _result(each), float(each.get("time", "0"))) for each in found if each.get("name"))


def _id(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _result(case: ElementTree.Element) -> str:
    found = {MARKS[child.tag] for child in case if child.tag in MARKS}
    return next((each for each in (FAILED, SKIPPED) if each in found), PASSED)


def of_faults(text: str) -> tuple[Test, ...]:
    """The cases that the fault tests wrote with `--results`, one JSON object per line."""
    found = [json.loads(line) for line in text.splitlines()]
    return tuple(Test(each["name"], FAILED if each["error"] else PASSED, each["seconds"]) for each in found)


def outcome(name: str, file: Path, code: int, seconds: float, problem: str = "") -> Outcome:
    """The outcome of a run that wrote a file of results and ended with an exit code.

    `problem` is one that was found after the run.
    """
    tests = _read(file)
    if not tests:
        return Outcome(name, (), seconds, f"exit code {code}, no results")
    if code and all(each.result != FAILED for each in tests):
        problem = f"exit code {code}"
    elif all(each.result == SKIPPED for each in tests):
        problem = "every test was skipped"
    return Outcome(name, tests, seconds, problem)


def _read(file: Path) -> tuple[Test, ...]:
    """The tests in a file of results; none if it does not exist."""
    if not file.exists():
        return ()
    return of_junit(file.read_text()) if file.suffix == ".xml" else of_faults(file.read_text())


def summary(outcomes: Sequence[Outcome], planned: Iterable[str], seconds: float) -> list[str]:
    """A line for each run, one that names the runs that did not start, and the sum.

    The sum counts a run's problem as one failure, and so it does runs that did not start.
    """
    counts = [counted(each) for each in outcomes]
    missing = [name for name in planned if name not in {each.name for each in outcomes}]
    widths = [max((len(row) for row in column), default=0) for column in (
        [each.name for each in outcomes], [phrase(count) for count in counts]
    )]  # fmt: skip
    lines = [
        f"{each.name:<{widths[0]}}  {phrase(count):<{widths[1]}}  {each.seconds:7.1f} s  {each.problem}".rstrip()
        for each, count in zip(outcomes, counts, strict=True)
    ]
    if missing:
        lines.append(f"not run: {', '.join(missing)}")
    everything = sum(counts, Counter({FAILED: 1} if missing else {}))
    return [*lines, f"{phrase(everything)} in {seconds:.2f}s"]


def counted(each: Outcome) -> Counter[str]:
    """The number of tests with each result; a problem of the run is one failure."""
    return Counter(test.result for test in each.tests) + Counter({FAILED: 1} if each.problem else {})


def phrase(counts: Counter[str]) -> str:
    """Numbers of tests in pytest's words, such as "3 passed, 1 failed"."""
    words = [f"{counts[PASSED]} {PASSED}"]
    return ", ".join(words + [f"{counts[each]} {each}" for each in (FAILED, SKIPPED) if counts[each]])


def slowest(outcomes: Iterable[Outcome]) -> list[str]:
    """The slowest tests of all runs: seconds, run, id."""
    every = [(test, each.name) for each in outcomes for test in each.tests]
    found = sorted(every, key=lambda pair: pair[0].seconds, reverse=True)[:SLOWEST]
    width = max((len(name) for _, name in found), default=0)
    return [f"{test.seconds:7.1f} s  {name:<{width}}  {_shortened(test.name)}" for test, name in found]


def _shortened(name: str) -> str:
    return name if len(name) <= MAX_ID else f"{name[: MAX_ID - 1]}…"
