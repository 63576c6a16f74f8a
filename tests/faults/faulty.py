"""The faults that a proxy can inject into a request. Each is a value without state."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web


class Exchange(Protocol):
    """One request, as a fault can handle it."""

    async def forward(self) -> web.StreamResponse:
        """Send the request to the API server; relay the events of a watch until it ends."""
        ...

    async def accept_watch(self) -> web.StreamResponse:
        """Accept a watch without the API server."""
        ...

    def kill(self) -> None:
        """SIGKILL the operator."""
        ...

    def reset(self) -> None:
        """Close the connection without a response."""
        ...

    def after_response(self, work: Callable[[], None]) -> None:
        """Call `work` as soon as the operator has the response."""
        ...

    async def wait_disconnected(self) -> None:
        """Wait until the operator has closed the connection."""
        ...


Fault = Callable[[Exchange], Awaitable[web.StreamResponse]]

NO_RESPONSE = web.Response(status=200)
"""Returned when nothing can be sent any more."""


@dataclass(frozen=True)
class Reject:
    """Respond with an error; the API server does not receive the request."""

    code: int
    reason: str = ""
    retry_after: int | None = None
    message: str = "injected by the test"
    cause: str = ""

    async def __call__(self, _: Exchange) -> web.StreamResponse:
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        text = json.dumps(status(self.code, self.reason, self.message, self.cause))
        return web.Response(status=self.code, text=text, content_type="application/json", headers=headers)


@dataclass(frozen=True)
class Reset:
    """Close the connection; the API server does not receive the request."""

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        exchange.reset()
        return NO_RESPONSE


@dataclass(frozen=True)
class LoseReply:
    """The API server executes the request, but the reply is lost: the connection closes, or a gateway sends `code`."""

    code: int = 0

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.forward()
        if self.code:
            return await Reject(self.code)(exchange)
        exchange.reset()
        return NO_RESPONSE


@dataclass(frozen=True)
class Kill:
    """SIGKILL the operator before, during (executed, no reply) or after a request."""

    moment: str

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        if self.moment == "after":
            exchange.after_response(exchange.kill)
            return await exchange.forward()
        exchange.kill()
        if self.moment == "during":
            await exchange.forward()
        exchange.reset()
        return NO_RESPONSE


@dataclass(frozen=True)
class Delay:
    """Send the request to the API server after this many seconds."""

    seconds: float

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await asyncio.sleep(self.seconds)
        return await exchange.forward()


@dataclass(frozen=True)
class Hang:
    """Never respond; the API server does not receive the request."""

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.wait_disconnected()
        return NO_RESPONSE


@dataclass(frozen=True)
class ServeWatch:
    """Accept a watch, send some bytes, and then close it, abort the connection, or stay silent."""

    data: bytes = b""
    end: str = "close"

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        response = await exchange.accept_watch()
        if self.data:
            await response.write(self.data)
        if self.end == "silence":
            await exchange.wait_disconnected()
        if self.end == "cut":
            exchange.reset()
        return response


@dataclass(frozen=True)
class ServeList:
    """Respond to a list with this body."""

    body: bytes

    async def __call__(self, _: Exchange) -> web.StreamResponse:
        return web.Response(body=self.body, content_type="application/json")


def status(code: int, reason: str = "", message: str = "", cause: str = "") -> dict[str, Any]:
    """An error as the API server returns it."""
    details = {"details": {"causes": [{"reason": cause}]}} if cause else {}
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return {**body, "code": code, **details}


def event(event_type: str, obj: object) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"
