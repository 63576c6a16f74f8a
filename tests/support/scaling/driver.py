"""Changes of the number of real servers behind real proxies on loopback, which are replaced for each phase."""

import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from corners.server import Server
from memcached_operator.memcachedproxy.desired.handler import handler
from memcached_operator.parts.ring import MOVING, Phase
from support.memcacheds import memcached
from support.ports import free_port
from support.scaling.checker import KEYS, Checker, checking
from support.scaling.connection import Endpoint
from support.scaling.processes import phased, plain, proxy
from support.scaling.sweep import Sweep
from support.waiting import REQUEST

PHASES: Final = MOVING
PROXIES: Final = 2
BOTH, DRAINED, SHORT, LONG = 1500, 1500, 2000, 8000
"""Requests of the checker: while both generations serve, while the older one loses its clients, and in the phases."""
CLOSED: Final = 1
"""A port where nothing listens."""


class Process(NamedTuple):
    """A memcached, and what ends it."""

    server: Server
    stack: ExitStack


class Servers:
    """The memcacheds of the slots, each on a port of its own."""

    def __init__(self, root: Path, number: int) -> None:
        self.ports = [free_port() for _ in range(number)]
        self._root = root
        self._live: dict[int, Process] = {}

    def start(self, slot: int) -> None:
        """Start an empty server, unless it runs."""
        if slot not in self._live:
            stack = ExitStack()
            self._live[slot] = Process(stack.enter_context(memcached(self._root, self.ports[slot])), stack)

    def kill(self, slot: int) -> None:
        """Kill a server."""
        self._live.pop(slot).stack.close()

    def kill_all(self) -> None:
        """Kill all servers."""
        for slot in list(self._live):
            self.kill(slot)

    def send(self, slot: int, number: signal.Signals) -> None:
        """Send a signal to a server."""
        self._live[slot].server.process.send_signal(number)


class Driver:
    """Servers and proxies, which a checker uses at the same time. `program`: the handler of the proxies."""

    def __init__(self, root: Path, servers: Servers, sweep: Sweep | None, program: str = handler()) -> None:
        self.servers = servers
        self.proxies: list[Process] = []
        self._root = root
        self._sweep = sweep
        self._program = program
        self._checker: Checker | None = None

    @property
    def checker(self) -> Checker:
        """The clients."""
        assert self._checker
        return self._checker

    @contextmanager
    def checked(self, size: int, keys: int = KEYS) -> Generator[Checker]:
        """Servers, proxies and clients during the block. `size`: of the first ring. `keys`: of the clients."""
        try:
            for slot in range(size):
                self.servers.start(slot)
            self._start(plain(self.servers.ports, size))
            with checking(self._endpoints(), keys) as self._checker:
                yield self._checker
        finally:
            self.servers.kill_all()
            for process in self.proxies:
                process.stack.close()

    def change(self, old: int, new: int, fault: "Fault", phases: Sequence[Phase] = PHASES, end: int = 0) -> None:
        """Change the number of servers, with a fault in each phase that lasts into the next rollout.

        `phases`: those that a mutant does not skip. `end`: the ring after them, `new` by default.
        """
        for slot in range(max(old, new)):
            self.servers.start(slot)
        if self._sweep and phases:
            self._sweep(self.servers.ports[:new], old)
        undo = _nothing
        for number, phase in enumerate(phases):
            if phase is Phase.FINISH:
                self.checker.finishing()
            self.rollout(phased(fault.ports(self.servers.ports, old, new, phase), old, new, phase))
            if phase is Phase.MOVE:
                self.checker.moving()
            undo()
            undo = fault.begin(self, number, old, new)
            self.checker.wait(LONG if phase is Phase.MOVE else SHORT)
        self.rollout(plain(self.servers.ports, end or new))
        undo()
        self.checker.wait(SHORT)
        for slot in range(end or new, max(old, new)):
            self.servers.kill(slot)

    def rollout(self, text: str) -> None:
        """Replace the proxies: the new ones serve beside the old ones, which lose their clients and end."""
        before = self.proxies
        self.proxies = []
        self._start(text)
        both = [*before, *self.proxies]
        self.checker.endpoints = tuple(("127.0.0.1", process.server.port) for process in both)
        self.checker.wait(BOTH)
        self.checker.endpoints = self._endpoints()
        self.checker.wait(DRAINED)
        for process in before:
            process.server.process.terminate()
            process.server.process.wait(REQUEST)
            process.stack.close()

    def restart(self, number: int) -> None:
        """Kill a proxy; its successor has the same routes and the same port."""
        self.proxies[number].stack.close()
        self.proxies[number] = self._proxy(self._text, self.proxies[number].server.port)

    def _start(self, text: str) -> None:
        self._text = text
        self.proxies = [self._proxy(text, free_port()) for _ in range(PROXIES)]

    def _proxy(self, text: str, port: int) -> Process:
        stack = ExitStack()
        return Process(stack.enter_context(proxy(self._root, text, self._program, port)), stack)

    def _endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(("127.0.0.1", process.server.port) for process in self.proxies)


def _nothing() -> None:
    """No fault."""


class Fault:
    """What happens in each phase, for requests that go on. This one: nothing."""

    def begin(self, driver: Driver, number: int, old: int, new: int) -> Callable[[], None]:
        """Begin in the phase with this number; the result ends the fault."""
        return _nothing

    def ports(self, ports: Sequence[int], old: int, new: int, phase: Phase) -> Sequence[int]:
        """The ports of the servers, as the proxies of a phase know them."""
        return ports


def _slot(number: int, old: int, new: int) -> int:
    """A server that keys leave, or one that they go to, in turn."""
    leaving, coming = range(old), range(old, new)
    if new < old:
        leaving, coming = range(new, old), range(new)
    group = (leaving, coming)[number % 2]
    return group[number % len(group)]


class Stopped(Fault):
    """A server does not respond, and continues later."""

    def begin(self, driver: Driver, number: int, old: int, new: int) -> Callable[[], None]:
        """Stop a server."""
        slot = _slot(number, old, new)
        driver.servers.send(slot, signal.SIGSTOP)
        return lambda: driver.servers.send(slot, signal.SIGCONT)


class Emptied(Fault):
    """A server is killed, and its successor is empty."""

    def begin(self, driver: Driver, number: int, old: int, new: int) -> Callable[[], None]:
        """Kill a server."""
        slot = _slot(number, old, new)
        driver.servers.kill(slot)

        def again() -> None:
            driver.checker.losing()
            driver.servers.start(slot)

        return again


class ProxyKilled(Fault):
    """A proxy is killed, and restarted at once."""

    def begin(self, driver: Driver, number: int, old: int, new: int) -> Callable[[], None]:
        """Restart a proxy."""
        driver.restart(number % PROXIES)
        return _nothing


class Cut(Fault):
    """The pods of `prepare` do not reach the servers to which keys go, which those of `move` use."""

    def ports(self, ports: Sequence[int], old: int, new: int, phase: Phase) -> Sequence[int]:
        """Ports of which some are closed."""
        if phase is not Phase.PREPARE:
            return ports
        coming = range(old, new) if new > old else range(new)
        return [CLOSED if slot in coming else port for slot, port in enumerate(ports)]
