"""What clients behind one address see: connections without a library whose keys have a known slot, and libraries."""

import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from clients.libraries import Command
from clients.running import running
from support.clients import Client, Server, in_threads
from support.kube import get

CONNECTIONS: Final = 10
PERIOD: Final = 0.04
"""Seconds between two requests of a connection: 250 requests per second in all."""
BATCH, BATCH_PERIOD = 10, 0.12
"""Requests of a library at a time, and seconds between two of these: about 250 per second of three libraries."""
KEYS: Final = 100
"""Keys of each connection."""
TIMEOUT: Final = 10.0
"""Seconds until a request of a connection counts as a closed connection."""


@dataclass(frozen=True)
class Failure:
    """A request that failed. `slot`: of its key. `answer`: empty for a closed or refused connection."""

    at: float
    slot: int
    answer: bytes


@dataclass
class Seen:
    """The requests of one connection, or of one library. `stall`: the longest time without a response, in seconds."""

    requests: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])
    stall: float = 0.0
    misses: int = 0
    """Of a library. pymemcache and gomemcache report errors of a server as errors."""

    def reset(self) -> None:
        """Forget what was seen."""
        self.requests, self.stall, self.misses = 0, 0.0, 0
        self.failures.clear()


@dataclass
class Clients:
    """All clients of an address."""

    connections: list[Seen]
    libraries: dict[str, Seen]

    def reset(self) -> None:
        """Forget what was seen."""
        for each in (*self.connections, *self.libraries.values()):
            each.reset()

    @property
    def failures(self) -> list[Failure]:
        """Those of all connections."""
        return [failure for each in self.connections for failure in each.failures]

    def errors(self, slots: Iterable[int]) -> list[Failure]:
        """The requests of connections for keys of these slots with an error as the answer."""
        return [each for each in self.failures if each.answer and each.slot in slots]

    @property
    def ended(self) -> list[int]:
        """How often each connection was closed or refused."""
        return [sum(not failure.answer for failure in each.failures) for each in self.connections]

    @property
    def stall(self) -> float:
        """The longest time in which a connection got no response, in seconds."""
        return max(each.stall for each in self.connections)


def key(connection: int, number: int) -> str:
    """A key of a connection."""
    return f"raw-{connection}-{number}"


ALL_KEYS: Final = tuple(key(connection, number) for connection in range(CONNECTIONS) for number in range(KEYS))


def slots_of(address: str, servers: Sequence[str]) -> dict[str, int]:
    """Store ALL_KEYS through `address`; the slot of each, by looking into each of `servers`."""
    with Client(Server(address, 11211)) as client:
        client.store(ALL_KEYS)
    found: dict[str, int] = {}
    for slot, server in enumerate(servers):
        with Client(Server(server, 11211)) as client:
            found |= {each: slot for each in ALL_KEYS if client.count([each])}
    assert len(found) == len(ALL_KEYS)
    return found


@contextmanager
def clients(address: str, slots: Mapping[str, int], programs: Mapping[str, Command], hosts: Path) -> Generator[Clients]:
    """Send requests during the block. `hosts`: the resolv.conf of the libraries."""
    found = Clients([Seen() for _ in range(CONNECTIONS)], {name: Seen() for name in programs})
    loops = [partial(_connection, address, number, slots, seen) for number, seen in enumerate(found.connections)]
    loops += [
        partial(_library, name, command, {"MEMCACHED_SERVERS": f"{address}:11211"}, hosts, found.libraries[name])
        for name, command in programs.items()
    ]
    with in_threads(*loops):
        yield found


def _connection(address: str, number: int, slots: Mapping[str, int], seen: Seen, stop: threading.Event) -> None:
    client, last, turn = None, time.monotonic(), 0
    while not stop.wait(PERIOD):
        turn += 1
        name = key(number, turn // 2 % KEYS)
        seen.requests += 1
        try:
            client = client or Client(Server(address, 11211), TIMEOUT)
            answer = _answer(client, name, stores=turn % 2 == 0)
        except OSError:
            client = client.close() if client else None
            answer = b""
        if answer not in (b"STORED\r\n", b"END\r\n"):
            seen.failures.append(Failure(time.monotonic(), slots[name], answer))
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


def _library(
    name: str, command: Command, variables: Mapping[str, str], hosts: Path, seen: Seen, stop: threading.Event
) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(running(name, command, variables, hosts))
        while not stop.wait(BATCH_PERIOD):
            for request in (client.store, client.read):
                result = request(BATCH)
                seen.requests += BATCH
                seen.misses += BATCH - result.succeeded - result.errors
                seen.failures += [Failure(time.monotonic(), -1, b"")] * result.errors
                seen.stall = max(seen.stall, result.slowest)


@contextmanager
def answering(namespace: str, pod: str) -> Generator[list[float]]:
    """The times at which a pod begins to answer directly, after a time without an answer, during the block."""
    found: list[float] = []
    with in_threads(partial(_ask, namespace, pod, found)):
        yield found


def _ask(namespace: str, pod: str, found: list[float], stop: threading.Event) -> None:
    answers = True
    while not stop.wait(0.05):
        obj = get("pods", namespace, pod) or {}
        address, before, answers = obj.get("status", {}).get("podIP", ""), answers, False
        with suppress(OSError):
            if address:
                with Client(Server(address, 11211), 0.3) as client:
                    answers = client.works()
        if answers and not before:
            found.append(time.monotonic())
