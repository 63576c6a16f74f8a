"""Tables of docs/performance.md, from the results of a run. Pure functions."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import msgspec

from pages.blocks import table
from pages.figures import UNRELEASED, measured

Results = Mapping[str, Any]
Row = Sequence[str]

WRITES = ("create deployments", "create services", "patch deployments", "patch services", "patch memcacheds/status")
LATENCIES = ("single object idle, s", "second object in the storm, s", "same namespace in the storm, s")
CLIENTS = {
    "ours": "open loop, same requests",
    "children first": "open loop, children first, 16 connections",
    "plain": "open loop, plain creates",
    "operator": "operator",
}
SCALING = {name: title for name, title in CLIENTS.items() if name != "plain"}
"""The clients of the scale wave."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")
CHILDREN = ("create deployments", "create services", "patch deployments", "patch services")


class Published(msgspec.Struct, frozen=True):
    """What docs/performance-results.json contains: the digest of the sources, the date, and the rows of each table.

    `release`: of the sources, or UNRELEASED.
    """

    sources: str
    date: str
    tables: dict[str, list[list[str]]]
    release: str = UNRELEASED

    def cell(self, name: str, row: str, column: int = -1) -> str:
        """A cell of the row of a table that begins with `row`. Raises StopIteration if there is none."""
        return next(cells for cells in self.tables[name] if cells[0] == row)[column]


def published(results: Results) -> Published:
    """The tables of these results."""
    tables = {name: [list(row) for row in rows(results)] for name, rows in TABLES.items()}
    return Published(results.get("sources", ""), results["date"], tables)


def blocks(results: Published) -> dict[str, str]:
    """The generated blocks of docs/performance.md: the tables by their names, `measured` and `missed`."""
    found = {name: table(rows) for name, rows in results.tables.items()}
    missed = _missed(results.tables["goals"][1:])
    return found | {"measured": measured(results.sources, results.date, results.release), "missed": missed}


def summary(figures: Results, objects: int) -> str:
    """One line with the ratios of a round, while the benchmark runs."""
    created = [f"{name} {_ratio([figures], f'{name}, s')}" for name in ("children accepted", "status current")]
    wave = [figures["scale wave"]]
    return (
        f"relative to the same requests: {', '.join(created)}; "
        f"scale wave {_ratio(wave, 'all done, s')}, {_writes_per_object(wave, objects)} writes per object"
    )


def quantile(values: Iterable[float], share: float) -> float:
    """The value that this share of all values does not exceed; 0 without values."""
    known = sorted(values)
    return known[min(len(known) - 1, int(share * len(known)))] if known else 0.0


def _machine(results: Results) -> list[Row]:
    return [("Property", "Value"), *results["machine"].items()]


def _storm(results: Results) -> list[Row]:
    rounds = results["rounds"]
    rows: list[Row] = [("Figure", *CLIENTS.values())]
    for name, unit_format in (
        ("objects posted, s", "{:.1f} s"),
        ("children accepted, s", "{:.1f} s"),
        ("status current, s", "{:.1f} s"),
        ("CPU per object, ms", "{:.1f} ms"),
        ("RSS idle, MiB", "{:.0f} MiB"),
        ("RSS after, MiB", "{:.0f} MiB"),
    ):
        figures = [_median(rounds, client, name) for client in CLIENTS]
        rows.append((name.rpartition(",")[0], *(unit_format.format(each) if each else "–" for each in figures)))
    return [*rows, *(_latencies(rounds, name) for name in LATENCIES)]


def _scale_wave(results: Results) -> list[Row]:
    waves, count = [each["scale wave"] for each in results["rounds"]], results["objects"]
    rows: list[Row] = [("Figure", *SCALING.values())]
    for name, unit_format in (
        ("objects changed, s", "{:.1f} s"),
        ("children accepted, s", "{:.1f} s"),
        ("status current, s", "{:.1f} s"),
        ("CPU per object, ms", "{:.1f} ms"),
    ):
        figures = [_median(waves, client, name) for client in SCALING]
        rows.append((name.rpartition(",")[0], *map(unit_format.format, figures)))
    return [*rows, ("writes per object", *(_writes_per_object(waves, count, client) for client in SCALING))]


