"""Tables of docs/insight.md, from the outcomes of a run. Pure functions."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean
from typing import Final

import msgspec

from insight.campaign import LARGER, Outcome
from insight.cost import Cost, Round, interval
from memcached_agent.insight.schedule import PAUSES
from pages.blocks import table
from pages.figures import UNRELEASED, measured

Row = Sequence[str]
GOAL: Final = 0.02
"""The largest error of a hit ratio, from 0 to 1, at sizes that are not at a cliff."""


class Published(msgspec.Struct, frozen=True):
    """What docs/insight-results.json contains: the digest of the sources, the date, memcached's version, outcomes.

    `release`: of the sources, or UNRELEASED.
    """

    sources: str
    date: str
    memcached: str
    gets: int
    rate: float
    outcomes: list[Outcome]
    cost: list[Cost]
    release: str = UNRELEASED


def blocks(results: Published) -> dict[str, str]:
    """The generated blocks of docs/insight.md."""
    return {
        "measured": measured(results.sources, results.date, results.release),
        "errors": table(_errors(results.outcomes)),
        "smaller": table(_smaller(results.outcomes)),
        "cost": table(_cost(results.cost)),
    }


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """The predictions that miss the goal, or are missing. A cliff that is reported is none."""
    found = [f"{each.workload}: the window is {each.quality}" for each in outcomes if each.quality != "good"]
    for each in outcomes:
        for name in map(_name, LARGER):
            error = _error(each, name)
            if error is None:
                found.append(f"{each.workload}: no prediction for {name} times the memory")
            elif abs(error) > GOAL and name not in each.cliffs:
                found.append(f"{each.workload}: {100 * error:+.1f} points with {name} times the memory")
    return found


def between(measured: dict[str, float], size: float) -> float | None:
    """The measured hit ratio at a size between two measured ones, on the line between them."""
    known = sorted((float(name), ratio) for name, ratio in measured.items())
    for (low, below), (high, above) in pairwise(known):
        if low <= size <= high:
            return below + (above - below) * (size - low) / (high - low)
    return None


def _errors(outcomes: Sequence[Outcome]) -> list[Row]:
    rows: list[Row] = [
        ("Workload", "Hit ratio", *(f"+{100 * (factor - 1):.0f} %" for factor in LARGER), "Lines", "Sample")
    ]
    for each in outcomes:
        cells = [_cell(each, _name(factor)) for factor in LARGER]
        rows.append(
            (each.workload, _percent(each.measured["1"]), *cells, f"{each.lines:,}", f"1/{1 / each.sample:.0f}")
        )
    return rows


def _cell(outcome: Outcome, name: str) -> str:
    error = _error(outcome, name)
    if error is None:
        return f"none (measured {_percent(outcome.measured[name])})"
    cliff = ", cliff" if name in outcome.cliffs else ""
    return f"{_percent(outcome.predicted[name])} ({100 * error:+.1f}{cliff})"


def _smaller(outcomes: Sequence[Outcome]) -> list[Row]:
    rows: list[Row] = [("Workload", "Size", "Predicted", "Measured")]
    for each in outcomes:
        for name, ratio in each.predicted.items():
            if float(name) < 1:
                real = between(each.measured, float(name))
                rows.append((each.workload, name, _percent(ratio), "–" if real is None else _percent(real)))
    return rows


def _cost(costs: Sequence[Cost]) -> list[Row]:
    rows: list[Row] = [("Gets per second", "Misses", "Not watched", "Watched", "Difference", "Average", "Agent")]
    for each in costs:
        both = each.without + each.watched
        pairs = zip(each.without, each.watched, strict=True)
        more = [100 * (watched.memcached / without.memcached - 1) for without, watched in pairs]
        cells = (_difference(more), _difference([percent / (1 + PAUSES) for percent in more]))
        times = (_micros(each.without), _micros(each.watched))
        agent = _agent(each.watched)
        misses = _percent(mean(each.misses for each in both))
        rows.append((f"{mean(each.rate for each in both):,.0f}", misses, *times, *cells, agent))
    return rows


def _agent(rounds: Sequence[Round]) -> str:
    """The share of a processor, and the private memory."""
    percent = mean(each.agent * each.rate for each in rounds) / 1e4
    return f"{percent:.1f} %, {max(each.memory for each in rounds) / 2**20:.1f} MiB"


def _difference(percents: Sequence[float]) -> str:
    found = interval(percents)
    return f"{found.mean:+.1f} ± {found.half:.1f} %"


def _micros(rounds: Sequence[Round]) -> str:
    found = interval([each.memcached for each in rounds])
    return f"{found.mean:.1f} ± {found.half:.1f} µs"


def _error(outcome: Outcome, name: str) -> float | None:
    """The difference of the prediction to the measured ratio; None without a prediction."""
    return outcome.predicted[name] - outcome.measured[name] if name in outcome.predicted else None


def _name(factor: float) -> str:
    return f"{factor:.4g}"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f} %"
