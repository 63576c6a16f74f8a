"""The admission process on its port, a good client of it, and what must hold all the time."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from faults.proxy import HOST
from faults.stage import PATIENCE, Stage
from faults.webhook import JSON, KINDS, MUTATE, VALIDATE, Webhook, asked, review, sent
from memcached_api.kinds import Kind
from memcached_api.memcached import MEMCACHED
from memcached_operator.kube.resource import Object
from memcached_webhooks.admission import path_of

SEED = 12
LARGEST = 4 * 2**20
"""Bytes of a body that is read (memcached_webhooks.bodies.LARGEST)."""
MEMORY = 160.0
"""MiB that the process may have at any time: it may use 256 (config/webhook/webhook.yaml)."""
MOST_WORK = 2.0
"""Seconds of CPU for one review, whatever is in it; on an idle machine that is how long all others wait."""
SLACK = 20.0
"""Seconds that a busy machine may add to a time-out."""
LARGE_WITHIN = 5.0
"""Seconds within which a large good review is answered, beside anything: the API server gives up after them."""
GOOD: Object = {"metadata": {"name": "cache"}, "spec": {"size": 1, "image": "example.com/app:1"}}
LARGE_GOOD: Object = {**GOOD, "metadata": {"name": "cache", "annotations": {"a": "x" * 200_000}}}
"""Its review is a large body (memcached_webhooks.bodies.SMALL)."""
PATH = path_of(VALIDATE, MEMCACHED)
ERRORS = (400, 404, 405, 408, 411, 413, 414, 415, 417, 431, 501, 503, 505)
"""Codes that are not our fault, and allow nothing."""


def head(path: str = PATH) -> str:
    """The head of a review, but for the length of its body."""
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"


HEADER = head()


@dataclass
class Scene:
    """A process, and a client of it. `soon`: seconds within which a good review is answered."""

    stage: Stage
    webhook: Webhook
    session: aiohttp.ClientSession
    tls: ssl.SSLContext
    soon: float
    most: float = 0.0
    most_sockets: float = 0.0
    longest: float = 0.0
    longest_large: float = 0.0

    async def well(self) -> None:
        """Good reviews are answered in time, a bad one refused, and memory is bounded."""
        for kind in KINDS:
            for verb in (MUTATE, VALIDATE):
                await self._reviewed(verb, kind, GOOD, allowed=True)
        await self._reviewed(VALIDATE, MEMCACHED, {**GOOD, "spec": {"size": 0}}, allowed=False)
        await self._large_reviewed()
        self.measured()

    async def _reviewed(self, verb: str, kind: Kind[Any], obj: Object, *, allowed: bool) -> None:
        async with self.in_time(f"a review by {verb}"):
            code, response = await asked(self.session, self.webhook.url, verb, kind, review(kind, obj))
        self.stage.holds(code == 200 and response["allowed"] is allowed, f"{code} {response} for {obj}")

    async def _large_reviewed(self) -> None:
        started = time.monotonic()
        code, response = await asked(self.session, self.webhook.url, VALIDATE, MEMCACHED, review(MEMCACHED, LARGE_GOOD))
        taken = time.monotonic() - started
        self.longest_large = max(self.longest_large, taken)
        self.stage.holds(code == 200 and response["allowed"], f"{code} {response} for a large good review")
        self.stage.holds(taken < LARGE_WITHIN * PATIENCE, f"a large good review takes {taken:.1f} s")

    async def probed(self) -> None:
        """A kubelet, and Prometheus, get their answers in time, on connections of their own."""
        async with self.in_time("a probe"):
            ready = await self.webhook.ready()
        self.stage.holds(ready, "the process is not ready")
        async with self.in_time("a scrape"):
            metrics = await self.webhook.metrics()
        self.stage.holds(metrics, "there are no metrics")

    @asynccontextmanager
    async def in_time(self, what: str) -> AsyncGenerator[None]:
        """What is awaited takes no longer than `soon`."""
        started = time.monotonic()
        yield
        taken = time.monotonic() - started
        self.longest = max(self.longest, taken)
        self.stage.holds(taken < self.soon * PATIENCE, f"{what} takes {taken:.1f} s")

    def measured(self) -> None:
        """Memory is bounded, that of the process and of its sockets together, as its cgroup counts it."""
        sockets = self.webhook.socket_memory()
        self.most_sockets = max(self.most_sockets, sockets)
        self.most = max(self.most, self.webhook.rss() + sockets)
        self.stage.holds(self.most < MEMORY, f"the process has {self.most:.0f} MiB, with its sockets")

    async def while_well(self, work: Awaitable[None]) -> None:
        """Do something, while reviews and probes are answered."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self.well()
                await self.probed()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def refused(self, data: bytes, path: str = PATH, **headers: str) -> None:
        """What is sent is answered with an error, or a refusal; or the connection is cut."""
        given = {name.replace("_", "-"): text for name, text in headers.items()}
        try:
            code, response = await sent(self.session, self.webhook.url, path, data, {**JSON, **given})
        except aiohttp.ClientError:
            return
        if code == 200:
            self.stage.holds(not response["allowed"], f"allowed: {data[:200]!r}")
        else:
            self.stage.holds(code in ERRORS, f"{code} {response} for {data[:200]!r}")

    @asynccontextmanager
    async def line(self, *, tls: bool = True) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection of one's own."""
        context, name = (self.tls, HOST) if tls else (None, None)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.webhook.port, ssl=context, server_hostname=name
        )
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def said(self, data: bytes, *, tls: bool = True) -> bytes:
        """What the process says to some bytes, until it closes the connection or a second of silence."""
        found = b""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with self.line(tls=tls) as (reader, writer):
                writer.write(data)
                with suppress(ConnectionError):
                    await writer.drain()
                while chunk := await asyncio.wait_for(reader.read(65536), 1):
                    found += chunk
        return found

    async def unanswered(self, data: bytes, *, tls: bool = True) -> None:
        """Some bytes allow nothing."""
        found = await self.said(data, tls=tls)
        self.stage.holds(b'"allowed":true' not in found, f"allowed: {data[:200]!r}")
        self.stage.holds(b" 500 " not in found[:20], f"{found[:100]!r} for {data[:200]!r}")
