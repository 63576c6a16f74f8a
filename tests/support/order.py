"""The order of tests: long ones first."""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")


def arrange(items: list[pytest.Item]) -> None:
    """Let each worker start with long tests, so that none waits for them at the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = balanced(items, [_seconds(item) for item in items], workers)


def balanced(tests: Sequence[T], seconds: Sequence[float], workers: int) -> list[T]:
    """The tests in an order that gives the long ones to all workers, as each begins with a part of the list.

    `seconds` are those of long tests, 0 for the others.
    """
    by_time = sorted(zip(seconds, tests, strict=True), key=lambda pair: -pair[0])
    long = [test for time, test in by_time if time]
    short = [test for time, test in by_time if not time]
    ordered: list[T] = []
    for worker in range(workers):
        first, end = long[worker::workers], len(tests) * (worker + 1) // workers
        count = max(0, end - len(ordered) - len(first))
        ordered += [*first, *short[:count]]
        short = short[count:]
    return [*ordered, *short]


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.args[0]) if mark else 0.0
