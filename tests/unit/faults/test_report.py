"""Every attempt of a case is kept, counted and named."""

from typing import Any

import pytest

from faults import report
from faults.report import History
from faults.runner import Result
from faults.sources import digest


def _history(name: str, *errors: str) -> History:
    return History(tuple(Result(name, error, 2.0 + number) for number, error in enumerate(errors)))


KNOWN = {
    "T1/one/0": _history("T1/one/0", "", ""),
    "T1/one/1": _history("T1/one/1", "the children\ndiffer `x`", ""),
    "T1/one/2": _history("T1/one/2", "", "not ready"),
}


def test_every_case_that_ever_failed_is_named() -> None:
    text = report.failed(KNOWN)
    assert "2 attempts failed:" in text
    assert "* `T1/one/1`: 1 of 2 attempts, then passed; `the children differ 'x'`" in text
    assert "* `T1/one/2`: 1 of 2 attempts, not passed; `not ready`" in text
    assert "T1/one/0" not in text


def test_interrupted_attempt_is_neither_a_failure_nor_the_last() -> None:
    attempts = [Result("T1/one/1", error, 1.0) for error in ("", "interrupted")]
    history = History(tuple(attempts))
    assert (history.last.error, history.failures) == ("", ())
    assert History((attempts[1],)).last.error == "interrupted"


def test_results_of_these_sources_are_kept_in_their_order(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "build" / "results.jsonl")
    assert report.histories() == {}
    for error, sources in (("broken", digest()), ("other", "0123456789ab"), ("", digest())):
        report.keep(Result("T1/one/1", error, 1.0, "a note", sources))
    with report.RESULTS.open("a") as file:
        file.write('{"name": "T1/one/1", "error": "without a digest", "seconds": 1, "note": ""}\n')
    assert [each.error for each in report.histories()["T1/one/1"].attempts] == ["broken", ""]


def test_published_results_are_read_as_they_were_written() -> None:
    text = report.encoded(report.Published("0123456789ab", "2026-11-22", KNOWN))
    found = report.decoded(text)
    assert report.encoded(found) == text
    assert report.failed(found.histories) == report.failed(KNOWN)


def test_page_says_whether_the_results_are_of_the_present_sources() -> None:
    texts = [
        report.blocks([], report.Published(sources, "2026-11-22", {}))["figures"]
        for sources in (digest(), "0123456789ab")
    ]
    assert "were measured on 2026-11-22 with the present sources" in texts[0]
    assert "were measured on 2026-11-22 with an earlier version of the sources" in texts[1]


def test_nothing_is_published_without_results_of_the_present_sources(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.jsonl")
    monkeypatch.setattr(report, "PUBLISHED", tmp_path / "published.csv")
    report.keep(Result("T1/one/0", "", 1.0, "", "0123456789ab"))
    assert not report.publish([])
    assert not report.PUBLISHED.exists()


def test_mutant_that_was_not_detected_is_named() -> None:
    name = "no-digest"
    texts = {
        note: report.mutant_table({f"T14/{name}": History((Result(f"T14/{name}", error, 1.0, note),))})
        for note, error in (("the children differ", ""), ("", "T1 did not detect the mutant"))
    }
    rows = [next(row for row in text.splitlines() if f"| {name} |" in row) for text in texts.values()]
    assert rows[0].endswith("| the children differ |")
    assert rows[1].endswith("| **not detected** |")
