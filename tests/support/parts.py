"""The options with which a suite (tools/suites/table.py) selects its tests of a folder."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from cluster.versions import KUBERNETES, NEWEST_KUBERNETES, OLDEST_KUBERNETES, SUPPORTED, minor

T = TypeVar("T")
PARTS = ("smoke", "disruptive", "modes", "nightly")
"""Markers that name a part of a folder: the first that a test has. The tests without one of them are the rest."""
SERVERS = {
    "default": (KUBERNETES,),
    "newest": (NEWEST_KUBERNETES,),
    "oldest": (OLDEST_KUBERNETES,),
    "all": SUPPORTED,
    **{minor(version): (version,) for version in SUPPORTED},
}
"""The versions of Kubernetes for each value of --server. The default is that of clusters with nodes: already built."""


def add_options(parser: pytest.Parser) -> None:
    """Add --part and --server."""
    group = parser.getgroup("suites")
    group.addoption("--part", choices=(*PARTS, "rest"), help="run only the tests with this marker; rest: with no such")
    group.addoption(
        "--server",
        choices=SERVERS,
        default="default",
        help="API servers of the integration tests; all but default: only tests marked `server`",
    )


def selected(has_mark: Callable[[str], object], part: str | None, server: str) -> bool:
    """Whether a test with these markers runs."""
    own = next((each for each in PARTS if has_mark(each)), "rest")
    return part in (None, own) and (server == "default" or bool(has_mark("server")))


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that the options leave out, and let each worker start with long tests."""
    part, server = config.getoption("part"), str(config.getoption("server"))
    kept = [item for item in items if selected(item.get_closest_marker, part, server)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = balanced(kept, [_seconds(item) for item in kept], workers)


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
