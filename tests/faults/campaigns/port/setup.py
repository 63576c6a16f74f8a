"""The admission process at its port, a client that sends valid reviews, and the checks during every scenario."""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from faults.proxy import HOST
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Sandbox
from faults.webhook import KINDS, MUTATE, VALIDATE, Webhook, post, review, send_review
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object
from memcached_webhooks.admission import path_of

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +memcached_[a-z_.]+: ")
MAX_LOGGED_PER_SECOND = 10
MAX_LINE = 2000
"""Maximum length of a log line, in characters."""
MAX_BODY = 4 * 2**20
"""Maximum length of a body, in bytes (memcached_webhooks.bodies.LARGEST)."""
MEMORY = 160.0
"""Maximum memory of the process at any time, in MiB; its limit is 256 (config/webhook/webhook.yaml)."""
MAX_CPU = 2.0
"""Maximum CPU time of one review, in seconds. On an idle machine, other reviews wait for it."""
SLACK = 20.0
"""Seconds that a busy machine may add to a timeout."""
LARGE_LIMIT = 5.0 * TIMEOUT_FACTOR
"""Seconds within which a large valid review is answered in every scenario: the API server's timeout."""
VALID: Object = {"metadata": {"name": "cache"}, "spec": {"size": 1, "image": "example.com/app:1"}}
LARGE_VALID: Object = {**VALID, "metadata": {"name": "cache", "annotations": {"a": "x" * 200_000}}}
"""Its review is a large body (memcached_webhooks.bodies.SMALL)."""
PATH = path_of(VALIDATE, MEMCACHED)
ERRORS = (400, 404, 405, 408, 411, 413, 414, 415, 417, 431, 501, 503, 505)
"""Codes for errors of the client, and for limits."""


def head(path: str = PATH) -> str:
    """Head of a review, without the length of its body."""
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"


HEADER = head()


@dataclass
class Setup:
    """A process and a client. `limit`, `large_limit`: seconds in which valid reviews and large ones are answered."""

    sandbox: Sandbox
    webhook: Webhook
    session: aiohttp.ClientSession
    tls: ssl.SSLContext
    limit: float
    max_memory: float = 0.0
    max_sockets: float = 0.0
    slowest: float = 0.0
    slowest_large: float = 0.0
    large_limit: float = LARGE_LIMIT

    async def check_reviews(self) -> None:
        """Check that valid reviews are answered in time, that an invalid one is denied, and that memory is bounded."""
        await self._check_large_review()
        for kind in KINDS:
            for verb in (MUTATE, VALIDATE):
                await self._check_review(verb, kind, VALID, allowed=True)
        await self._check_review(VALIDATE, MEMCACHED, {**VALID, "spec": {"size": 0}}, allowed=False)
        self.check_memory()

    async def _check_review(self, verb: str, kind: Kind[Any], obj: Object, *, allowed: bool) -> None:
        async with self.in_time(f"a review by {verb}"):
            code, response = await self._response(verb, kind, obj)
        self.sandbox.check(code == 200 and response["allowed"] is allowed, f"{code} {response} for {obj}")

    async def _check_large_review(self) -> None:
        started = time.monotonic()
        code, response = await self._response(VALIDATE, MEMCACHED, LARGE_VALID)
        taken = time.monotonic() - started
        self.slowest_large = max(self.slowest_large, taken)
        self.sandbox.check(code == 200 and response["allowed"], f"{code} {response} for a large valid review")
        self.sandbox.check(taken < self.large_limit, f"a large valid review takes {taken:.1f} s")

    async def _response(self, verb: str, kind: Kind[Any], obj: Object) -> tuple[int, Any]:
        """Code and content of the response to a review. Raises FailedError if there is none."""
        try:
            return await send_review(self.session, self.webhook.url, verb, kind, review(kind, obj))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise FailedError(f"a review by {verb} of {len(str(obj))} characters got no response: {error!r}") from error

    async def check_probes(self) -> None:
        """Check that probe and metrics are answered in time, on new connections."""
        async with self.in_time("a probe"):
            ready = await self.webhook.ready()
        self.sandbox.check(ready, "the process is not ready")
        async with self.in_time("a scrape"):
            metrics = await self.webhook.metrics()
        self.sandbox.check(metrics, "the metrics are empty")

    @asynccontextmanager
    async def in_time(self, what: str) -> AsyncGenerator[None]:
        """Check that the block takes no longer than `limit`."""
        started = time.monotonic()
        yield
        taken = time.monotonic() - started
        self.slowest = max(self.slowest, taken)
        self.sandbox.check(taken < self.limit * TIMEOUT_FACTOR, f"{what} takes {taken:.1f} s")

    def check_memory(self) -> None:
        """Check the memory of the process and of its sockets together, as its cgroup counts it."""
        sockets = self.webhook.socket_memory()
        self.max_sockets = max(self.max_sockets, sockets)
        self.max_memory = max(self.max_memory, self.webhook.rss() + sockets)
        self.sandbox.check(self.max_memory < MEMORY, f"process and sockets use {self.max_memory:.0f} MiB")

    async def while_serving(self, work: Awaitable[None]) -> None:
        """Run `work` while reviews and probes are answered."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self.check_reviews()
                await self.check_probes()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def check_rejected(self, data: bytes) -> None:
        """Check that a request is answered with an error or a denial, or that the connection is closed."""
        try:
            code, response = await post(self.session, self.webhook.url, PATH, data)
        except aiohttp.ClientError:
            return
        if code == 200:
            self.sandbox.check(not response["allowed"], f"allowed: {data[:200]!r}")
        else:
            self.sandbox.check(code in ERRORS, f"{code} {response} for {data[:200]!r}")

    def check_log(self, seconds: float) -> None:
        """Check that the log has few lines, all of them ours and printable. `seconds`: how long the process has run."""
        text = self.webhook.process.log_text()
        lines = text.splitlines()
        for line in lines:
            self.sandbox.check(LINE.match(line) and line.isprintable(), f"not one of our log lines: {line[:200]!r}")
            self.sandbox.check(len(line) <= MAX_LINE, f"a log line of {len(line)} characters: {line[:200]!r}")
        limit = MAX_LOGGED_PER_SECOND * (int(seconds) + 2)
        denied = sum(" rejected " in line for line in lines)
        self.sandbox.check(denied <= limit, f"{denied} denials were logged in {seconds:.0f} s")
        self.sandbox.check(len(lines) - denied <= 20, f"{len(lines) - denied} other lines were logged")

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A new connection."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.webhook.port, ssl=self.tls, server_hostname=HOST
        )
        try:
            yield reader, writer
        finally:
            writer.transport.abort()
