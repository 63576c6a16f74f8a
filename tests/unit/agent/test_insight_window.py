"""A window: its prediction, compared with caches that are really larger, and its quality."""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, cycle, islice

import pytest

from memcached_agent.insight.counters import Counters
from memcached_agent.insight.curve import larger
from memcached_agent.insight.lines import ALL
from memcached_agent.insight.window import MAX_RATE, MIN_STORES, QUALITIES, Quality, Result, Window

from .evicting import CHUNKS, STARTED, LruCache, eviction, store

ITEMS = 400
GETS = 20_000
SECONDS = 60.0
Keys = Sequence[int]


def zipf(gets: int, exponent: float = 0.8) -> Keys:
    """Keys of a Zipf distribution; ten times as many as fit into the cache."""
    number = 10 * ITEMS
    weights = list(accumulate(rank**-exponent for rank in range(1, number + 1)))
    return random.Random(7).choices(range(number), cum_weights=weights, k=gets)  # noqa: S311 - not a secret


def loop(gets: int, factor: float = 1.5) -> Keys:
    """All keys in turn: so many times as many as fit."""
    return list(islice(cycle(range(round(factor * ITEMS))), gets))


def measured(keys: Keys, factor: float) -> float:
    """The hit ratio of the second half, with a cache that is so much larger."""
    cache = LruCache(int(factor * ITEMS))
    cache.look_up(keys[: len(keys) // 2])
    hits, gets = cache.hits, cache.gets
    cache.look_up(keys[len(keys) // 2 :])
    return (cache.hits - hits) / (cache.gets - gets)


def predicted(keys: Keys, capacity: int, writes: Callable[[int], Iterable[int]] = lambda _: ()) -> Result:
    """What a window shows for the second half. `writes`: keys that are stored without a get, after each get."""
    cache = LruCache(ITEMS)
    cache.look_up(keys[: len(keys) // 2])
    cache.taken()
    window = Window(cache.counters(), CHUNKS, capacity=capacity)
    for number, key in enumerate(keys[len(keys) // 2 :]):
        cache.look_up([key])
        for each in writes(number):
            cache.store(each)
    window.feed(cache.taken())
    return window.result(cache.counters(), SECONDS)


WORKLOADS = [
    pytest.param(zipf, 2**13, 0.002, id="Zipf, every key"),
    pytest.param(zipf, 2**10, 0.04, id="Zipf, a sample"),  # of keys that differ in each run
    pytest.param(partial(zipf, exponent=0.5), 2**10, 0.04, id="Zipf 0.5, a sample"),
    pytest.param(loop, 2**13, 0.0, id="loop"),
]


@pytest.mark.parametrize(("keys", "capacity", "tolerance"), WORKLOADS)
def test_prediction_is_the_ratio_of_larger_caches(keys: Callable[[int], Keys], capacity: int, tolerance: float) -> None:
    drawn = keys(2 * GETS)
    result = predicted(drawn, capacity)
    assert result.quality == "good"
    assert result.hit_ratio == measured(drawn, 1)
    assert [point.memory for point in result.larger] == [1.25, 1.5, 2.0, 4.0]
    for point in result.larger:
        if not point.cliff:
            assert point.hit_ratio == pytest.approx(measured(drawn, point.memory), abs=tolerance + 0.005)


@pytest.mark.parametrize("factor", [1.45, 1.5, 1.55])
def test_cliff_is_reported(factor: float) -> None:
    """With a little less memory than all keys of the loop need, none is a hit."""
    assert [point.cliff for point in predicted(loop(2 * GETS, factor), 2**13).larger] == [False, True, False, False]


def test_updates_of_present_items_change_nothing() -> None:
    """They have lines, but no item is missing because of them."""
    plain, updated = predicted(zipf(2 * GETS), 2**13), predicted(zipf(2 * GETS), 2**13, lambda _: [0, 0, 0])
    for one, other in zip(plain.larger, updated.larger, strict=True):
        assert one.hit_ratio == pytest.approx(other.hit_ratio, abs=0.01)


BEGIN = Counters(1000, 500, 500, 500, 100, 50, 7, ITEMS * 100, 60, 0.4)
END = BEGIN._replace(gets=2000, hits=1100, misses=900, inserted=900, evictions=500, cold_hits=150)
ENOUGH = 4 * ITEMS


def lines(number: int = ENOUGH) -> list[bytes]:
    """Evictions and stored items."""
    return [line for gid in range(number) for line in (eviction(gid, gid), store(gid, f"new{gid}"))]


MISSED = [
    pytest.param(900, 0.04, id="each new key was missed"),
    pytest.param(1300, 0.02, id="half of the new keys were not missed"),
    pytest.param(700, 0.04, id="more misses than new keys"),
    pytest.param(400, 0.04, id="fewer keys than before"),
]


@pytest.mark.parametrize(("inserted", "gain"), MISSED)
def test_items_that_no_get_missed_are_left_out(inserted: int, gain: float) -> None:
    """A tenth of 400 stored items was in the list. Between the samples, there were 400 misses of 1,000 gets."""
    points = larger(BEGIN, END._replace(inserted=inserted), [0.1] * 400, 400)
    assert [point.hit_ratio for point in points] == pytest.approx([0.6 + gain] * 4)


QUALITY: list[tuple[str, Quality, Counters, list[bytes], float]] = [
    ("good", "good", END, lines(), SECONDS),
    ("memcached was restarted", "changed", END._replace(gets=10, hits=5), lines(), SECONDS),
    ("its counters were reset", "changed", END._replace(evictions=3), lines(), SECONDS),
    ("its memory changed", "changed", END._replace(memory=2 * BEGIN.memory), lines(), SECONDS),
    ("too many lines", "busy", END, [eviction(1, 1)] * (MAX_RATE + 1), 1.0),
    ("just not too many", "good", END, lines(), 2 * ENOUGH / MAX_RATE),
    ("lost by memcached's workers", "lost", END._replace(lost=BEGIN.lost + ENOUGH), lines(), SECONDS),
    ("lost by its connection", "lost", END, [*lines(), b"skipped=%d" % ENOUGH], SECONDS),
    ("few lost", "good", END._replace(lost=BEGIN.lost + 1), lines(), SECONDS),
    ("nothing evicted", "idle", END._replace(evictions=BEGIN.evictions), [], SECONDS),
    ("few lines", "short", END, lines(ITEMS // 5), SECONDS),
    ("few items since the list was long enough", "short", END, lines(ITEMS // 4 + MIN_STORES), SECONDS),
    ("no gets", "short", END._replace(gets=BEGIN.gets), lines(), SECONDS),
]


@pytest.mark.parametrize(
    ("quality", "end", "fed", "seconds"), [case[1:] for case in QUALITY], ids=[case[0] for case in QUALITY]
)
def test_quality(quality: Quality, end: Counters, fed: list[bytes], seconds: float) -> None:
    window = Window(BEGIN, CHUNKS)
    window.feed(fed)
    result = window.result(end, seconds)
    assert result.quality == quality
    assert bool(result.larger) == (quality == "good"), "a poor window has no predictions"
    assert result.smaller is None or quality == "good"


def test_every_quality_but_unavailable_is_that_of_a_window() -> None:
    assert {case[1] for case in QUALITY} == set(QUALITIES) - {"unavailable"}


def test_smaller_memory() -> None:
    """Without the 40 % of the memory that are evicted next, the hits of these items are misses."""
    window = Window(BEGIN, CHUNKS)
    window.feed(lines())
    result = window.result(END, SECONDS)
    assert result.smaller == (0.6, pytest.approx(0.6 - 0.1), False)
    assert window.result(END._replace(cold_share=0.0), SECONDS).smaller is None
    assert window.result(END._replace(touches=10), SECONDS).smaller == (0.6, pytest.approx(0.6 - 0.11), False)
    assert window.result(END._replace(touches=11), SECONDS).smaller is None, "the segment of these hits is not known"


def test_points_that_are_not_covered_are_left_out() -> None:
    window = Window(BEGIN, CHUNKS)
    window.feed(lines(ITEMS + MIN_STORES))
    assert not window.complete
    assert [point.memory for point in window.result(END, SECONDS).larger] == [1.25, 1.5]


def test_expired_ghosts_are_no_hits() -> None:
    """Half of the items expire between their eviction and the next time that they are stored."""
    window = Window(BEGIN, CHUNKS)
    window.feed(lines())
    for gid in range(ENOUGH, ENOUGH + 2000):
        window.feed([eviction(gid, gid, ttl=5 if gid % 2 else 50), store(gid, gid, at=STARTED + 8)])
    end = BEGIN._replace(gets=11_000, hits=5500, misses=4600, inserted=4600, evictions=5000)
    assert window.result(end, SECONDS).larger[0].hit_ratio == pytest.approx(0.5 + 1000 / 10_000, abs=0.001)


def test_list_stays_within_its_capacity() -> None:
    window = Window(BEGIN, CHUNKS, capacity=64)
    window.feed(lines(5000))
    assert window.threshold <= ALL // 64
