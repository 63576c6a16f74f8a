"""Results of suites: read from the files that pytest writes, and summed up as pytest does."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
MAX_FAILURES = 10
"""A suite stops after so many failed tests."""
STOPPED = 2
"""pytest's exit code if it stopped before the last test; with xdist also after MAX_FAILURES."""
LONGEST_ID, LONGEST_REASON = 110, 200
"""Characters of a test's name in a list, and of the reason why it failed."""
PASSED, FAILED, FLAKY, SKIPPED = ORDER = ("passed", "failed", "flaky", "skipped")
MARKS = {"failure": FAILED, "error": FAILED, "skipped": SKIPPED}
"""The elements of a JUnit file that say that a test did not pass."""


@dataclass(frozen=True)
class Test:
    """One test: its id, its result, its seconds, including its fixtures, and the line that says why it failed."""

    __test__ = False  # not a test of pytest
    name: str
    result: str
    seconds: float
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """One suite: its tests, and its seconds including the setup before it.

    `problem` is a failure that is not one of a test; it counts as one failure.
    """

    suite: str
    tests: tuple[Test, ...]
    seconds: float = 0.0
    problem: str = ""

    def named(self, result: str) -> tuple[str, ...]:
        """The names of the tests with this result."""
        return tuple(test.name for test in self.tests if test.result == result)

    def lines(self, result: str) -> list[str]:
        """A line for each test with this result: which, and why it failed."""
        return [f"{result}: {shortened(each.name)}: {each.reason}" for each in self.tests if each.result == result]

    @property
    def counts(self) -> Counter[str]:
        """The number of tests with each result."""
        return Counter(test.result for test in self.tests) + Counter({FAILED: 1} if self.problem else {})


def read(file: Path) -> tuple[Test, ...]:
    """The tests in a JUnit file of pytest; none without the file."""
    if not file.exists():
        return ()
    # An element without a name is a test that Ctrl-C ended. A test that fails twice (in its fixtures) has two elements.
    found = ElementTree.fromstring(file.read_text()).iter("testcase")  # noqa: S314 - written by our own run of pytest
    tests = [_of_element(each) for each in found if each.get("name")]
    worst = {test.name: test for test in sorted(tests, key=lambda test: test.result == FAILED)}
    return tuple(worst[name] for name in dict.fromkeys(test.name for test in tests))


def _of_element(case: ElementTree.Element) -> Test:
    reasons = (child.get("message", "") for child in case if MARKS.get(child.tag) == FAILED)
    return Test(_id(case), _result(case), float(case.get("time", "0")), _bounded(next(reasons, "")))


def _id(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def _result(case: ElementTree.Element) -> str:
    found = {MARKS[child.tag] for child in case if child.tag in MARKS}
    return next((each for each in (FAILED, SKIPPED) if each in found), PASSED)


def _bounded(text: str) -> str:
    """A text as one short line."""
    line = " ".join(text[: 2 * LONGEST_REASON].split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


def outcome(suite: str, tests: tuple[Test, ...], code: int) -> Outcome:
    """The outcome of a command that ended with this exit code after these tests, without its seconds."""
    problem, failures = "", sum(test.result == FAILED for test in tests)
    if not tests:
        problem = f"exit code {code}, no results"
    elif (code == 1 and not failures) or code not in (0, 1, *([STOPPED] if failures >= MAX_FAILURES else [])):
        problem = f"exit code {code}"  # other tests may not have run
    elif all(test.result == SKIPPED for test in tests):
        problem = "every test was skipped"
    return Outcome(suite, tests, problem=problem)


def merged(first: Outcome, again: Iterable[Test]) -> Outcome:
    """The outcome after failed tests ran once more: those that passed are flaky, the others have failed."""
    passed = {test.name for test in again if test.result == PASSED}
    tests = (replace(test, result=FLAKY) if _passes_again(test, passed) else test for test in first.tests)
    return replace(first, tests=tuple(tests))


def _passes_again(test: Test, passed: set[str]) -> bool:
    return test.result == FAILED and test.name in passed


def store(file: Path, outcomes: Sequence[Outcome], missing: Mapping[str, str]) -> None:
    """Write outcomes, and why suites did not run, for a later command that adds to them."""
    file.write_text(json.dumps({"outcomes": [asdict(each) for each in outcomes], "missing": dict(missing)}))


def stored(file: Path) -> tuple[list[Outcome], dict[str, str]]:
    """The outcomes that an earlier command wrote, and why suites did not run; both empty without the file."""
    if not file.exists():
        return [], {}
    content = json.loads(file.read_text())
    outcomes = [
        Outcome(each["suite"], tuple(Test(**test) for test in each["tests"]), each["seconds"], each["problem"])
        for each in content["outcomes"]
    ]
    return outcomes, content["missing"]


def summary(outcomes: Sequence[Outcome], missing: Mapping[str, str], notes: Iterable[str], seconds: float) -> str:
    """Failed and flaky tests, a line for each suite and each that did not run, and the sum as pytest prints it.

    `missing` are suites that should have run; together they count as one failure. `notes` follow them.
    """
    phrases = [phrase(each.counts) for each in outcomes]
    name_width = max((len(each.suite) for each in outcomes), default=0)
    width = max(map(len, phrases), default=0)
    lines = [line for kind in (FAILED, FLAKY) for each in outcomes for line in each.lines(kind)]
    for each, words in zip(outcomes, phrases, strict=True):
        lines.append(f"{each.suite:<{name_width}}  {words:<{width}}  {each.seconds:7.1f} s  {each.problem}".rstrip())
    lines += [f"not run: {name}: {reason}" for name, reason in missing.items()]
    lines += notes
    everything = sum((each.counts for each in outcomes), Counter({FAILED: 1} if missing else {}))
    return "\n".join([*lines, f"{phrase(everything)} in {seconds:.2f}s"])


def phrase(counts: Mapping[str, int]) -> str:
    """Numbers of tests in pytest's words, such as "3 passed, 1 failed"."""
    return ", ".join(f"{counts.get(each, 0)} {each}" for each in ORDER if counts.get(each) or each == PASSED)


def slowest(outcomes: Iterable[Outcome]) -> list[str]:
    """The slowest tests of all suites: seconds, suite, id."""
    every = [(test, each.suite) for each in outcomes for test in each.tests]
    found = sorted(every, key=lambda pair: pair[0].seconds, reverse=True)[:SLOWEST]
    width = max((len(name) for _, name in found), default=0)
    return [f"{test.seconds:7.1f} s  {name:<{width}}  {shortened(test.name)}" for test, name in found]


def shortened(name: str) -> str:
    """A test's name for a list."""
    return name if len(name) <= LONGEST_ID else f"{name[: LONGEST_ID - 1]}…"
