"""The options with which a suite (tools/suites/table.py) selects its tests of a folder."""

from collections.abc import Callable

import pytest

PARTS = ("smoke", "disruptive", "modes", "sweep")
"""Markers that name a part of a folder; the tests without one of them are the rest."""
SERVERS = ("newest", "oldest", "all")


def add_options(parser: pytest.Parser) -> None:
    """Add --part and --server."""
    group = parser.getgroup("suites")
    group.addoption("--part", choices=(*PARTS, "rest"), help="run only the tests with this marker; rest: with no such")
    group.addoption(
        "--server",
        choices=SERVERS,
        default="newest",
        help="API servers of the integration tests; oldest: only tests marked `server` (default: newest)",
    )


def selected(has_mark: Callable[[str], object], part: str | None, server: str) -> bool:
    """Whether a test with these markers runs."""
    own = next((each for each in PARTS if has_mark(each)), "rest")
    return part in (None, own) and (server != "oldest" or bool(has_mark("server")))


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that the options leave out."""
    part, server = config.getoption("part"), str(config.getoption("server"))
    kept = [item for item in items if selected(item.get_closest_marker, part, server)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
