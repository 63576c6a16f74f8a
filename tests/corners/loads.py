"""How a test uses a cache: each load fills it twice over in another way. All are bounded by the size of the cache.

Requests are sent in large batches, so that the server, not the client, is the bottleneck.
"""

import ssl
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from corners import tls
from corners.client import Client
from corners.disk.volume import Volume
from corners.server import Server

MEBIBYTE: Final = 2**20
BATCH_BYTES: Final = 2 * MEBIBYTE
BATCH_ITEMS: Final = 10_000
PLACE: Final = b"#######"
"""In each key of a batch, the place of the batch's own name."""

SMALLEST_ITEMS_PER_PAGE: Final = 10_922
"""Items of the smallest slab class, 96 bytes, in a slab page of 1 MiB."""
ITEM_OVERHEAD: Final = 70
"""At most so many bytes of an item are its header and its key."""
FIRST_HASH_POWER: Final = 16
GROWTH: Final = 1.12
"""Ratio of successive item sizes in `every_class`; less than that of the slab classes, 1.25."""

SMALLEST: Final = 1
"""Bytes of the value of the smallest items."""
BELOW_DOUBLING: Final = 30_000
"""Items that are left out so that the hash table doubles later; more than `every_class` stores in all classes."""
WAIT_SECONDS: Final = 60.0
DOUBLING_SECONDS: Final = 120.0

IDLE: Final = "idle"
HALF: Final = "half a command"
LONG: Final = "4,000 bytes of a command"
UNREAD: Final = "unread reply"
KINDS: Final = {IDLE: b"", HALF: b"get repl", LONG: b"get" + b" " * 3997, UNREAD: b"get reply\r\n"}
"""What each connection sends before it waits."""


@dataclass(frozen=True)
class Cache:
    """The cache under test. `memory`: mebibytes; `item_size`: bytes, the largest item."""

    server: Server
    memory: int
    item_size: int
    port: int = 0
    context: ssl.SSLContext | None = None
    """How clients connect to `port`; None: without TLS, to the port of the server."""
    volume: Volume | None = None
    """The volume of `extstore`."""

    def connections(self, count: int) -> Sequence[Client | tls.Connection]:
        """New connections, with TLS if the cache has it."""
        if self.context is not None:
            return tls.connect_at_once(self.port, self.context, count)
        return [self.server.connect() for _ in range(count)]


@dataclass(frozen=True)
class Load:
    """A named use of a cache."""

    name: str
    run: Callable[[Cache], None]


def items_of(size: int, text: str = "") -> Load:
    """Twice as many items of one size as fit."""

    def run(cache: Cache) -> None:
        with connection(cache) as client:
            store(client, 2 * items(cache.memory, size), size)
            wait_until_doubled(client)

    return Load(f"items of {text or f'{size} B'}", run)


def largest_items() -> Load:
    """Twice as many items of the maximum size as fit."""

    def run(cache: Cache) -> None:
        items_of(cache.item_size - 1024).run(cache)

    return Load("largest items", run)


def every_size(kind: str = IDLE, connections: int = 0, reply: int = 100) -> Load:
    """All needs at once: a page of every slab class, all connections, and the hash table doubles.

    The smallest items come first, up to just below the doubling. Then items of every size, for which memcached exceeds
    `-m` by a page per class, then the connections, then the smallest items again.
    """

    def run(cache: Cache) -> None:
        with connection(cache) as client:
            below = max(1, last_doubling(cache.memory) - BELOW_DOUBLING)
            store(client, below, SMALLEST)
            every_class(client, min(cache.item_size, MEBIBYTE))
            with waiting(cache, client, kind, connections, reply):
                rest = 2 * items(cache.memory, SMALLEST) - below
                store(client, rest, SMALLEST, "b")
                wait_until_doubled(client)
                every_class(client, min(cache.item_size, MEBIBYTE), "d")

    suffix = f", {connections:,} connections ({kind}{'' if reply == 100 else f' of {reply // 1024} KiB'})"
    return Load(f"all sizes, then doubling{suffix if connections else ''}", run)


