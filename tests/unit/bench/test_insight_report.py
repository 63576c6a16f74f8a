"""The tables of docs/insight.md."""

from xml.etree import ElementTree

import msgspec
import pytest

from insight import chart, report
from insight.__main__ import merged, published
from insight.campaign import Outcome
from insight.cost import ROUNDS, Cost, Round
from insight.report import GOAL, Published
from insight.workloads import WORKLOADS

MEASURED = {"1": 0.5, "1.25": 0.6, "1.5": 0.7, "2": 0.8, "0.5": 0.3, "0.625": 0.4}
GOOD = Outcome(
    workload="Zipf",
    memory=16,
    quality="good",
    lines=1000,
    sample=0.25,
    seconds=60.0,
    measured=MEASURED,
    predicted={"1.25": 0.59, "1.5": 0.7, "2": 0.81, "0.55": 0.45},
    cliffs=[],
)
WRONG = GOOD.predicted | {"1.5": 0.7 + GOAL + 0.001}
FAILURES: dict[str, tuple[Outcome, list[str]]] = {
    "within the goal": (GOOD, []),
    "an error": (msgspec.structs.replace(GOOD, predicted=WRONG), ["Zipf: +2.1 points with 1.5 times the memory"]),
    "an error at a cliff": (msgspec.structs.replace(GOOD, predicted=WRONG, cliffs=["1.5"]), []),
    "an error at another size": (
        msgspec.structs.replace(GOOD, predicted=WRONG, cliffs=["2"]),
        ["Zipf: +2.1 points with 1.5 times the memory"],
    ),
    "no prediction": (
        msgspec.structs.replace(GOOD, predicted={"1.25": 0.6, "2": 0.8}),
        ["Zipf: no prediction for 1.5 times the memory"],
    ),
    "a poor window": (msgspec.structs.replace(GOOD, quality="lost"), ["Zipf: the window is lost"]),
}


@pytest.mark.parametrize(("outcome", "expected"), FAILURES.values(), ids=FAILURES.keys())
def test_failures(outcome: Outcome, expected: list[str]) -> None:
    assert report.failures([outcome]) == expected


def rounds(*times: float) -> list[Round]:
    """Rounds in which memcached needs these times."""
    return [Round(time, 25.0, 0.1, 1000.0, 2**20) for time in times]


def test_chart_shows_each_prediction_beside_the_measured_line() -> None:
    text = chart.svg([GOOD, msgspec.structs.replace(GOOD, workload="a <b>", predicted={"1.25": 0.6})])
    drawn = ElementTree.fromstring(text)  # noqa: S314 - our own text
    lines, circles = drawn.findall("{*}polyline"), drawn.findall("{*}circle")
    assert [len(line.attrib["points"].split()) for line in lines] == [len(MEASURED)] * 2
    assert [(each.attrib["stroke"] == lines[0].attrib["stroke"]) for each in circles] == [True] * 3 + [False]
    assert f"{circles[3].attrib['cx']},{circles[3].attrib['cy']}" in lines[1].attrib["points"].split()
    assert "a <b>" in {each.text for each in drawn.findall("{*}text")}


def test_tables() -> None:
    cost = Cost(rounds(*[1.0] * ROUNDS), rounds(*[1.9, 2.1] * (ROUNDS // 2)))
    found = report.blocks(Published("a", "2026-11-26", "1.6.38", 1, 1.0, [GOOD], [cost]))
    row = "| 1,000 | 10.0 % | 1.0 ± 0.0 µs | 2.0 ± 0.1 µs | +100.0 ± 6.6 % | +5.0 ± 0.3 % | 2.5 %, 1.0 MiB |"
    assert row in found["cost"], "on average, a twentieth of the difference"
    assert "| Zipf | 50.0 % | 59.0 % (-1.0) | 70.0 % (+0.0) | 81.0 % (+1.0) | 1,000 | 1/4 |" in found["errors"]
    assert "| Zipf | 0.55 | 45.0 % | 34.0 % |" in found["smaller"]


@pytest.mark.parametrize(("size", "ratio"), [(0.5, 0.3), (0.5625, 0.35), (2.0, 0.8), (0.4, None), (3.0, None)])
def test_measured_ratio_between_two_sizes(size: float, ratio: float | None) -> None:
    assert report.between(MEASURED, size) == (None if ratio is None else pytest.approx(ratio))


def test_measured_outcomes_replace_the_published_ones() -> None:
    again = msgspec.structs.replace(GOOD, workload=WORKLOADS[1].name)
    before = published().outcomes
    assert merged([again]) == [before[0], again, *before[2:]]


def test_published_results_meet_the_goals() -> None:
    """Of all workloads. The cliff of the loop is reported."""
    found = published()
    assert [each.workload for each in found.outcomes] == [each.name for each in WORKLOADS]
    assert report.failures(found.outcomes) == []
    assert ["1.5" in each.cliffs for each in found.outcomes] == [each.name == "loop" for each in WORKLOADS]
