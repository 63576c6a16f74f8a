"""The report of the benchmark."""

from typing import Any

import pytest

from bench import report
from bench.report import CLIENTS, SCALING, quantile
from pages.blocks import filled
from unit.config.rendered import ROOT

QUANTILES: dict[str, tuple[list[float], float, float]] = {
    "no values": ([], 0.5, 0.0),
    "one value": ([3.0], 0.99, 3.0),
    "median of three": ([3.0, 1.0, 2.0], 0.5, 2.0),
    "99 % of a hundred": ([float(value) for value in range(100)], 0.99, 99.0),
}


@pytest.mark.parametrize(("values", "share", "expected"), QUANTILES.values(), ids=QUANTILES.keys())
def test_quantiles(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


def created(seconds: float) -> dict[str, Any]:
    """The figures of a storm in which everything takes this long."""
    times = ("objects posted, s", "children accepted, s", "status current, s", "CPU, s", "CPU per object, ms")
    lists = ("single object idle, s", "second object in the storm, s", "same namespace in the storm, s")
    found = dict.fromkeys(times, seconds) | {name: [seconds] for name in lists}
    return found | {"RSS idle, MiB": 50.0, "RSS after, MiB": 70.0, "writes": {"create deployments": 10}}


def changed(seconds: float, **writes: int) -> dict[str, Any]:
    """The figures of a change of all objects in which everything takes this long."""
    names = ("objects changed, s", "children accepted, s", "status current, s", "all done, s", "CPU per object, ms")
    return dict.fromkeys(names, seconds) | {"writes": writes}


def one_round(baseline: float, operator: float, writes: int) -> dict[str, Any]:
    """A round of ten objects: the seconds of the baselines and of the operator, and its writes in the scale wave."""
    wave = {client: changed(baseline) for client in SCALING} | {"operator": changed(operator, patches=writes)}
    restart = {"current, s": 1.0, "writes": 0, "RSS, MiB": 60.0}
    return {
        **{client: created(baseline) for client in CLIENTS},
        "operator": created(operator),
        "scale wave": wave,
        "steady writes": 0,
        "first change": changed(1.0),
        "second change": changed(1.0),
        "restart": restart,
    }


ADMISSION = {
    **{f"{kind}, {load}, s": [0.001] for kind in ("validate", "mutate") for load in ("idle", "storm")},
    **{f"{kind}, CPU per review, µs": 200.0 for kind in ("validate", "mutate")},
    **dict.fromkeys(("RSS before, MiB", "RSS after many, MiB", "reviews per second and core"), 40.0),
}
CLUSTER = created(1.0) | {"all available, s": 9.0, "RSS, MiB": 70.0, "steady writes": 0, "scale": changed(1.0)}
WITH_SPEC = {
    "ours": created(4.0),
    "operator": created(5.0),
    "scale wave": one_round(2.0, 3.0, 20)["scale wave"],
    "steady writes": 0,
}
RESULTS: dict[str, Any] = {
    "machine": {},
    "date": "2026-11-22",
    "objects": 10,
    "rounds": [one_round(2.0, 2.0, 20), one_round(10.0, 13.0, 25), one_round(1.0, 1.5, 20)],
    "fields": WITH_SPEC,
    "slots": WITH_SPEC | {"steady writes": 7},
    "autoscaler": {
        "changes": 100,
        "rejected": 1,
        "period, s": 1.1,
        "writes": {"patch deployments": 101, "patch memcacheds/status": 95, "delete services": 2},
    },
    "growth": {
        "operator": created(5.0),
        "restart": one_round(1.0, 1.0, 20)["restart"],
        "takeover": {"after SIGTERM, s": 4.0, "after SIGKILL, s": 20.0},
    },
    "cluster": {"operator": CLUSTER},
    "admission": ADMISSION,
}
"""The results of a run of three rounds. The ratios of the rounds are 1, 1.3 and 1.5; those of the medians are 1."""


PUBLISHED = report.published(RESULTS)


def rows(table: str) -> dict[str, list[str]]:
    """The cells of a table's rows by the first one."""
    return {name: cells for name, *cells in PUBLISHED.tables[table]}


GOALS = {
    "children accepted, relative to the same requests": ["≤ 1.2 ×", "1.30 ×"],
    "status current, relative to the same requests": ["≤ 1.3 ×", "1.30 ×"],
    "scale wave, relative to the same requests": ["≤ 1.15 ×", "1.30 ×"],
    "scale wave: writes per object": ["2", "2.50"],
    "autoscaler: child writes per change": ["1", "1.01"],
    "autoscaler: status writes per change": ["1", "0.95"],
    "autoscaler: other and rejected writes": ["0", "3"],
}


@pytest.mark.parametrize(("name", "expected"), GOALS.items(), ids=GOALS.keys())
def test_goals_show_the_median_of_the_ratios_and_the_largest_number_of_writes(name: str, expected: list[str]) -> None:
    assert rows("goals")[name] == expected


def test_missed_goals_are_listed() -> None:
    missed = report.blocks(PUBLISHED)["missed"].splitlines()
    assert missed[0] == f"The operator misses {len(missed) - 2} of these goals:"
    assert "* scale wave, relative to the same requests: 1.30 × (goal: ≤ 1.15 ×)" in missed
    assert "* autoscaler: status writes per change: 0.95 (goal: 1)" in missed
    assert not [line for line in missed if "status current" in line or "flat" in line], "equal to the goal, or in words"


def test_tables() -> None:
    assert rows("scale wave")["writes per object"] == ["0.00", "0.00", "2.50"]
    assert rows("every field")["scale wave"] == ["2.0 s", "3.0 s", "1.50 ×"]
    assert rows("slots")["writes while nothing changes"] == ["–", "7", "–"]
    assert rows("writes")["scale by an autoscaler"][-1] == "1.98"


def test_every_table_has_a_place_in_a_page() -> None:
    page = (ROOT / "docs/performance.md").read_text()
    assert filled(page, report.blocks(PUBLISHED)).count("<!-- generated: ") == len(report.TABLES) + 2
