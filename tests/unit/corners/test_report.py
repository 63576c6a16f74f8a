"""The tables of the memory measurements."""

from dataclasses import replace
from pathlib import Path

from corners import report
from corners.loads import MEBIBYTE
from corners.memory import Measurement

FIRST = Measurement(
    "1.6.18", "memory=2Mi threads=1", "load", 43 * MEBIBYTE, MEBIBYTE, 52 * MEBIBYTE, 128 * MEBIBYTE, ""
)
SECOND = replace(FIRST, version="1.6.38", peak=44 * MEBIBYTE, sockets=3 * MEBIBYTE)
ROW = "| `memory: 2Mi, threads: 1` | load | 43.0 | 44.0 | 3.0 | 52.0 | 8.0 | 128.0 |"


def test_table_has_one_row_for_both_releases_with_the_smaller_margin() -> None:
    assert report.table([FIRST, SECOND]).splitlines()[2:] == [ROW]


def test_release_that_was_not_measured_has_no_figure() -> None:
    assert report.table([FIRST]).splitlines()[2:] == [
        "| `memory: 2Mi, threads: 1` | load | 43.0 | – | 1.0 | 52.0 | 9.0 | 128.0 |"
    ]


def test_later_measurement_replaces_the_earlier_one_of_the_same_case() -> None:
    later = replace(FIRST, peak=1)
    assert report.merged([FIRST, SECOND], [later]) == [later, SECOND]


def test_measurements_have_the_order_of_their_cases_and_those_without_a_case_are_left_out() -> None:
    cases = [("1.6.38", FIRST.settings, "load"), ("1.6.38", "other", "load"), ("1.6.18", FIRST.settings, "load")]
    assert report.sorted_by(cases, [FIRST, replace(FIRST, load="removed"), SECOND]) == [SECOND, FIRST]


def test_row_shows_the_problem() -> None:
    assert report.rows([FIRST])[1][-2:] == ("128.0", "ok")
    assert report.rows([replace(FIRST, problem="too much")])[1][-1] == "too much"


def test_only_the_table_of_the_document_is_replaced(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("# Title\n\n<!-- corners: memory -->\nold\n<!-- end -->\n\nafter\n")
    for _ in range(2):
        report.write(document, [FIRST, SECOND])
    assert document.read_text().splitlines()[5:] == [ROW, "<!-- end -->", "", "after"]


def test_document_has_the_marks() -> None:
    assert report.MARK.search((Path(__file__).parents[3] / "docs/sizing.md").read_text())
