"""Faults of memcached and of clients, as the agent beside memcached sees them.

memcached is simulated on loopback, so that its replies can be late, too long, or missing. A scrape must be correct or
report the error; its duration and the agent's memory are bounded; the probes of the kubelet succeed throughout.
"""

import asyncio
import os
import re
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass
from functools import partial

import aiohttp

from faults.campaigns import agent_units
from faults.case import Case, References, in_gate
from faults.process import Operator, supervised
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Sandbox, wait_until
from support.ports import free_port
from unit.agent.memcacheds import HANG, FakeMemcached
from unit.agent.samples import replies

ITEMS = 19999
"""The items of the simulated memcached."""
SCRAPE = 9.0
"""Maximum seconds of a scrape: Prometheus waits 10 s by default."""
RECOVERY = 15.0
"""Seconds until the agent has connected again: it waits at most 5 s between two attempts."""
MAX_MEMORY = 40.0
"""Resident MiB; the limit of the container is 48 MiB."""
CLIENTS = 200
PROBES = 20
MAX_FILES = 64
"""Open files of the agent: 32 connections of a port, one of memcached, and a few of its own."""
PROBE_PATHS = ("/livez", "/readyz")
"""The paths on the port for probes."""
PROBE = b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
HALF_HEAD = b"GET /metrics HTTP/1.1\r\nHost: a\r\nA: "
REQUESTS = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50