def _with_spec(results: Results, name: str) -> list[Row]:
    """The table of objects with another spec than the minimal one."""
    figures = results[name]
    rows: list[Row] = [("Figure", CLIENTS["ours"], CLIENTS["operator"], "relative")]
    for title, part, time, unit in (
        ("children accepted", figures, "children accepted, s", "s"),
        ("status current", figures, "status current, s", "s"),
        ("CPU per object", figures, "CPU per object, ms", "ms"),
        ("scale wave", figures["scale wave"], "all done, s", "s"),
    ):
        taken = [f"{part[client][time]:.1f} {unit}" for client in ("ours", "operator")]
        rows.append((title, *taken, _ratio([part], time)))
    return [*rows, ("writes while nothing changes", "–", str(figures["steady writes"]), "–")]


def _goals(results: Results) -> list[Row]:
    rounds = results["rounds"]
    waves, large = [each["scale wave"] for each in rounds], results["growth"]["operator"]
    accepted = _median(rounds, "operator", "children accepted, s")
    idle = {client: _pooled(rounds, client, "single object idle, s") for client in CLIENTS}
    storm = _pooled(rounds, "operator", "second object in the storm, s")
    cpu = _median(rounds, "operator", "CPU, s")
    rows: list[Row] = [
        ("Figure", "Goal", "Measured"),
        ("children accepted, relative to the same requests", "≤ 1.2 ×", _ratio(rounds, "children accepted, s")),
        ("children accepted, relative to plain creates", "≤ 1.5 ×", _ratio(rounds, "children accepted, s", "plain")),
        ("status current, relative to the same requests", "≤ 1.3 ×", _ratio(rounds, "status current, s")),
        ("scale wave, relative to the same requests", "≤ 1.15 ×", _ratio(waves, "all done, s")),
        ("scale wave: writes per object", "2", _writes_per_object(waves, results["objects"])),
        *_autoscaler_goals(results["autoscaler"]),
        _relative_to_baseline("single object idle, p50", "≤ 1.5 ×", idle, 0.5),
        _relative_to_baseline("single object idle, p99", "≤ 3 ×", idle, 0.99),
        ("second object in the storm, p99", "≤ 1 s", f"{quantile(storm, 0.99):.2f} s"),
        ("CPU per object created", "≤ 4.5 ms", f"{_median(rounds, 'operator', 'CPU per object, ms'):.1f} ms"),
        ("CPU per object created, relative to the same requests", "≤ 2.6 ×", _ratio(rounds, "CPU per object, ms")),
        ("RSS idle", "≤ 55 MiB", f"{_median(rounds, 'operator', 'RSS idle, MiB'):.0f} MiB"),
        ("RSS at 1,000 objects", "≤ 72 MiB", f"{_median(rounds, 'operator', 'RSS after, MiB'):.0f} MiB"),
        ("RSS at 5,000 objects", "≤ 130 MiB", f"{large['RSS after, MiB']:.0f} MiB"),
        ("writes in steady state", "0", _maximum(rounds, lambda each: each["steady writes"])),
        ("restart with 1,000 objects: writes", "0", _maximum(rounds, lambda each: each["restart"]["writes"])),
        ("restart with 1,000 objects: current in", "≤ 3 s", f"{_median(rounds, 'restart', 'current, s'):.1f} s"),
        ("5,000 objects: time", "≤ 5.5 ×", f"{large['children accepted, s'] / accepted:.1f} ×"),
        ("5,000 objects: CPU", "≤ 5.5 ×", f"{large['CPU, s'] / cpu:.1f} ×"),
        *_review_goals(results["admission"]),
    ]
    return rows


def _missed(goals: Iterable[Sequence[str]]) -> str:
    """A sentence about the goals that are missed, with a list of them. The page cannot contradict its table then."""
    missed = [f"* {name}: {figure} (goal: {goal})" for name, goal, figure in goals if _misses(goal, figure)]
    if not missed:
        return "The operator meets all goals."
    return "\n".join([f"The operator misses {len(missed)} of these goals:", "", *missed, ""])


