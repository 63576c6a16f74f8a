"""What happens to a Memcached with three slots while clients of each library use it."""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clients.libraries import Command
from clients.running import Client, Result, connection, running
from support import kube
from support.kube import eventually, must_get
from support.memcached import SMALL, memcached, send_commands, wait_until_ready
from support.processes import frozen
from support.slots import replace_pod

KEYS: Final = 1000
NONE: Final = Result(0, 0, 0)
SAMPLE: Final = 60
"""Keys of one command while a slot is away."""
PAUSE: Final = 0.3
"""Seconds between two commands."""
FROZEN: Final = 5.0
"""Seconds for which a server does not answer."""
RECOVERED: Final = 30.0
"""Maximum seconds from the readiness of a new pod until a client uses it again."""


@dataclass
class Record:
    """What the clients of one library saw, and which keys each slot held."""

    filled: Result = NONE
    held: list[set[str]] = field(default_factory=list[set[str]])
    away: list[Result] = field(default_factory=list[Result])
    """While a pod is replaced."""
    replaced: Result = NONE
    kept: list[set[str]] = field(default_factory=list[set[str]])
    recovery: float = 0
    """Seconds from the readiness of the new pod until all keys can be stored."""
    refilled: list[set[str]] = field(default_factory=list[set[str]])
    restarted: Result = NONE
    """Of a second client, started after the replacement with the same list."""
    frozen: list[Result] = field(default_factory=list[Result])
    """While a server does not answer."""
    pace: float = 0
    """Seconds for the first SAMPLE requests while a server does not answer."""
    old: Result = NONE
    """After the change of the size, with the list from before."""
    new: Result = NONE
    """After the change of the size, with the new list."""
    resized: list[set[str]] = field(default_factory=list[set[str]])


@dataclass
class Scenario:
    """Clients of all libraries and the Memcached `cache` that they use."""

    namespace: str
    programs: Mapping[str, Command]
    dns: Path
    """The resolv.conf of the clients."""
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    clients: dict[str, Client] = field(default_factory=dict[str, Client])

    def play(self) -> None:
        """Fill three slots, replace a pod, let another server not answer, then raise the size to four."""
        self.resize(3)
        with ExitStack() as stack:
            for name in self.programs:
                self.records[name] = Record()
                self.clients[name] = stack.enter_context(self.started(name))
            self.fill_slots()
            self.replace()
            self.freeze()
            self.resize(4)
            for name, record in self.records.items():
                record.old = read(self.clients[name], KEYS)
        self.restart()

    def resize(self, size: int) -> None:
        """Give the Memcached this number of slots."""
        slots: dict[str, Any] = {"identity": "Stable", "service": {"perPod": True}, "resources": SMALL}
        kube.apply(memcached(self.namespace, size=size, **slots))
        wait_until_ready(self.namespace)

    @contextmanager
    def started(self, name: str) -> Generator[Client]:
        """A new client with the current list."""
        with running(name, self.programs[name], connection(self.namespace), self.dns) as client:
            yield client

    def fill_slots(self) -> None:
        """Store all keys."""
        for name, record in self.records.items():
            fill(self.clients[name], name)
            record.filled = read(self.clients[name], KEYS)
            record.held = held(self.namespace, name, 3)

    def replace(self) -> None:
        """Replace a pod while the clients read; then read and store all keys, also with new clients."""
        with self.reading({name: record.away for name, record in self.records.items()}):
            replace_pod(self.namespace, "cache-1", "cache")
        for name, record in self.records.items():
            record.kept = held(self.namespace, name, 3)
            record.replaced = read(self.clients[name], sum(map(len, record.kept)))
        at_once(lambda name=name: self.refill(name) for name in self.clients)
        for name, record in self.records.items():
            with self.started(name) as second:
                record.restarted = read(second, KEYS)

    def refill(self, name: str) -> None:
        """Store all keys, among them the lost ones."""
        record = self.records[name]
        record.recovery = fill(self.clients[name], name)
        record.refilled = held(self.namespace, name, 3)

    def freeze(self) -> None:
        """Read while a server does not answer; then store all keys."""
        with frozen(must_get("pods", self.namespace, "cache-2"), "memcached"):
            at_once(lambda name=name: self.read_sample(name) for name in self.clients)
            with self.reading({name: record.frozen for name, record in self.records.items()}):
                time.sleep(FROZEN)
        for name, client in self.clients.items():
            fill(client, name)

    def read_sample(self, name: str) -> None:
        """Read some keys and measure the time."""
        started = time.monotonic()
        self.records[name].frozen.append(self.clients[name].read(SAMPLE))
        self.records[name].pace = time.monotonic() - started

    def restart(self) -> None:
        """Read, then store all keys with clients that know the new list."""
        for name, record in self.records.items():
            with self.started(name) as client:
                record.new = read(client, 0)
                fill(client, name)
                record.resized = held(self.namespace, name, 4)

    @contextmanager
    def reading(self, found: Mapping[str, list[Result]]) -> Generator[None]:
        """Let each client read until the block ends."""
        stop = threading.Event()

        def loop(name: str) -> None:
            while not stop.is_set():
                found[name].append(self.clients[name].read(SAMPLE))
                stop.wait(PAUSE)

        with ThreadPoolExecutor(len(found)) as pool:
            loops = [pool.submit(loop, name) for name in found]
            try:
                yield
            finally:
                stop.set()
            for each in loops:
                each.result()


def at_once(calls: Iterable[Callable[[], None]]) -> None:
    """Run calls at the same time."""
    with ThreadPoolExecutor(16) as pool:
        for each in [pool.submit(call) for call in calls]:
            each.result()


def read(client: Client, hits: int) -> Result:
    """Read all keys until there are this many hits and no errors. Returns the last result after 30 s.

    On a busy machine, a request may exceed its time-out although its server responds.
    """
    deadline = time.monotonic() + 30
    found = client.read(KEYS)
    while (found.errors or found.succeeded < hits) and time.monotonic() < deadline:
        time.sleep(PAUSE)
        found = client.read(KEYS)
    return found


def fill(client: Client, name: str) -> float:
    """Store all keys; returns the seconds until that succeeded."""
    started = time.monotonic()
    eventually(lambda: client.store(KEYS).succeeded == KEYS, RECOVERED, f"{name} stores all keys")
    return time.monotonic() - started


def held(namespace: str, library: str, size: int) -> list[set[str]]:
    """The keys of a library that each slot holds."""
    keys = [f"{library}-{number}" for number in range(KEYS)]
    lines = [f"get {' '.join(keys[start : start + 100])}".encode() for start in range(0, KEYS, 100)]
    pods = [must_get("pods", namespace, f"cache-{slot}")["status"]["podIP"] for slot in range(size)]
    answers = [send_commands(address, 11211, *lines).splitlines() for address in pods]
    return [{line.split()[1].decode() for line in found if line.startswith(b"VALUE ")} for found in answers]
