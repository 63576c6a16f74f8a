"""The memory that a container needs: the minimum limit, the derived limit, and the cache derived from a limit."""

from decimal import Decimal
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_api.memcached import memory
from memcached_api.memcached.memory import Settings

MI = 2**20
CACHES = st.integers(memory.MIN_CACHE, memory.MAX_CACHE)
SETTINGS = st.builds(
    Settings,
    st.integers(28, memory.MAX_CONNECTIONS),
    st.integers(1, memory.MAX_THREADS),
    st.booleans(),
    st.integers(memory.MIN_HASHPOWER, memory.MAX_HASHPOWER),
    st.integers(0, 512 * MI),
)
MEASURED = {2: 43.1, 16: 57.6, 64: 108.8, 73: 124.6, 256: 313.2, 590: 722.5, 1180: 1405.2, 2350: 2757.0}
"""Mebibytes that a server with one connection used at most, by mebibytes of `-m`: docs/sizing-measurements.md."""
MEASURED_IN_FILES = {64: 69.4, 256: 283.4, 1024: 1126.8}
"""The same with the items in a file, of `-e`. The shell beside memcached needs SHELL more."""
SHELL = 1.4
ONE_CONNECTION = Settings(connections=1)


@pytest.mark.parametrize(
    ("cache", "settings", "minimum"),
    [
        (50 * MI, Settings(), 109 * MI),
        (1000 * MI, Settings(), 1230 * MI),
        (1000 * MI, Settings(connections=2048), 1238 * MI),
        (1000 * MI, Settings(threads=1), 1230 * MI),
        (1000 * MI, Settings(tls=True), 1316 * MI),
        (1000 * MI, Settings(connections=2048, tls=True), 1404 * MI),
        (1000 * MI, Settings(threads=12), 1231 * MI),
        (1000 * MI, Settings(hashpower=17), 1230 * MI),
        (1000 * MI, Settings(hashpower=18), 1232 * MI),
        (1000 * MI, Settings(hashpower=24), 1358 * MI),
        (10, Settings(connections=100), 42 * MI + 800 * 2**10 + 12),
        (70 * MI, Settings(), 128 * MI),
        (80 * MI, Settings(), 140 * MI),
    ],
)
def test_minimum_limit(cache: int, settings: Settings, minimum: int) -> None:
    assert ceil(memory.exact_minimum(cache, settings)) == minimum


@pytest.mark.parametrize(("megabytes", "peak"), MEASURED.items())
def test_minimum_limit_is_above_what_was_measured(megabytes: int, peak: float) -> None:
    assert ceil(memory.exact_minimum(megabytes * MI, ONE_CONNECTION)) > peak * MI


@pytest.mark.parametrize(("megabytes", "peak"), MEASURED_IN_FILES.items())
def test_minimum_limit_is_above_what_was_measured_with_items_in_a_file(megabytes: int, peak: float) -> None:
    assert ceil(memory.exact_minimum(megabytes * MI, ONE_CONNECTION)) > (peak + SHELL) * MI


@pytest.mark.parametrize(("cache", "limit"), [(64 * MI, 128 * MI), (100 * MI, 175636480), (1000 * MI, 1405 * MI)])
def test_default_limit_is_that_of_the_first_release(cache: int, limit: int) -> None:
    assert memory.default_limit(cache) == limit


def test_hash_table_is_part_of_the_derived_limit_and_the_derived_cache() -> None:
    table = Settings(hashpower=24)
    assert memory.default_limit(64 * MI, table) == int(1.25 * (1.1 * 64 + 16 + 8 + 128) * MI)
    assert memory.derived_cache(512 * MI) - memory.derived_cache(512 * MI, table) == 116 * MI


@given(CACHES, SETTINGS)
def test_default_limit_is_at_least_the_minimum(cache: int, settings: Settings) -> None:
    assert memory.default_limit(cache, settings) >= ceil(memory.exact_minimum(cache, settings))


@given(st.integers(2, 2**20), SETTINGS)
def test_cache_is_derived_from_the_smallest_limit_for_it(megabytes: int, settings: Settings) -> None:
    limit = ceil(memory.exact_limit_for(megabytes * MI, settings))
    assert memory.derived_cache(limit, settings) == megabytes * MI
    assert memory.derived_cache(limit - 1, settings) < megabytes * MI


@given(st.integers(2**26, 2**50), SETTINGS)
def test_derived_cache_fits_into_its_limit(limit: int, settings: Settings) -> None:
    cache = memory.derived_cache(limit, settings)
    if cache >= memory.MIN_CACHE:
        assert memory.needed(memory.NEED, cache, settings) <= limit


def test_derived_cache_of_a_huge_limit_is_the_largest_one() -> None:
    assert memory.derived_cache(Decimal("1e40")) == memory.MAX_CACHE


@pytest.mark.parametrize(("amount", "expected"), [(64 * MI, 64), (3 * MI - 1, 2), (10**9, 953)])
def test_megabytes_round_down(amount: int, expected: int) -> None:
    assert memory.megabytes(amount) == expected


@pytest.mark.parametrize(("amount", "text"), [(MI, "1Mi"), (MI + 1, "2Mi"), (0, "0Mi")])
def test_text_rounds_up(amount: int, text: str) -> None:
    assert memory.mebibytes_text(amount) == text
