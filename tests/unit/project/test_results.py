"""Results of runs: read from the files that pytest and the fault tests write, counted, and sorted by time."""

import json
import re
from pathlib import Path

import pytest

from project import results
from project.results import Outcome, Test

JUNIT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="5" time="1.0">
<testcase classname="tests.unit.test_a" name="test_passed[a.b]" time="0.5"><system-out>x</system-out></testcase>
<testcase classname="tests.unit.test_a" name="test_failed" time="1.5"><failure message="no">x</failure></testcase>
<testcase classname="tests.unit.test_a" name="test_setup" time="0.1"><error message="no">x</error></testcase>
<testcase classname="tests.unit.test_a" name="test_skipped" time="0.0"><skipped message="y">z</skipped></testcase>
<testcase classname="tests.unit.test_a" name="test_both" time="0.0"><skipped/><error message="no">x</error></testcase>
<testcase time="0.1"/>
</testsuite></testsuites>"""
SHAPE = r"\d+ passed(, [1-9]\d* failed)?(, [1-9]\d* skipped)? in \d+\.\d\ds"


def outcome(name: str, *tests: tuple[str, float], problem: str = "") -> Outcome:
    """A run of tests with a result and seconds each."""
    found = tuple(Test(f"{name}::{number}", result, seconds) for number, (result, seconds) in enumerate(tests))
    return Outcome(name, found, sum(test.seconds for test in found), problem)


def test_junit_file_of_pytest() -> None:
    assert results.of_junit(JUNIT) == (
        Test("tests/unit/test_a.py::test_passed[a.b]", "passed", 0.5),
        Test("tests/unit/test_a.py::test_failed", "failed", 1.5),
        Test("tests/unit/test_a.py::test_setup", "failed", 0.1),
        Test("tests/unit/test_a.py::test_skipped", "skipped", 0.0),
        Test("tests/unit/test_a.py::test_both", "failed", 0.0),
    )


def test_results_of_the_fault_tests() -> None:
    lines = [{"name": "T1/a", "error": "", "seconds": 2.5}, {"name": "T1/b", "error": "no", "seconds": 1, "more": [1]}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert results.of_faults(text) == (Test("T1/a", "passed", 2.5), Test("T1/b", "failed", 1))


@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        (JUNIT, 1, ""),
        ("<testsuites/>", 5, "exit code 5, no results"),
        ("<testsuites/>", 0, "exit code 0, no results"),
        ('<testsuite><testcase classname="a" name="b"/></testsuite>', 0, "found later"),
        ('<testsuite><testcase classname="a" name="b"/></testsuite>', 3, "exit code 3"),
        ('<testsuite><testcase classname="a" name="b"><skipped/></testcase></testsuite>', 0, "every test was skipped"),
        (None, 4, "exit code 4, no results"),
        (None, 0, "exit code 0, no results"),
    ],
)
def test_problem_of_a_run_that_no_test_explains(text: str | None, code: int, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "unit.xml"
    if text:
        file.write_text(text)
    found = results.outcome("unit", file, code, 3.0, "found later" if not code else "")
    assert (found.problem, found.seconds) == (problem, 3.0)


PASSED, FAILED, SKIPPED = ("passed", 1.0), ("failed", 2.0), ("skipped", 0.0)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([outcome("one", PASSED, PASSED), outcome("two", SKIPPED, PASSED)], "3 passed, 1 skipped in 9.00s"),
        ([outcome("one", PASSED, FAILED), outcome("two")], "1 passed, 1 failed in 9.00s"),
        ([outcome("one", PASSED, problem="exit code 2"), outcome("two")], "1 passed, 1 failed in 9.00s"),
        ([outcome("one", PASSED)], "1 passed, 1 failed in 9.00s"),
        ([], "0 passed, 1 failed in 9.00s"),
    ],
)
def test_sum_has_the_form_of_pytests_summary(outcomes: list[Outcome], expected: str) -> None:
    line = results.summary(outcomes, ["one", "two"], 9)[-1]
    assert line == expected
    assert re.fullmatch(SHAPE, line)


def test_summary_has_an_aligned_line_for_each_run_and_names_the_others() -> None:
    outcomes = [outcome("unit", PASSED, PASSED), outcome("integration", PASSED, FAILED, SKIPPED, problem="why")]
    assert results.summary(outcomes, ["unit", "integration", "e2e", "olm"], 9)[:-1] == [
        "unit         2 passed                           2.0 s",
        "integration  1 passed, 2 failed, 1 skipped      3.0 s  why",
        "not run: e2e, olm",
    ]


def test_ten_slowest_tests_of_all_runs() -> None:
    first = outcome("unit", *[("passed", float(seconds)) for seconds in range(12)])
    lines = results.slowest([first, outcome("integration", ("failed", 100.25))])
    assert len(lines) == 10
    assert lines[:2] == ["  100.2 s  integration  integration::0", "   11.0 s  unit         unit::11"]
    assert lines[-1] == "    3.0 s  unit         unit::3"


def test_long_ids_are_cut() -> None:
    (line,) = results.slowest([Outcome("unit", (Test("x" * 500, "passed", 1.0),), 1.0)])
    assert line.endswith("x…")
    assert len(line) < 130