@dataclass
class Setup:
    """An agent and its memcached."""

    sandbox: Sandbox
    process: Operator
    memcached: FakeMemcached
    port: int
    probes: int
    session: aiohttp.ClientSession

    async def get(self, path: str = "/metrics") -> tuple[int, str]:
        """The status and the body of a response."""
        port = self.probes if path in PROBE_PATHS else self.port
        async with self.session.get(f"http://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()

    async def scrape(self) -> dict[str, float]:
        """The metrics, by name with labels, of a scrape in time."""
        started = time.monotonic()
        try:
            _, text = await self.get()
        except aiohttp.ClientError as error:
            raise FailedError(f"the scrape failed: {error}") from error
        taken = time.monotonic() - started
        self.sandbox.check(taken < SCRAPE * TIMEOUT_FACTOR, f"the scrape took {taken:.1f} s")
        lines = (line.rpartition(" ") for line in text.splitlines() if line[:1] != "#")
        return {name: float(value) for name, _, value in lines}

    async def is_up(self) -> bool:
        """Whether the agent serves, and memcached replies to it."""
        try:
            return "\nmemcached_up 1\n" in (await self.get())[1]
        except aiohttp.ClientError:
            return False

    async def check_works(self) -> None:
        """Check that the agent reports the values of memcached, after a while."""
        await wait_until(self.is_up, RECOVERY, "the agent reports memcached")
        found = await self.scrape()
        items = found["memcached_current_items"]
        self.sandbox.check(items == ITEMS, f"memcached_current_items is {items:g}, want {ITEMS}")

    async def check_reported(self, reason: str) -> None:
        """Check that a scrape reports that memcached does not work, with this reason, and that the probes succeed."""
        found = await self.scrape()
        count = found[f'memcached_agent_connection_errors_total{{reason="{reason}"}}']
        self.sandbox.check(found["memcached_up"] == 0, "memcached_up is 1 although memcached does not work")
        self.sandbox.check(count >= 1, f"no connection error with the reason {reason}")
        await self.check_probes()

    async def check_probes(self) -> None:
        """Check that the probes of the kubelet succeed."""
        for path in PROBE_PATHS:
            answer = await self.get(path)
            self.sandbox.check(answer == (200, "ok\n"), f"{path}: {answer}")

    def check_process(self) -> None:
        """Check the memory and the log of the agent, and that it was not restarted."""
        (text,) = re.findall(r"^VmHWM:\s+(\d+) kB", open_status(self.process.pid), re.MULTILINE)
        memory = int(text) / 1024
        self.sandbox.check(memory < MAX_MEMORY, f"the agent used {memory:.0f} MiB")
        self.sandbox.check("Traceback" not in self.process.log_text(), "there is a traceback in the log")
        self.sandbox.check(len(self.process.starts) == 1, "the agent was restarted")


def open_status(pid: int) -> str:
    """The status of a process, from the kernel."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:  # noqa: PTH123 - read while the process runs
        return file.read()


Scenario = Callable[[Setup], Awaitable[None]]


async def run(sandbox: Sandbox, _: References, scenario: Scenario) -> None:
    """One scenario; the agent reports the values of memcached before and after it."""
    memcached, port, probes = FakeMemcached(), free_port(), free_port()
    addresses = {"memcached": memcached.port, "metrics-bind-address": port, "probes-bind-address": probes}
    arguments = [f"--{name}=127.0.0.1:{number}" for name, number in addresses.items()]
    log = sandbox.operator.log.with_suffix(".agent.log")
    process = Operator(arguments, {}, sandbox.settings.sources, log, "memcached_agent")
    timeout = aiohttp.ClientTimeout(total=30 * TIMEOUT_FACTOR)
    async with memcached.running(), supervised(process), aiohttp.ClientSession(timeout=timeout) as session:
        process.start()
        setup = Setup(sandbox, process, memcached, port, probes, session)
        await setup.check_works()
        await scenario(setup)
        await setup.check_works()
        await setup.check_probes()
        setup.check_process()


async def hangs(setup: Setup) -> None:
    """memcached does not reply to a command."""
    setup.memcached.replies["stats"] = HANG
    await setup.check_reported("timeout")
    setup.memcached.replies |= replies()


async def parallel(setup: Setup) -> None:
    """Parallel scrapes are answered by one sequence of commands, so that many clients cost memcached little."""
    setup.memcached.delay = 0.2
    before = len(setup.memcached.commands)
    await asyncio.gather(*(setup.scrape() for _ in range(20)))
    sent = len(setup.memcached.commands) - before
    setup.memcached.delay = 0.0
    setup.sandbox.check(sent <= 12, f"20 parallel scrapes sent {sent} commands")


async def slow_clients(setup: Setup, data: bytes, *, probes: bool = False) -> None:
    """Many clients send an incomplete request, or many requests whose responses they do not read.

    `probes`: to the port of the probes instead of that of the metrics.
    """
    async with AsyncExitStack() as stack:
        for _ in range(CLIENTS):
            port = setup.probes if probes else setup.port
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
            stack.callback(_abort, writer)  # a StreamWriter without a reference closes its connection
            writer.write(data)
        for _ in range(3):
            setup.sandbox.check(await setup.is_up(), "other clients get no metrics")
            files = len(os.listdir(f"/proc/{setup.process.pid}/fd"))  # noqa: PTH208 - of a running process
            setup.sandbox.check(files <= MAX_FILES, f"the agent has {files} open files")
            await setup.check_probes()


def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def crowded_metrics(setup: Setup) -> None:
    """A probe that has connected is answered, although many clients connect to the port of the metrics."""
    with socket.create_connection(("127.0.0.1", setup.probes)) as probe:
        await slow_clients(setup, HALF_HEAD)
        with suppress(ConnectionError):
            probe.sendall(PROBE)
        await _check_answered(setup, probe)


async def bursts(setup: Setup) -> None:
    """A probe arrives just before many others on its port, while the agent is busy: they do not displace it."""
    for _ in range(PROBES):
        with ExitStack() as stack:
            setup.process.signal(signal.SIGSTOP)
            probe = stack.enter_context(socket.create_connection(("127.0.0.1", setup.probes)))
            probe.sendall(PROBE)
            for _ in range(MAX_FILES):
                other = stack.enter_context(socket.socket())
                other.setblocking(False)
                other.connect_ex(("127.0.0.1", setup.probes))
            setup.process.signal(signal.SIGCONT)
            await _check_answered(setup, probe)


async def _check_answered(setup: Setup, probe: socket.socket) -> None:
    answer = await asyncio.to_thread(_answer, probe)
    setup.sandbox.check(answer.startswith(b"HTTP/1.1 200 "), f"a probe was answered with {answer[:80]!r}")


def _answer(client: socket.socket) -> bytes:
    """What the agent answers; empty if it resets the connection."""
    client.settimeout(SCRAPE * TIMEOUT_FACTOR)
    with suppress(ConnectionError):
        return client.recv(4096)
    return b""


SCENARIOS: dict[str, Scenario] = {
    "bursts": bursts,
    "crowded-metrics": crowded_metrics,
    "hangs-at-once": hangs,
    "parallel-scrapes": parallel,
    "half-heads": partial(slow_clients, data=HALF_HEAD),
    "half-probes": partial(slow_clients, data=HALF_HEAD, probes=True),
    "unread-responses": partial(slow_clients, data=REQUESTS),
}


def cases() -> list[Case]:
    """One case per scenario, and those of the unit tests."""
    own = [Case(f"agent/{name}", partial(run, scenario=scenario)) for name, scenario in SCENARIOS.items()]
    found = own + agent_units.cases()
    return in_gate(found, "agent/hangs-at-once", "agent/late-replies")
