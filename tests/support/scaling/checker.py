"""Clients that compare what proxies return with what must be stored, while the proxies and the servers change."""

import base64
import random
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Final, get_args

from support.clients import in_threads
from support.kube import eventually
from support.scaling import writes
from support.scaling.connection import Connection, Endpoint, ErrorReplyError, UnknownReplyError
from support.scaling.versions import Key, Kind, Reading
from support.scaling.writes import Unexpected

KEYS: Final = 6000
WRITERS: Final = 6
PAUSE: Final = 0.001
"""Seconds between two requests of a client."""
WRITES, SEVERAL = 0.22, 0.08
"""The shares of requests that write, and of those that read several keys."""
FRESH: Final = 0.1
"""The share of requests that open a connection of their own: the others use one for long."""
SECONDS: Final = 300.0
"""Enough for the requests that a test waits for, on a busy machine."""
MAX_EXAMPLES: Final = 10

WRONG: Final[tuple[Reading, ...]] = ("stale", "resurrected", "expired")


def _named(number: int) -> Key:
    """The key with a number."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    kind = (*kinds, "short", "short", "short")[number // WRITERS % 8]
    if kind == "long":
        return Key((b"long-%d-" % number).ljust(120 + number % 131, b"k"), kind)
    if kind == "base64":
        return Key(base64.b64encode(b"\x01\xfe key %d" % number), kind)
    return Key(b"%b-%d" % (kind.encode(), number), kind)


class Checker:
    """Requests of WRITERS clients, each the only writer of its keys, and what they have seen.

    `endpoints`: where clients connect. It can be replaced at any time: a new connection uses one of them. `fresh`: the
    share of requests that open a connection of their own.
    `errors`: the error replies. `counts`: by reading, and `requests`, `errors` (error replies), `closed`
    (connections) and `unexpected`.
    """

    def __init__(self, endpoints: Sequence[Endpoint], keys: int = KEYS, fresh: float = FRESH) -> None:
        self.endpoints = tuple(endpoints)
        self._fresh = fresh
        self.counts = Counter[str]()
        self.examples: list[str] = []
        self.errors = Counter[str]()
        self._keys = [_named(number) for number in range(keys)]
        self._lost_before = 0.0
        self._moving = 0.0
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return f"{dict(self.counts)}, {dict(self.errors.most_common(5))}, {self.examples}"

    @property
    def wrong(self) -> int:
        """The number of reads that returned what must not exist any more."""
        return sum(self.counts[reading] for reading in WRONG)

    @property
    def reads(self) -> int:
        """The number of reads of some readings."""
        readings: tuple[Reading, ...] = get_args(Reading)
        return sum(self.counts[reading] for reading in readings)

    def moving(self) -> None:
        """All proxies are in the phase `move`: what is set or added from now on is kept."""
        self._moving = time.monotonic()

    def finishing(self) -> None:
        """The phase `move` ends: items that were not set or added in it may be lost."""
        self._lost_before = max(self._lost_before, self._moving)

    def losing(self) -> None:
        """All items of now may be lost, because a server has been emptied."""
        self._lost_before = time.monotonic()

    def wait(self, requests: int) -> None:
        """Wait until so many more requests are answered, and all keys are stored."""
        last = self.counts["requests"] + requests
        done = partial(self._has, last)
        eventually(done, SECONDS, f"{requests} requests are answered: {self}")

    def read_all(self) -> None:
        """Read each key once more: old copies for which no client has asked."""
        with closing(Connection(self.endpoints[0])) as connection:
            for key in self._keys:
                try:
                    self._count(writes.seen(connection, key, self._oldest), key)
                except ErrorReplyError as error:
                    self._note(error)

    def run(self, number: int, stop: threading.Event) -> None:
        """The requests of a client, until the event is set."""
        draw = random.Random(number)  # noqa: S311 - not a secret
        mine = self._keys[number::WRITERS]
        unset = list(mine)
        held: Connection | None = None
        while not stop.is_set():
            fresh = draw.random() < self._fresh
            connection = None if fresh else held
            try:
                connection = connection or Connection(draw.choice(self.endpoints))
                if unset:
                    writes.write(connection, unset[-1], draw, self._oldest, writes.store)
                    unset.pop()
                    self._bump("filled", not unset)
                else:
                    self._request(connection, mine, draw)
            except (OSError, ErrorReplyError, UnknownReplyError, Unexpected) as error:
                self._note(error)
                if connection and isinstance(error, OSError | UnknownReplyError):
                    connection.close()
                    connection = None
            self._bump("requests")
            if fresh and connection:
                connection.close()
            elif not fresh:
                held = connection
            if not unset:
                stop.wait(PAUSE)
        if held:
            held.close()

    def _request(self, connection: Connection, mine: Sequence[Key], draw: random.Random) -> None:
        share = draw.random()
        if share < WRITES:
            writes.write(connection, draw.choice(mine), draw, self._oldest)
        elif share < WRITES + SEVERAL:
            self._read_several(connection, [key for key in draw.sample(self._keys, 3) if key.kind != "base64"])
        else:
            key = draw.choice(self._keys)
            self._count(writes.seen(connection, key, self._oldest), key)

    def _read_several(self, connection: Connection, keys: Sequence[Key]) -> None:
        before = [key.state for key in keys]
        found = connection.values(b"get", [key.name for key in keys]) if keys else {}
        for key, state in zip(keys, before, strict=True):
            value = found[key.name][0] if key.name in found else None
            self._count(key.classify(state, value, self._lost_before), key)

    def _oldest(self) -> float:
        return self._lost_before

    def _has(self, requests: int) -> bool:
        return self.counts["requests"] >= requests and self.counts["filled"] == WRITERS

    def _count(self, reading: Reading, key: Key) -> None:
        self._bump(reading)
        if reading not in ("hit", "miss", "late"):
            self._example(f"{reading}: {key.name!r} {key.state}")

    def _note(self, error: Exception) -> None:
        if isinstance(error, ErrorReplyError):
            self._bump("errors")
            self.errors[str(error)] += 1
        elif isinstance(error, OSError):
            self._bump("closed")
        else:
            self._bump("unexpected")
            self._example(repr(error))

    def _bump(self, name: str, number: int = 1) -> None:
        with self._lock:
            self.counts[name] += number

    def _example(self, text: str) -> None:
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(text)


@contextmanager
def checking(endpoints: Sequence[Endpoint], keys: int = KEYS, fresh: float = FRESH) -> Generator[Checker]:
    """Run the clients of a checker during the block; all keys are stored before it begins, and read after it."""
    checker = Checker(endpoints, keys, fresh)
    with in_threads(*(partial(checker.run, number) for number in range(WRITERS))):
        checker.wait(0)
        yield checker
    checker.read_all()