def _misses(goal: str, figure: str) -> bool:
    """Whether a figure exceeds its goal, or differs from a goal without `≤`. A goal in words is never missed."""
    wanted, found = NUMBER.search(goal), NUMBER.search(figure)
    if wanted is None or found is None:
        return False
    limit, value = float(wanted[0]), float(found[0])
    return value > limit if goal.startswith("≤") else value != limit


def _autoscaler_goals(figures: Results) -> list[Row]:
    writes, changes = figures["writes"], figures["changes"]
    children = sum(writes.get(what, 0) for what in CHILDREN)
    statuses = writes.get("patch memcacheds/status", 0)
    others = sum(writes.values()) - children - statuses + figures["rejected"]
    return [
        ("autoscaler: child writes per change", "1", f"{children / changes:.2f}"),
        ("autoscaler: status writes per change", "1", f"{statuses / changes:.2f}"),
        ("autoscaler: other and rejected writes", "0", str(others)),
    ]


def _relative_to_baseline(name: str, goal: str, idle: Mapping[str, list[float]], share: float) -> Row:
    mine, theirs = quantile(idle["operator"], share), quantile(idle["ours"], share)
    return (name, goal, f"{mine / theirs:.2f} × ({1000 * mine:.0f} ms)")


def _review_goals(figures: Results) -> list[Row]:
    idle, storm = figures["validate, idle, s"], figures["validate, storm, s"]
    return [
        ("validating review: CPU", "≤ 200 µs", f"{figures['validate, CPU per review, µs']:.0f} µs"),
        ("mutating review: CPU", "≤ 190 µs", f"{figures['mutate, CPU per review, µs']:.0f} µs"),
        ("review idle, p50", "≤ 0.5 ms", f"{1000 * quantile(idle, 0.5):.2f} ms"),
        ("review idle, p99", "≤ 2 ms", f"{1000 * quantile(idle, 0.99):.2f} ms"),
        ("review in the storm, p99", "≤ 15 ms", f"{1000 * quantile(storm, 0.99):.1f} ms"),
        ("reviews per second and core", "–", f"{figures['reviews per second and core']:.0f}"),
        ("admission: RSS", "≤ 50 MiB", f"{figures['RSS after many, MiB']:.0f} MiB"),
        (
            "admission: RSS grows in 100,000 reviews",
            "flat",
            f"{figures['RSS after many, MiB'] - figures['RSS before, MiB']:+.1f} MiB",
        ),
    ]


def _writes(results: Results) -> list[Row]:
    rounds, count = results["rounds"], results["objects"]
    kwok = results["cluster"]["operator"]
    scaled = results["autoscaler"]
    scenarios: dict[str, tuple[Mapping[str, int], int]] = {
        "create": (rounds[-1]["operator"]["writes"], count),
        "create, until available": (kwok["writes"], count),
        "scale": (rounds[-1]["scale wave"]["operator"]["writes"], count),
        "scale, until available": (kwok["scale"]["writes"], count),
        "scale by an autoscaler": (scaled["writes"], scaled["changes"]),
        "first change of the image": (rounds[-1]["first change"]["writes"], count),
        "second change of the image": (rounds[-1]["second change"]["writes"], count),
    }
    rows: list[Row] = [("writes per object", *WRITES, "all")]
    for name, (found, changes) in scenarios.items():
        each = [f"{found.get(what, 0) / changes:.2f}" for what in WRITES]
        rows.append((name, *each, f"{sum(found.values()) / changes:.2f}"))
    return rows


