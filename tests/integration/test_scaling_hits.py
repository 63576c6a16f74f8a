"""The share of hits while the number of servers changes from 3 to 4, with and without phases.

It writes build/scaling.json: the shares, second by second. Copied to docs/scaling-results.json, `make generate` draws
the chart of docs/warm-scaling.md.
"""

import json
import math
import random
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import mean
from typing import IO, Final, cast

import pytest

from cluster.public import releases
from corners.server import Server
from memcached_operator.parts.ring import Phase
from support.memcacheds import memcached_root
from support.scaling.processes import memcacheds, phased, plain, proxy
from support.waiting import REQUEST

pytestmark = pytest.mark.nightly

RESULT: Final = Path(__file__).parents[2] / "build/scaling.json"
OLD: Final = 3
NEW: Final = 4
KEYS: Final = [b"session:%d" % number for number in range(3000)]
TTL: Final = (20, 40)
"""Seconds: the shortest and the longest time to live."""
RATE: Final = 750
"""Gets per second. A client stores each item that it misses."""
BATCH: Final = 75
WARM: Final = 60
"""Seconds before the measurement, until as many items expire as are stored."""
BEGIN: Final = 20
END: Final = 100
"""Seconds at which the size changes, and at which the measurement ends."""
ROLLOUT: Final = 3.0
"""Seconds in Prepare and in Finish."""
DURATIONS: Final[Mapping[str, float | None]] = {"plain": None, "short": 12.0, "long": 45.0}
"""Seconds of Move, by the name of a line: less than half, and more than the longest time to live."""


class Client:
    """A client of the present proxy, in a thread of its own. `shares`: of hits, by second."""

    def __init__(self, seed: int) -> None:
        self.port = 0
        self._random = random.Random(seed)  # noqa: S311
        self._counts = [[0, 0] for _ in range(END)]

    @property
    def shares(self) -> list[float]:
        """The share of hits in each second; that of the second before in one without gets, on a busy machine."""
        found = list[float]()
        for hits, gets in self._counts:
            found.append(round(hits / gets, 4) if gets else found[-1])
        return found

    def fill(self) -> None:
        """Store all keys, of which each has lived for some time."""
        with self._connection() as stream:
            self._store(stream, KEYS, shortest=1)

    def run(self, start: float) -> None:
        """Get keys until the end. `start`: on the monotonic clock. A closed connection is opened again."""
        batch, stream = -WARM * RATE // BATCH, self._connection()
        while (second := time.monotonic() - start) < END:
            try:
                self._step(stream, math.floor(second))
            except OSError:
                stream.close()
                stream = self._connection()
            batch += 1
            time.sleep(max(0.0, start + batch * BATCH / RATE - time.monotonic()))
        stream.close()

    def _step(self, stream: IO[bytes], second: int) -> None:
        keys = self._random.sample(KEYS, BATCH)
        missed = [key for key, hit in zip(keys, _get(stream, keys), strict=True) if not hit]
        if second >= 0:
            self._counts[second][0] += len(keys) - len(missed)
            self._counts[second][1] += len(keys)
        self._store(stream, missed, TTL[0])

    def _store(self, stream: IO[bytes], keys: Sequence[bytes], shortest: int) -> None:
        for key in keys:
            stream.write(b"set %s 0 %d 1\r\nx\r\n" % (key, self._random.randint(shortest, TTL[1])))
        stream.flush()
        for _ in keys:
            _line(stream)

    def _connection(self) -> IO[bytes]:
        with socket.create_connection(("127.0.0.1", self.port), REQUEST) as opened:
            return cast("IO[bytes]", opened.makefile("rwb"))


def _get(stream: IO[bytes], keys: Sequence[bytes]) -> Iterator[bool]:
    """Whether each key is there."""
    stream.write(b"".join(b"mg %s\r\n" % key for key in keys))
    stream.flush()
    return iter([_line(stream).startswith(b"HD") for _ in keys])


def _line(stream: IO[bytes]) -> bytes:
    line = stream.readline()
    if not line or line.startswith(b"SERVER_ERROR"):
        raise ConnectionError(line)
    return line


class Proxies:
    """The proxy that serves. A rollout starts the next one, and stops the one before it."""

    def __init__(self, root: Path, client: Client) -> None:
        self._root, self._client = root, client
        self._live = ExitStack()

    def serve(self, text: str) -> Server:
        """Replace the proxy by one with these routes."""
        following = ExitStack()
        found = following.enter_context(proxy(self._root, text))
        self._client.port = found.port
        self.close()
        self._live = following
        return found

    def close(self) -> None:
        """Stop the proxy."""
        self._live.close()


def measured(root: Path, name: str) -> list[float]:
    """The share of hits by second. `name`: one of DURATIONS."""
    client = Client(len(name))
    with memcacheds(root, NEW) as servers, ExitStack() as stack:
        ports = [server.port for server in servers]
        proxies = Proxies(root, client)
        stack.callback(proxies.close)
        proxies.serve(plain(ports, OLD))
        client.fill()
        start = time.monotonic() + WARM
        thread = threading.Thread(target=client.run, args=(start,))
        thread.start()
        for second, text in _rollouts(ports, DURATIONS[name]):
            time.sleep(max(0.0, start + second - time.monotonic()))
            proxies.serve(text)
        thread.join((WARM + END) * 4)
        assert not thread.is_alive()
    return client.shares


def _rollouts(ports: Sequence[int], duration: float | None) -> Iterator[tuple[float, str]]:
    """The routes of each rollout, and its second."""
    second = float(BEGIN)
    if duration is not None:
        times = {Phase.PREPARE: ROLLOUT, Phase.MOVE: duration, Phase.FINISH: ROLLOUT}
        for phase, seconds in times.items():
            yield second, phased(ports, OLD, NEW, phase)
            second += seconds
    yield second, plain(ports, NEW)


def test_phases_that_last_as_long_as_items_live_keep_the_hits() -> None:
    root = memcached_root(releases.VERSIONS[-1])
    with ThreadPoolExecutor(len(DURATIONS)) as threads:
        found = threads.map(partial(measured, root), DURATIONS)
        shares = dict(zip(DURATIONS, found, strict=True))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(shares))
    usual = mean(share for each in shares.values() for share in each[:BEGIN])
    lowest = {name: min(map(mean, zip(each[BEGIN:], each[BEGIN + 1 :], strict=False))) for name, each in shares.items()}
    assert lowest["plain"] < usual - 0.12
    assert lowest["short"] > lowest["plain"]
    assert lowest["long"] > usual - 0.06
