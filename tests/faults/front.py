"""A server in front of the admission process that answers as a broken, slow or foreign one would."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from faults.proxy import DROPPED, HOST, serving_context
from faults.webhook import Webhook, caller, trusting
from memcached_operator.certificates.pki import KeyPair

REVIEWED = "application/json"


class Front:
    """Passes reviews on, and strikes them while it has a fault."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession) -> None:
        self.fault: Strike | None = None
        self.seen = 0
        self._upstream = upstream
        self._session = session

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one review."""
        self.seen += 1
        body = await request.read()
        return await (self.fault(self, request, body) if self.fault else self.passed(request, body))

    async def passed(self, request: web.BaseRequest, body: bytes) -> web.Response:
        """What the process answers."""
        headers = {name: text for name, text in request.headers.items() if name.lower() not in DROPPED}
        url = self._upstream + request.raw_path
        async with self._session.request(request.method, url, data=body, headers=headers) as reply:
            return web.Response(status=reply.status, body=await reply.read(), content_type=reply.content_type)


Strike = Callable[[Front, web.BaseRequest, bytes], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Say:
    """Answer with something else; the process is not asked."""

    text: str = ""
    status: int = 200
    content_type: str = REVIEWED
    location: str = ""

    async def __call__(self, front: Front, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        headers = {"Location": self.location} if self.location else {}
        return web.Response(status=self.status, text=self.text, content_type=self.content_type, headers=headers)


@dataclass(frozen=True)
class Late:
    """Answer rightly, so many seconds late; with None, never."""

    seconds: float | None

    async def __call__(self, front: Front, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if self.seconds is None:
            await asyncio.Event().wait()
        await asyncio.sleep(self.seconds or 0)
        return await front.passed(request, body)


@dataclass(frozen=True)
class Part:
    """Begin to answer; then cut the connection, or go on with one byte per second."""

    cut: bool

    async def __call__(self, front: Front, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        whole = await front.passed(request, body)
        answer = web.StreamResponse(headers={"Content-Type": REVIEWED, "Content-Length": str(whole.content_length)})
        await answer.prepare(request)
        assert isinstance(whole.body, bytes)
        for byte in whole.body[:20]:
            await answer.write(bytes([byte]))
            await asyncio.sleep(0 if self.cut else 1)
        if request.transport is not None:
            request.transport.abort()
        return answer


async def reset(front: Front, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    """Cut the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@dataclass(frozen=True)
class Alter:
    """Answer what the process answers, with some fields of the response replaced."""

    fields: tuple[tuple[str, Any], ...]

    async def __call__(self, front: Front, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        whole = await front.passed(request, body)
        assert isinstance(whole.body, bytes)
        answer = json.loads(whole.body)
        answer["response"].update(self.fields)
        return web.json_response(answer)


@asynccontextmanager
async def front(behind: Webhook, pair: KeyPair, *, plain: bool = False) -> AsyncGenerator[tuple[Front, str]]:
    """Serve in front of a process, with a pair of its own; the front and its address. `plain`: without TLS."""
    async with caller(trusting(behind.pair.ca)) as session:
        here = Front(behind.url, session)
        server = web.Server(here, access_log=None, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        try:
            tls = None if plain else serving_context(pair)
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
            yield here, f"https://{HOST}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