def _operator(results: Results) -> list[Row]:
    rounds, large, kwok = results["rounds"], results["growth"], results["cluster"]["operator"]
    rows: list[Row] = [
        ("Figure", "1,000 objects", "5,000 objects"),
        (
            "children accepted",
            f"{_median(rounds, 'operator', 'children accepted, s'):.1f} s",
            f"{large['operator']['children accepted, s']:.1f} s",
        ),
        (
            "CPU of the storm",
            f"{_median(rounds, 'operator', 'CPU, s'):.1f} s",
            f"{large['operator']['CPU, s']:.1f} s",
        ),
        (
            "RSS after the storm",
            f"{_median(rounds, 'operator', 'RSS after, MiB'):.0f} MiB",
            f"{large['operator']['RSS after, MiB']:.0f} MiB",
        ),
        (
            "restart: current in",
            f"{_median(rounds, 'restart', 'current, s'):.1f} s",
            f"{large['restart']['current, s']:.1f} s",
        ),
        ("restart: writes", _maximum(rounds, lambda each: each["restart"]["writes"]), f"{large['restart']['writes']}"),
        (
            "restart: RSS",
            f"{_median(rounds, 'restart', 'RSS, MiB'):.0f} MiB",
            f"{large['restart']['RSS, MiB']:.0f} MiB",
        ),
        (
            "first / second change of all images",
            f"{_median(rounds, 'first change', 'all done, s'):.1f} / "
            f"{_median(rounds, 'second change', 'all done, s'):.1f} s",
            "–",
        ),
        ("takeover after SIGTERM", "–", f"{large['takeover']['after SIGTERM, s']:.1f} s"),
        ("takeover after SIGKILL", "–", f"{large['takeover']['after SIGKILL, s']:.1f} s"),
        ("a tenth of the objects: autoscaled every", f"{results['autoscaler']['period, s']:.1f} s", "–"),
        ("all controllers: all available in", f"{kwok['all available, s']:.0f} s", "–"),
        ("all controllers: CPU per object", f"{kwok['CPU per object, ms']:.1f} ms", "–"),
        ("all controllers: RSS", f"{kwok['RSS, MiB']:.0f} MiB", "–"),
        ("all controllers: steady writes", f"{kwok['steady writes']}", "–"),
    ]
    return rows


def _admission(results: Results) -> list[Row]:
    figures = results["admission"]
    rows: list[Row] = [("Review", "p50", "p99", "max", "CPU per review")]
    for name, kind, load in (
        ("validating, idle", "validate", "idle"),
        ("mutating, idle", "mutate", "idle"),
        ("validating, in the storm", "validate", "storm"),
    ):
        taken = figures[f"{kind}, {load}, s"]
        times = [f"{1000 * each:.2f} ms" for each in (quantile(taken, 0.5), quantile(taken, 0.99), max(taken))]
        rows.append((name, *times, f"{figures[f'{kind}, CPU per review, µs']:.0f} µs" if load == "idle" else "–"))
    return rows


def _median(rounds: Sequence[Results], client: str, name: str) -> float:
    return median(each[client][name] for each in rounds)


def _ratio(rounds: Sequence[Results], name: str, baseline: str = "ours") -> str:
    """The operator's figure relative to a baseline client's in the same round, as the median of all rounds."""
    return f"{median(each['operator'][name] / each[baseline][name] for each in rounds):.2f} ×"


def _writes_per_object(waves: Sequence[Results], objects: int, client: str = "operator") -> str:
    """The largest number of all rounds."""
    return f"{max(sum(each[client]['writes'].values()) for each in waves) / objects:.2f}"


def _pooled(rounds: Sequence[Results], client: str, name: str) -> list[float]:
    return [value for each in rounds for value in each[client][name]]


def _latencies(rounds: Sequence[Results], name: str) -> Row:
    pooled = [_pooled(rounds, client, name) for client in CLIENTS]
    times = [f"{1000 * quantile(each, 0.5):.0f} / {1000 * quantile(each, 0.99):.0f} ms" for each in pooled]
    return (f"{name.rpartition(',')[0]}, p50 / p99", *times)


def _maximum(rounds: Sequence[Results], of: Callable[[Results], int]) -> str:
    return str(max(map(of, rounds)))


TABLES: dict[str, Callable[[Results], list[Row]]] = {
    "machine": _machine,
    "goals": _goals,
    "storm": _storm,
    "scale wave": _scale_wave,
    "every field": partial(_with_spec, name="fields"),
    "slots": partial(_with_spec, name="slots"),
    "writes": _writes,
    "operator": _operator,
    "admission": _admission,
}
"""The rows of each table, the first of which is the heading, by the name of its block in docs/performance.md."""
