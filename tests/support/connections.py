"""Connections without a library that store and read keys behind one address, and connect again if they end."""

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from support.clients import Client, Server, in_threads

CONNECTIONS: Final = 10
KEYS: Final = 100
"""Keys of each connection."""
TIMEOUT: Final = 10.0
"""Seconds until a request counts as a closed connection."""


@dataclass(frozen=True)
class Failure:
    """A request that failed. `answer`: empty for a closed connection, and for a `refused` one."""

    at: float
    key: str
    answer: bytes
    refused: bool = False


@dataclass
class Seen:
    """The requests of a client. `stall`: the longest time without a response, in seconds."""

    requests: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])
    stall: float = 0.0

    def reset(self) -> None:
        """Forget what was seen."""
        self.requests, self.stall = 0, 0.0
        self.failures.clear()

    @property
    def answered(self) -> int:
        """The number of responses."""
        return self.requests - self.closed - self.refused

    @property
    def closed(self) -> int:
        """How often the connection was closed."""
        return sum(not each.answer and not each.refused for each in self.failures)

    @property
    def refused(self) -> int:
        """How often it could not be opened."""
        return sum(each.refused for each in self.failures)

    @property
    def errors(self) -> list[Failure]:
        """The requests with an error as the answer."""
        return [each for each in self.failures if each.answer]


def key(connection: int, number: int) -> str:
    """A key of a connection."""
    return f"raw-{connection}-{number}"


ALL_KEYS: Final = tuple(key(connection, number) for connection in range(CONNECTIONS) for number in range(KEYS))


@contextmanager
def connected(address: str, period: float) -> Generator[Sequence[Seen]]:
    """Store and read keys over CONNECTIONS during the block. `period`: seconds between two requests of a connection."""
    found = [Seen() for _ in range(CONNECTIONS)]
    with in_threads(*(partial(_run, address, period, number, seen) for number, seen in enumerate(found))):
        yield found


def _run(address: str, period: float, number: int, seen: Seen, stop: threading.Event) -> None:
    client, last, turn = None, time.monotonic(), 0
    while not stop.wait(period):
        turn += 1
        name = key(number, turn // 2 % KEYS)
        seen.requests += 1
        refused = client is None
        try:
            client = client or Client(Server(address, 11211), TIMEOUT)
            refused = False
            answer = _answer(client, name, stores=turn % 2 == 0)
        except OSError:
            client = client.close() if client else None
            answer = b""
        if answer not in (b"STORED\r\n", b"END\r\n"):
            seen.failures.append(Failure(time.monotonic(), name, answer, refused))
        if answer:
            seen.stall, last = max(seen.stall, time.monotonic() - last), time.monotonic()
    if client:
        client.close()


def _answer(client: Client, name: str, *, stores: bool) -> bytes:
    """The last line of the answer."""
    lines = [f"set {name} 0 0 {len(name)}", name] if stores else [f"get {name}"]
    line = client.request(*map(str.encode, lines))
    while line.startswith(b"VALUE") or line.rstrip() == name.encode():
        line = client.line()
    return line
