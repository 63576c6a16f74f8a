"""What the corner tests send, without memcached."""

import re

import pytest

from corners import loads
from corners.loads import batches, items, last_doubling

KEY = re.compile(rb"^ms (\S+) (\d+) q\r\n", re.MULTILINE)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (9_999, 1), (10_000, 1), (25_000, 1), (50, 100_000), (3, 2**22)])
def test_batches_store_as_many_different_items(count: int, size: int) -> None:
    sent = b"".join(batches(count, size, "a"))
    found = KEY.findall(sent)
    assert len({key for key, _ in found}) == len(found) >= count
    assert {int(length) for _, length in found} == {size}
    assert len(sent) == sum(len(f"ms {key.decode()} {size} q\r\n") + size + 2 for key, _ in found)
    assert set(KEY.findall(b"".join(batches(count, size, "b")))).isdisjoint(found)


@pytest.mark.parametrize(
    ("memory", "count"),
    [(2, 98_304), (10, 98_304), (19, 196_608), (64, 393_216), (72, 393_216), (73, 786_432), (590, 6_291_456)],
)
def test_last_doubling_is_the_largest_that_the_cache_reaches(memory: int, count: int) -> None:
    assert last_doubling(memory) == count


@pytest.mark.parametrize(("memory", "size", "count"), [(2, 1, 21_844), (64, 2**20, 64), (64, 2**27, 1)])
def test_number_of_items_that_fit(memory: int, size: int, count: int) -> None:
    assert items(memory, size) == count
    assert loads.SMALLEST_ITEMS_PER_PAGE * 96 <= loads.MEBIBYTE
