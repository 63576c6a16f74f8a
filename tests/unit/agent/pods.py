"""A pod whose memcached and whose time a test controls, with an agent that watches it."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memcached_agent import options
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.metrics.exposition import render
from memcached_agent.options import Restart
from memcached_agent.pod import files, record
from memcached_agent.pod_watcher import PodWatcher

from .memcacheds import FakeMemcached, replies_again, with_client
from .warming import Process, annotations

OWN = ("memcached_agent.memory", "memcached_agent.pod", "memcached_agent.warm", "memcached_agent.pod_watcher")
"""The loggers of the watcher and of its parts."""


ITEMS = "/cache/items"


class Pod:
    """A pod: its files, its memcached and its agent. Time passes only by `work`."""

    def __init__(self, directory: Path, memcached: FakeMemcached, client: MemcachedClient, gate: str | None) -> None:
        self.now = 5000.0
        self.memcached = memcached
        self.client = client
        self.process = Process()
        self.file = directory / "annotations"
        self.state = directory / "state"
        self.state.mkdir(exist_ok=True)
        self.arguments = directory / "args"
        self.restart: Restart | None = None
        self.annotate(gate)
        self.watcher = self.agent()

    def annotate(self, text: str | None = None, **others: str) -> None:
        """Replace the annotations: `warm-up`, and others by name."""
        self.file.write_bytes(annotations(text, **others))

    def agent(self, poll: float = 5.0) -> PodWatcher:
        """Start the agent; it finds the state of the one before."""
        found = options.Pod(str(self.file), str(self.state), self.restart)
        self.watcher = PodWatcher(self.client, found, lambda: self.now, poll)
        return self.watcher

    def run_with(self, arguments: str) -> None:
        """Start the agent of a memcached that must run with these arguments. It is not visible in /proc."""
        self.arguments.write_text(arguments)
        self.restart = Restart(str(self.arguments), ITEMS)
        self.agent()

    async def work(self, seconds: int, hits: float = 0, misses: float = 0) -> None:
        """Let the clients of memcached work, with these rates per second. The agent polls every 5 s."""
        for _ in range(seconds // 5):
            self.now += 5
            self.process.work(5, hits, misses)
            await self.watcher.step()

    async def replace(self, process: Process) -> None:
        """Replace the process of memcached. Its clients reconnect."""
        self.memcached.close_all()
        self.process = process
        await self.reconnected()

    async def reconnected(self) -> None:
        """Wait until the agent has noticed that its connection is closed, and has another."""
        before = self.client.connected
        async with asyncio.timeout(30):
            while self.client.connected in (before, None):  # noqa: ASYNC110 - changed by sockets
                await asyncio.sleep(0.005)

    def metrics(self) -> str:
        """The metrics of the watcher."""
        return render(self.watcher.metrics()).decode()

    async def problem(self) -> str:
        """The problems in /healthz; those of memcached itself are not among them."""
        found = [await check() for check in self.watcher.checks.values()]
        return "; ".join(each for each in found if each)

    def saved(self) -> record.ProcessRecord | None:
        """The state in the file."""
        return record.decode((self.state / files.NAME).read_bytes())


def run(directory: Path, scenario: Callable[[Pod], Awaitable[None]], gate: str | None = None) -> None:
    """Run a scenario. `gate`: the annotation `warm-up`."""

    async def connected(memcached: FakeMemcached, client: MemcachedClient) -> None:
        pod = Pod(directory, memcached, client, gate)
        memcached.answer = lambda line: pod.process.answer(line)
        await replies_again(client)
        await scenario(pod)

    with_client(connected)


def own(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log lines of the watcher and of its parts, with their levels."""
    found = [each for each in caplog.records if each.name.startswith(OWN)]
    return [f"{each.levelname} {each.getMessage()}" for each in found]


@contextmanager
def polling(watcher: PodWatcher) -> Generator[None]:
    """Let a watcher poll during the block."""
    task = asyncio.create_task(watcher.run())
    try:
        yield
    finally:
        task.cancel()
