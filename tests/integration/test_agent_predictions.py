"""Predicted hit ratios are those of memcacheds that really have more memory."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import accumulate
from pathlib import Path
from typing import Final

import pytest

from corners.client import Client
from integration.watch import Watch
from support.memcacheds import memcached
from support.ports import free_port

MEMORY: Final = 8
"""MiB of the memcached whose hit ratios are predicted."""
LARGER: Final = (1.5, 2.0)
KEYS, EXPONENT = 75_000, 0.8
"""Of a Zipf distribution. About a third of the gets are misses."""
FILL, SETTLE, MEASURE = 100_000, 100_000, 300_000
"""Gets that fill the memory as fast as they can, then let memcached's lists settle, then are measured."""
RATE: Final = 3000.0
"""Gets per second after the first. Faster, evicted items are younger than memcached's clock can tell apart."""
BATCH: Final = 100
ERROR: Final = 0.02
"""The largest difference of a predicted ratio, from 0 to 1 (docs/insight.md)."""


class Cache:
    """A memcached whose clients store what they miss."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.hits = self.gets = 0

    def look_up(self, keys: Sequence[int]) -> None:
        """Get the keys, then store those that were missing."""
        reply = self._client.request(b"".join(b"mg %d\r\n" % key for key in keys) + b"mn\r\n", b"MN\r\n")
        missing = [key for key, line in zip(keys, reply.split(), strict=False) if line != b"HD"]
        stored = b"".join(b"ms %d 400 q\r\n%b\r\n" % (key, bytes(400)) for key in {*missing})
        assert self._client.request(stored + b"mn\r\n", b"MN\r\n") == b"MN\r\n"
        self.gets += len(keys)
        self.hits += len(keys) - len(missing)


def drawn(number: int) -> Iterator[Sequence[int]]:
    """The same keys in each run, in batches."""
    chance, weights = random.Random(39), list(accumulate(rank**-EXPONENT for rank in range(1, KEYS + 1)))  # noqa: S311
    for _ in range(0, number, BATCH):
        yield chance.choices(range(KEYS), cum_weights=weights, k=BATCH)


@pytest.mark.nightly
def test_predictions_are_the_ratios_of_larger_memcacheds(root: Path) -> None:
    with ExitStack() as stack:
        sizes = (MEMORY, *(round(MEMORY * factor) for factor in LARGER))
        servers = [stack.enter_context(memcached(root, free_port(), "-m", str(size))) for size in sizes]
        caches = [Cache(stack.enter_context(closing(each.connect()))) for each in servers]
        watch, began = None, time.monotonic()
        for number, keys in enumerate(drawn(FILL + SETTLE + MEASURE)):
            if number * BATCH == FILL + SETTLE:
                watch = Watch(servers[0].port)
                for each in caches:
                    each.hits = each.gets = 0
            for each in caches:
                each.look_up(keys)
            if number * BATCH < FILL:
                began = time.monotonic()
            time.sleep(max(0.0, began + (number * BATCH - FILL) / RATE - time.monotonic()))
        assert watch
        result = watch.result()
    assert result.quality == "good"
    predicted = {point.memory: point.hit_ratio for point in result.larger}
    for factor, each in zip(LARGER, caches[1:], strict=True):
        assert predicted[factor] == pytest.approx(each.hits / each.gets, abs=ERROR)
    assert caches[-1].hits > 1.05 * caches[0].hits
