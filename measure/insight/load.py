"""A client that sends the same requests to several memcacheds, as fast as they reply."""

import socket
import time
from collections.abc import Sequence
from math import inf
from typing import Final

from insight.workloads import Workload

BATCH: Final = 100
"""Gets that are sent together. Values that are missing are stored before the next ones."""
HIT: Final = ord("H")
STORED: Final = b"MN\r\n"
NO_MEMORY: Final = b"SERVER_ERROR out of memory storing object\r\n"
MAX_UNSTORED: Final = 0.001
"""The share of gets after which a value may not be stored. A batch of them is tolerated in any case."""
REPLY: Final = 4
"""Bytes of a reply without flags: `HD` for a hit, `EN` for a miss, `MN` after all values are stored."""


class Target:
    """A connection to one memcached. `hits`, `gets` and `unstored` values: since the last `reset`."""

    def __init__(self, port: int) -> None:
        self.hits = self.gets = self.unstored = 0
        self._socket = socket.create_connection(("127.0.0.1", port), 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(REPLY * (BATCH + 1))

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def reset(self) -> None:
        """Count from zero."""
        self.hits = self.gets = self.unstored = 0

    def send(self, data: bytes) -> None:
        """Send requests."""
        self._socket.sendall(data)

    def missing(self, count: int) -> list[int]:
        """The positions of the misses among `count` gets that were sent last."""
        found = self._receive(count)
        hits = found[::REPLY]
        misses = [position for position, first in enumerate(hits) if first != HIT]
        if bytes(found).count(b"\r\n") != count or bytes(hits).count(b"E") != len(misses):
            raise OSError(f"unexpected reply {bytes(found)!r}")
        self.gets += count
        self.hits += count - len(misses)
        return misses

    def done(self) -> None:
        """Wait until all values are stored. Raises OSError if one was not, unless memcached found no memory for it.

        memcached gives up if none of the few items that it could evict next is free, as can happen in a burst.
        """
        reply = b""
        while not reply.endswith(STORED):
            more = self._socket.recv(2**16)
            if not more:
                raise OSError("memcached closed the connection")
            reply += more
        found = reply.removesuffix(STORED)
        unstored = found.count(NO_MEMORY)
        if found != unstored * NO_MEMORY:
            raise OSError(f"a value was not stored: {reply!r}")
        self.unstored += unstored
        if self.unstored > max(BATCH, MAX_UNSTORED * self.gets):
            raise OSError(f"memcached found no memory for {self.unstored} values")

    def _receive(self, count: int) -> memoryview:
        view = memoryview(self._buffer)[: REPLY * count]
        received = 0
        while received < len(view):
            more = self._socket.recv_into(view[received:])
            if not more:
                raise OSError("memcached closed the connection")
            received += more
        return view


class Load:
    """Sends the keys of a workload. `batch`: how many gets at once, at most BATCH."""

    def __init__(self, workload: Workload, keys: Sequence[int], targets: Sequence[Target], batch: int = BATCH) -> None:
        self.batch = batch
        self._keys = keys
        self._targets = targets
        known = set(keys)
        self._gets = {key: b"mg k%d\r\n" % key for key in known}
        self._sets = {key: _set(key, workload) for key in known}

    def run(self, first: int, last: int, rate: float = inf) -> None:
        """Look up the keys with these numbers, and store those that are missing. `rate`: gets per second, at most."""
        began = time.monotonic()
        for start in range(first, last, self.batch):
            batch = self._keys[start : min(start + self.batch, last)]
            gets = b"".join([self._gets[key] for key in batch])
            for target in self._targets:
                target.send(gets)
            storing: list[Target] = []
            for target in self._targets:
                if missed := dict.fromkeys([batch[position] for position in target.missing(len(batch))]):
                    target.send(b"".join([*(self._sets[key] for key in missed), b"mn\r\n"]))
                    storing.append(target)
            for target in storing:
                target.done()
            time.sleep(max(0.0, began + (start + self.batch - first) / rate - time.monotonic()))


def _set(key: int, workload: Workload) -> bytes:
    ttl, size = workload.ttl(key), workload.size(key)
    return b"ms k%d %d q%s\r\n%b\r\n" % (key, size, b" T%d" % ttl if ttl else b"", b"x" * size)
