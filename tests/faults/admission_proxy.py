"""A proxy in front of the admission process that injects broken, slow or foreign responses."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from faults.proxy import DROPPED_HEADERS, HOST, serving_context
from faults.webhook import Webhook, client_context, client_session
from memcached_operator.certificates.pki import KeyPair

CONTENT_TYPE = "application/json"


class AdmissionProxy:
    """Forwards reviews, and injects a fault while one is set."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession) -> None:
        self.fault: AdmissionFault | None = None
        self._upstream = upstream
        self._session = session

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        return await (self.fault(self, request, body) if self.fault else self.forward(request, body))

    async def forward(self, request: web.BaseRequest, body: bytes) -> web.Response:
        """The response of the admission process."""
        headers = {name: text for name, text in request.headers.items() if name.lower() not in DROPPED_HEADERS}
        url = self._upstream + request.raw_path
        async with self._session.request(request.method, url, data=body, headers=headers) as reply:
            return web.Response(status=reply.status, body=await reply.read(), content_type=reply.content_type)


AdmissionFault = Callable[[AdmissionProxy, web.BaseRequest, bytes], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Respond:
    """Send this response; the admission process does not receive the review."""

    text: str = ""
    status: int = 200
    content_type: str = CONTENT_TYPE

    async def __call__(self, proxy: AdmissionProxy, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        return web.Response(status=self.status, text=self.text, content_type=self.content_type)


@dataclass(frozen=True)
class Delay:
    """Send the correct response after this many seconds; None: never."""

    seconds: float | None

    async def __call__(self, proxy: AdmissionProxy, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if self.seconds is None:
            await asyncio.Event().wait()
        await asyncio.sleep(self.seconds or 0)
        return await proxy.forward(request, body)


@dataclass(frozen=True)
class OnlyFor:
    """Inject a fault into the reviews of one of our webhooks only, `mutate` or `validate`."""

    verb: str
    fault: AdmissionFault

    async def __call__(self, proxy: AdmissionProxy, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if request.path.startswith(f"/{self.verb}-"):
            return await self.fault(proxy, request, body)
        return await proxy.forward(request, body)


async def cut(proxy: AdmissionProxy, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    """Begin the response, then close the connection."""
    complete = await proxy.forward(request, body)
    response = web.StreamResponse(
        headers={"Content-Type": CONTENT_TYPE, "Content-Length": str(complete.content_length)}
    )
    await response.prepare(request)
    assert isinstance(complete.body, bytes)
    await response.write(complete.body[:20])
    return await reset(proxy, request, body)


async def reset(proxy: AdmissionProxy, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    """Close the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@dataclass(frozen=True)
class ChangeFields:
    """Forward the review, and replace some fields of the response."""

    fields: tuple[tuple[str, Any], ...]

    async def __call__(self, proxy: AdmissionProxy, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        complete = await proxy.forward(request, body)
        assert isinstance(complete.body, bytes)
        response = json.loads(complete.body)
        response["response"].update(self.fields)
        return web.json_response(response)


@asynccontextmanager
async def admission_proxy(webhook: Webhook, pair: KeyPair) -> AsyncGenerator[tuple[AdmissionProxy, str]]:
    """Start the proxy with its own certificate; returns it and its URL."""
    async with client_session(client_context(webhook.pair.ca)) as session:
        started = AdmissionProxy(webhook.url, session)
        server = web.Server(started, access_log=None, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving_context(pair)).start()
            yield started, f"https://{HOST}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
