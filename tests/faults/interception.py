"""What stands between an operator and the API server: it records all requests and injects faults into some."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from faults.calls import Call, Entry, RequestLog
from faults.rules import ActiveRule, Rule


class Writer(Protocol):
    """The response to a watch."""

    async def write(self, data: bytes, /) -> None:
        """Send a part of the body."""
        ...


class Transport(Protocol):
    """A connection."""

    def abort(self) -> None:
        """Close it immediately."""
        ...


@dataclass(eq=False)
class Stream:
    """An open watch. Events pass unless those of its resource are held back, until the watch is interrupted."""

    call: Call
    response: Writer
    transport: Transport
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def interrupt(self, data: bytes = b"", *, cut: bool = False) -> None:
        """Send some bytes, then close the watch or abort its connection."""
        if data:
            with suppress(ConnectionError):
                await self.response.write(data)
        if cut:
            self.transport.abort()
        self.ended.set()


class Interception:
    """One per operator. Faults that stop the operator call `kill`.

    `renamed`: names within paths, and what replaces them in the requests to the API server.
    """

    def __init__(self) -> None:
        self.requests = RequestLog()
        self.streams: set[Stream] = set()
        self.kill: Callable[[], None] = lambda: None
        self.pace: tuple[int, float] | None = None
        self.renamed: dict[str, str] = {}
        self._rules: list[ActiveRule] = []
        self._passing: dict[str, asyncio.Event] = {}

    def inject(self, *rules: Rule) -> list[ActiveRule]:
        """Activate rules. The first rule that matches a request is applied."""
        active = [ActiveRule(rule) for rule in rules]
        self._rules += active
        return active

    def hold(self, *resources: str) -> None:
        """Hold back the events of these resources, in present and future watches."""
        for resource in resources:
            self._may_pass(resource).clear()

    def release(self) -> None:
        """Let all events pass again."""
        for may_pass in self._passing.values():
            may_pass.set()

    def open_watches(self, resource: str = "*") -> list[Stream]:
        """The open watches of a resource."""
        return [stream for stream in self.streams if stream.call.matches(f"watch {resource}")]

    async def wait_released(self, stream: Stream) -> None:
        """Wait until events of this watch may pass."""
        await self._may_pass(stream.call.resource).wait()

    def _may_pass(self, resource: str) -> asyncio.Event:
        if resource not in self._passing:
            self._passing[resource] = asyncio.Event()
            self._passing[resource].set()
        return self._passing[resource]

    def receive(self, call: Call, body: bytes) -> tuple[Entry, Rule | None]:
        """Record a request; the first rule that applies to it counts it."""
        entry = self.requests.add(call, body)
        active = next((each for each in self._rules if each.applies(call)), None)
        entry.injected = active is not None
        return entry, active.rule if active else None

    def renamed_path(self, path: str) -> str:
        """The path of a request to the API server."""
        for name, other in self.renamed.items():
            path = path.replace(name, other)
        return path