def every_size_last() -> Load:
    """A cache full of the smallest items, then items of every size: memcached exceeds `-m` by a page per slab class."""

    def run(cache: Cache) -> None:
        items_of(SMALLEST).run(cache)
        with connection(cache) as client:
            every_class(client, min(cache.item_size, MEBIBYTE))

    return Load(f"items of {SMALLEST} B, then all sizes", run)


@contextmanager
def connection(cache: Cache) -> Generator[Client]:
    """A connection for the block. With one allowed client, memcached may still count the previous one for a moment."""
    client = accepted(cache.server.connect)
    with client.socket:
        yield client


def accepted(connect: Callable[[], Client]) -> Client:
    """A connection on which memcached replies. Raises ConnectionError if it still denies them after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        client = connect()
        with suppress(ConnectionError):
            reply = client.request(b"version\r\n")
            if reply.startswith(b"VERSION "):
                return client
        client.close()
        if time.monotonic() > deadline:
            raise ConnectionError("memcached denied every connection: all that it allows are in use")
        time.sleep(0.02)


@contextmanager
def waiting(cache: Cache, client: Client, kind: str, count: int, reply: int) -> Generator[None]:
    """Connections that do nothing during the block after each has sent the request of its kind."""
    client.request(b"set reply 0 0 %d\r\n%s\r\n" % (reply, b"x" * reply))
    hits = int(client.stats()["get_hits"])
    with ExitStack() as stack:
        for waiter in cache.connections(count):
            stack.enter_context(waiter.socket)
            waiter.send(KINDS[kind])
        if kind == UNREAD:
            wait_for(client, "get_hits", hits + count)
        wait_for(client, "curr_connections", count)
        yield


def wait_for(client: Client, name: str, least: int) -> None:
    """Wait until a statistic has reached a value. Raises TimeoutError."""
    wait_until(client, name, lambda value: int(value) >= least, WAIT_SECONDS)


def wait_until(client: Client, name: str, reached: Callable[[str], bool], seconds: float) -> None:
    """Wait until the value of a statistic is as wanted. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not reached(value := client.stats()[name]):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} is still {value} after {seconds:g} s")
        time.sleep(0.05)


def batches(count: int, size: int, name: str) -> Iterator[bytes]:
    """Requests that store at least `count` items of `size` bytes without replies. `name`: one letter for their keys."""
    number = min(count, BATCH_ITEMS, max(1, BATCH_BYTES // (size + ITEM_OVERHEAD)))
    value = b"x" * size
    batch = b"".join(b"ms %s%04d %d q\r\n%s\r\n" % (PLACE, item, size, value) for item in range(number))
    for index in range(-(-count // number)):
        yield batch.replace(PLACE, b"%s%06d" % (name.encode(), index))


def store(client: Client, count: int, size: int, name: str = "a") -> None:
    """Store items."""
    client.send_quiet(batches(count, size, name))


def every_class(client: Client, largest: int = MEBIBYTE, name: str = "c") -> None:
    """Store more than one page of items in every slab class, up to items of `largest` bytes."""
    size = 10
    while size < largest // 2:
        store(client, MEBIBYTE // (size + ITEM_OVERHEAD) + 2, size, name)
        size = int(size * GROWTH) + 1
    for each in (largest // 2, largest * 3 // 4, largest - 1024):
        store(client, 3, each, name)


def items(memory: int, size: int) -> int:
    """At most so many items of `size` bytes fit into `memory` mebibytes."""
    return max(1, min(memory * SMALLEST_ITEMS_PER_PAGE, memory * MEBIBYTE // size))


def last_doubling(memory: int) -> int:
    """The largest number of items, of the smallest that fit, at which the hash table doubles: 1.5 × 2^n."""
    power = FIRST_HASH_POWER
    while 3 * 2**power < memory * SMALLEST_ITEMS_PER_PAGE:
        power += 1
    return 3 * 2 ** (power - 1)


def wait_until_doubled(client: Client) -> None:
    """Wait until the hash table has moved to its new size. Raises TimeoutError."""
    wait_until(client, "hash_is_expanding", lambda value: value == "0", DOUBLING_SECONDS)
