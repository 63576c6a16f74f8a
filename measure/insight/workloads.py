"""The workloads: which keys clients look up, how large their values are, and when they expire.

Each sequence of keys is that of a public trace, or drawn with a fixed seed, so that every run has the same.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice
from typing import Final

from insight import trace

SEED: Final = 39
SIZE: Final = 400
"""Bytes of a value, unless the workload has values of several sizes: with its key and header, a chunk of 480."""
LOOP_SHARE: Final = 1.5
"""The loop needs so many times the memory: a cliff at +50 %."""

Keys = Sequence[int]


@dataclass(frozen=True)
class Workload:
    """Clients get a key, and store it if it is missing.

    `memory`: MiB of the memcached whose curve is predicted. `keys`: the numbers of keys, for a number of gets.
    `size`, `ttl`: bytes and seconds of the item of a key; a TTL of 0 means none.
    """

    name: str
    memory: int
    keys: Callable[[int], Keys]
    size: Callable[[int], int] = lambda _: SIZE
    ttl: Callable[[int], int] = lambda _: 0


def zipf(exponent: float, number: int) -> Callable[[int], Keys]:
    """Keys of a Zipf distribution."""

    def drawn(gets: int) -> Keys:
        weights = list(accumulate(rank**-exponent for rank in range(1, number + 1)))
        return random.Random(SEED).choices(range(number), cum_weights=weights, k=gets)  # noqa: S311 - not a secret

    return drawn


def loop(number: int) -> Callable[[int], Keys]:
    """All keys in turn, again and again."""
    return lambda gets: list(islice(cycle(range(number)), gets))


def mixed_size(key: int) -> int:
    """Sizes with a log-normal distribution: a median of 300 bytes, 0.1 % above 10 kB."""
    return min(100_000, int(random.Random(key).lognormvariate(5.7, 1.1)))  # noqa: S311


def mixed_ttl(key: int) -> int:
    """A quarter of the keys each: 30 s, 2 min, 8 min, and no expiration."""
    return (30, 120, 480, 0)[random.Random(key + 1).randrange(4)]  # noqa: S311


PAGES: Final = 2184
"""Chunks of 480 bytes in a page of 1 MiB."""
TRACE: Final = Workload("recommendations", 16, trace.keys, lambda _: 350)
"""The trace has no sizes. With its long keys, the items have a chunk of 480 bytes, as those of most other workloads."""
WORKLOADS: Final = (
    *(Workload(f"Zipf {exponent}", 16, zipf(exponent, 150_000)) for exponent in (0.6, 0.8, 1.0)),
    Workload("Zipf 1.2", 8, zipf(1.2, 150_000)),  # with 16 MiB, few items are evicted within the time of a run
    Workload("loop", 16, loop(int(LOOP_SHARE * 16 * PAGES))),
    Workload("mixed sizes with TTLs", 32, zipf(0.9, 150_000), mixed_size, mixed_ttl),
    TRACE,
)
