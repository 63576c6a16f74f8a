"""The ghost list, compared with a plain list, and the histogram."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_agent.insight.ghosts import Ghosts
from memcached_agent.insight.histogram import STEPS, TURNOVER, Histogram

CAPACITY = 16
STEPS_OF_A_LIST = st.lists(
    st.tuples(st.sampled_from(["push", "push", "push", "remove", "thin"]), st.integers(0, 40), st.integers(1, 99)),
    max_size=200,
)


class PlainList:
    """What a ghost list is: pairs of keys and (size, expiration), the latest first."""

    def __init__(self) -> None:
        self.items: dict[int, tuple[int, int]] = {}

    def push(self, key: int, size: int, expires: int) -> None:
        """Add at the front."""
        self.items.pop(key, None)
        self.items = {key: (size, expires), **self.items}

    def remove(self, key: int) -> int | None:
        """The sizes in front of the key."""
        if key not in self.items:
            return None
        before = list(self.items)[: list(self.items).index(key)]
        distance = sum(self.items[each][0] for each in before)
        del self.items[key]
        return distance


@given(STEPS_OF_A_LIST)
def test_list_is_that_of_a_plain_list(steps: list[tuple[str, int, int]]) -> None:
    ghosts, plain = Ghosts(CAPACITY), PlainList()
    for step, key, size in steps:
        if step == "thin" or ghosts.full:
            ghosts.thin(key, 41)
            plain.items = {each: kept for each, kept in plain.items.items() if each % 41 < key}
        if step == "push" and not ghosts.full:
            ghosts.push(key, size, 2 * size)
            plain.push(key, size, 2 * size)
        elif step == "remove":
            found = ghosts.remove(key)
            assert (found and found[1]) == plain.remove(key)
        assert (len(ghosts), ghosts.size) == (len(plain.items), sum(size for size, _ in plain.items.values()))


def test_a_removed_ghost_has_its_size_and_expiration() -> None:
    ghosts = Ghosts(2)
    ghosts.push(1, 10, 99)
    ghosts.push(2, 20, 98)
    assert ghosts.full
    assert ghosts.remove(1) == ((1, 10, 99), 20)
    assert ghosts.remove(1) is None


WIDTH = 100.0
"""Bytes of a bin."""


def histogram(*listed: float) -> Histogram:
    """A histogram of three bins, after evictions that made the list so long."""
    found = Histogram(WIDTH * STEPS, 3)
    for size in listed:
        found.evict(0.0, size)
    return found


SHARES = [
    pytest.param(300, [1, 1, 1, None], [0.75, 0.75, 0.75], id="all in the first bin"),
    pytest.param(300, [50, 150, 250, None], [0.25, 0.5, 0.75], id="one in each bin"),
    pytest.param(300, [99, 100, 300, 9000], [0.25, 0.5, 0.5], id="edges of bins, and behind them"),
    pytest.param(250, [50, 150, 250, None], [0.25, 0.5], id="two bins are ready"),
    pytest.param(99, [50, None], [], id="no bin is ready"),
]


@pytest.mark.parametrize(("listed", "distances", "expected"), SHARES)
def test_share_of_items_that_would_have_been_hits(
    listed: float, distances: list[float | None], expected: list[float]
) -> None:
    found = histogram(listed)
    for distance in distances:
        found.store(2.0, distance)
    assert found.shares() == pytest.approx(expected)
    assert found.stores(1) == (8 if expected else 0)


def test_bin_counts_from_the_time_when_the_list_reaches_it() -> None:
    found = histogram(100)
    found.store(1, 50)
    found.store(1, None)
    found.evict(0, 200)
    found.store(1, 150)
    assert found.shares() == pytest.approx([1 / 3, 1 / 3 + 1])
    assert (found.stores(1), found.stores(2), found.stores(3)) == (3, 1, 0)


def test_list_that_no_longer_grows_has_the_whole_working_set() -> None:
    found = histogram()
    found.evict(TURNOVER * 2 * WIDTH, 10)
    found.store(1, 150)
    assert found.shares() == [0, 1]
