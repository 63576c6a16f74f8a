"""A client loop at a fixed rate over the slots of a cache: hits, misses and failures, second by second."""

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from support.clients import Client, Server, in_threads

TICK = 0.02
"""Seconds between two bursts of requests."""


@dataclass
class Second:
    """The requests of one second."""

    hits: int = 0
    misses: int = 0
    failed: int = 0


@dataclass
class Load:
    """The requests to each slot. `seconds`: of all slots together, by whole seconds since the start."""

    addresses: Sequence[str]
    rate: int
    keys: Sequence[str]
    fills: bool
    started: float = field(default_factory=time.monotonic)
    seconds: dict[int, Second] = field(default_factory=dict[int, Second])
    outages: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """Durations of the periods without an answer, in seconds, by slot."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> int:
        """Whole seconds since the start."""
        return int(time.monotonic() - self.started)

    def ratio(self, since: int, until: int) -> float | None:
        """The hit ratio of all slots between two seconds, from 0 to 1; None without an answer."""
        with self.lock:
            found = [self.seconds[at] for at in range(since, until) if at in self.seconds]
        hits, misses = sum(each.hits for each in found), sum(each.misses for each in found)
        return hits / (hits + misses) if hits + misses else None

    def lowest(self, since: int) -> float:
        """The lowest hit ratio of all slots in any 10 seconds."""
        ratios = [self.ratio(at, at + 10) for at in range(since, self.now() - 10)]
        return min((each for each in ratios if each is not None), default=1.0)

    def record(self, hits: int, misses: int, failed: int) -> None:
        """Add requests that end now."""
        with self.lock:
            second = self.seconds.setdefault(self.now(), Second())
            second.hits, second.misses, second.failed = (
                second.hits + hits,
                second.misses + misses,
                second.failed + failed,
            )


@contextmanager
def load(addresses: Sequence[str], keys: Sequence[str], rate: int = 1000, *, fills: bool = False) -> Generator[Load]:
    """Read the keys again and again during the block, `rate` per second in all, the same number from each slot.

    `fills`: store those that are missing, as a client with a database behind the cache does.
    """
    found = Load(addresses, rate, keys, fills)
    with in_threads(*(partial(_run, found, slot) for slot in range(len(addresses)))):
        yield found


def _run(found: Load, slot: int, stop: threading.Event) -> None:
    server, position, client, away = Server(found.addresses[slot], 11211), 0, None, None
    while not stop.wait(TICK):
        # By the clock, also after a slow burst: the rate does not depend on the replies.
        due = int((time.monotonic() - found.started) * found.rate / len(found.addresses))
        keys = [found.keys[each % len(found.keys)] for each in range(position, min(due, position + found.rate))]
        position = due
        try:
            client = client or Client(server)
            _request(found, client, keys)
            if away is not None:
                found.outages.setdefault(slot, []).append(time.monotonic() - away)
            away = None
        except OSError:
            away = time.monotonic() if away is None else away
            found.record(0, 0, len(keys))
            client = client.close() if client else None
    if client:
        client.close()


def _request(found: Load, client: Client, keys: Sequence[str]) -> None:
    """Send one burst, in one batch, and store what is missing."""
    if not keys:
        return
    client.send("".join(f"get {each}\r\n" for each in keys).encode())
    missing = [each for each in keys if not _is_hit(client)]
    found.record(len(keys) - len(missing), len(missing), 0)
    if missing and found.fills:
        client.send("".join(f"set {each} 0 0 {len(each)} noreply\r\n{each}\r\n" for each in missing).encode())


def _is_hit(client: Client) -> bool:
    line = client.line()
    if line == b"END\r\n":
        return False
    if not line.startswith(b"VALUE "):
        raise ConnectionError(f"memcached answered {line[:80]!r}")
    client.line()
    return client.line() == b"END\r\n"


def fill(addresses: Sequence[str], keys: Sequence[str]) -> None:
    """Store all keys in each slot, with themselves as values."""
    for address in addresses:
        with Client(Server(address, 11211)) as client:
            for start in range(0, len(keys), 1000):
                batch = keys[start : start + 1000]
                client.send("".join(f"set {each} 0 0 {len(each)} noreply\r\n{each}\r\n" for each in batch).encode())
            assert client.request(b"version").startswith(b"VERSION ")


def kept(addresses: Sequence[str], keys: Sequence[str]) -> list[int]:
    """How many of the keys each slot has."""
    found: list[int] = []
    for address in addresses:
        with Client(Server(address, 11211)) as client:
            found.append(client.count(keys))
    return found
