"""The report of the benchmark."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench import report
from bench.report import Results, markdown, quantile

DOCUMENT = (
    "# Title\n\nbefore\n\n<!-- bench: one -->\nold\n<!-- end -->\n\nafter <!-- bench: two -->\n<!-- end -->\nend\n"
)


def test_only_text_between_the_marks_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "TABLES", {"one": _field("a"), "two": _field("b")})
    document = tmp_path / "page.md"
    document.write_text(DOCUMENT)
    for _ in range(2):
        report.write(document, {"a": "first\nsecond", "b": "third"})
    assert document.read_text() == (
        "# Title\n\nbefore\n\n<!-- bench: one -->\nfirst\nsecond\n<!-- end -->\n\n"
        "after <!-- bench: two -->\nthird\n<!-- end -->\nend\n"
    )


def test_every_table_has_marks_in_the_document() -> None:
    text = (Path(__file__).parents[3] / "docs/performance.md").read_text()
    assert [match["name"] for match in report.MARK.finditer(text)] == list(report.TABLES)


QUANTILES: dict[str, tuple[list[float], float, float]] = {
    "no values": ([], 0.5, 0.0),
    "one value": ([3.0], 0.99, 3.0),
    "median of three": ([3.0, 1.0, 2.0], 0.5, 2.0),
    "99 % of a hundred": ([float(value) for value in range(100)], 0.99, 99.0),
}


@pytest.mark.parametrize(("values", "share", "expected"), QUANTILES.values(), ids=QUANTILES.keys())
def test_quantiles(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


def test_markdown_table_has_a_delimiter_row() -> None:
    assert markdown([("", "b"), ("1", "2")]) == "|  | b |\n| --- | --- |\n| 1 | 2 |"


def _field(name: str) -> Callable[[Results], str]:
    return lambda results: results[name]
