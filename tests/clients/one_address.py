"""What clients behind one address see: connections whose keys have a known slot, and libraries."""

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
from support.connections import ALL_KEYS, Failure, Seen, connected
from support.kube import get

PERIOD: Final = 0.04
"""Seconds between two requests of a connection: 250 requests per second in all."""
BATCH, BATCH_PERIOD = 10, 0.12
"""Requests of a library at a time, and seconds between two of these: about 250 per second of three libraries."""


@dataclass
class Library(Seen):
    """The requests of a library. pymemcache and gomemcache report errors of a server as errors, not as misses."""

    misses: int = 0

    def reset(self) -> None:
        """Forget what was seen."""
        super().reset()
        self.misses = 0


@dataclass
class Clients:
    """All clients of an address. `slots`: the slot of each key."""

    slots: Mapping[str, int]
    connections: Sequence[Seen]
    libraries: dict[str, Library] = field(default_factory=dict[str, Library])

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
        return [error for each in self.connections for error in each.errors if self.slots[error.key] in slots]

    @property
    def ended(self) -> list[int]:
        """How often each connection was closed or refused."""
        return [each.closed + each.refused for each in self.connections]

    @property
    def stall(self) -> float:
        """The longest time in which a connection got no response, in seconds."""
        return max(each.stall for each in self.connections)


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
    found = {name: Library() for name in programs}
    variables = {"MEMCACHED_SERVERS": f"{address}:11211"}
    loops = [partial(_library, name, programs[name], variables, hosts, seen) for name, seen in found.items()]
    with connected(address, PERIOD) as connections, in_threads(*loops):
        yield Clients(slots, connections, found)


def _library(
    name: str, command: Command, variables: Mapping[str, str], hosts: Path, seen: Library, stop: threading.Event
) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(running(name, command, variables, hosts))
        while not stop.wait(BATCH_PERIOD):
            for request in (client.store, client.read):
                result = request(BATCH)
                seen.requests += BATCH
                seen.misses += BATCH - result.succeeded - result.errors
                seen.failures += [Failure(time.monotonic(), "", b"")] * result.errors
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
