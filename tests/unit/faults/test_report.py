"""Every attempt of a case is kept, counted and named; scripts and parameters are counted apart."""

from functools import partial
from typing import Any

import pytest

from faults import report
from faults.case import Case, References
from faults.report import History
from faults.runner import Result
from faults.sandbox import Sandbox
from faults.sources import digest


async def _one(sandbox: Sandbox, references: References, number: int) -> None:
    return


async def _with(sandbox: Sandbox, references: References, step: Any) -> None:
    return


CASES = [
    *(Case(f"T1/one/{number}", partial(_one, number=number)) for number in range(3)),
    Case("T1/with/print", partial(_with, step=print)),
    Case("T1/with/one", partial(_with, step=partial(_one, number=1))),
    Case("T1/with/one-again", partial(_with, step=partial(_one, number=2))),
]


def _history(name: str, *errors: str) -> History:
    return History(tuple(Result(name, error, 2.0 + number) for number, error in enumerate(errors)))


KNOWN = {
    "T1/one/0": _history("T1/one/0", "", ""),
    "T1/one/1": _history("T1/one/1", "the children\ndiffer `x`", ""),
    "T1/one/2": _history("T1/one/2", "", "not ready"),
}


def test_scripts_are_functions_with_the_functions_passed_to_them() -> None:
    assert len({case.script for case in CASES}) == 3


def test_figures_count_scripts_cases_and_every_failure() -> None:
    rows = report.figures(CASES, KNOWN).splitlines()
    assert rows[2].endswith("| 3 | 6 | 3 | 2 | 2 | 3 | 3 |")
    assert rows[-3] == "| | all | 3 | 6 | 3 | 2 | 2 | | |"
    assert rows[-1] == f"All figures are of attempts with these sources of the product (digest `{digest()}`)."


def test_every_case_that_ever_failed_is_named() -> None:
    text = report.failed(KNOWN)
    assert "2 attempts with these sources failed:" in text
    assert "* `T1/one/1`: 1 of 2 attempts, then passed; `the children differ 'x'`" in text
    assert "* `T1/one/2`: 1 of 2 attempts, not passed; `not ready`" in text
    assert "T1/one/0" not in text


def test_nothing_failed() -> None:
    assert report.failed({"T1/one/0": KNOWN["T1/one/0"]}) == "No attempt with these sources failed.\n"


def test_published_results_have_every_attempt() -> None:
    assert report.published(KNOWN).splitlines() == [
        f"case,attempts with sources {digest()},seconds",
        "T1/one/0,ok ok,3",
        "T1/one/1,failed ok,3",
        "T1/one/2,ok failed,3",
    ]


def test_interrupted_attempt_is_neither_a_failure_nor_the_last() -> None:
    attempts = [Result("T1/one/1", error, 1.0) for error in ("", "interrupted")]
    history = History(tuple(attempts))
    assert (history.last.error, history.failures) == ("", ())
    assert "T1/one/1,ok interrupted,1" in report.published({"T1/one/1": history})
    assert History((attempts[1],)).last.error == "interrupted"


def test_results_are_kept_in_their_order(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "build" / "results.jsonl")
    assert report.histories() == {}
    for error in ("broken", ""):
        report.keep(Result("T1/one/1", error, 1.0, "a note", digest()))
    assert [each.error for each in report.histories()["T1/one/1"].attempts] == ["broken", ""]


def test_results_of_other_sources_are_ignored(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.jsonl")
    report.RESULTS.write_text('{"name": "T1/one/1", "error": "broken", "seconds": 1, "note": ""}\n')
    report.keep(Result("T1/one/1", "broken", 1.0, sources="0123456789ab"))
    assert report.histories() == {}
    with report.RESULTS.open("a") as file:
        file.write(f'{{"name": "T1/one/1", "error": "", "seconds": 2, "note": "", "sources": "{digest()}"}}\n')
    assert [each.seconds for each in report.histories()["T1/one/1"].attempts] == [2]


def test_mutant_that_was_not_detected_is_named() -> None:
    name = "no-digest"
    texts = {
        note: report.mutant_table({f"T14/{name}": History((Result(f"T14/{name}", error, 1.0, note),))})
        for note, error in (("the children differ", ""), ("", "T1 did not detect the mutant"))
    }
    rows = [next(row for row in text.splitlines() if f"| {name} |" in row) for text in texts.values()]
    assert rows[0].endswith("| the children differ |")
    assert rows[1].endswith("| **not detected** |")
