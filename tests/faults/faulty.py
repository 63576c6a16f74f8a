"""The faults a proxy can strike a request with. Each is a value; its state is in the rule that carries it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web


class Exchange(Protocol):
    """One request in the hands of a fault."""

    async def forward(self) -> web.StreamResponse:
        """Ask the API server; for a watch, pass its events on until it ends."""
        ...

    async def listen(self) -> web.StreamResponse:
        """Accept a watch without asking the API server."""
        ...

    def kill(self) -> None:
        """SIGKILL the operator."""
        ...

    def reset(self) -> None:
        """Cut the connection: the operator gets no answer."""
        ...

    def later(self, work: Callable[[], None]) -> None:
        """Do something as soon as the operator has the answer."""
        ...


FieldError = Callable[[Exchange], Awaitable[web.StreamResponse]]

DEAF = web.Response(status=200)
"""Stands for an answer that nobody will read."""


@dataclass(frozen=True)
class Refuse:
    """Answer with an error; the API server is not asked."""

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
    """Cut the connection; the API server is not asked."""

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        exchange.reset()
        return DEAF


@dataclass(frozen=True)
class Lose:
    """The API server carries it out, and the reply is lost: the connection is cut, or a gateway answers with a code."""

    code: int = 0

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.forward()
        if self.code:
            return await Refuse(self.code)(exchange)
        exchange.reset()
        return DEAF


@dataclass(frozen=True)
class Kill:
    """SIGKILL the operator before, during (carried out, no reply) or after a request."""

    moment: str

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        if self.moment == "after":
            exchange.later(exchange.kill)
            return await exchange.forward()
        exchange.kill()
        if self.moment == "during":
            await exchange.forward()
        exchange.reset()
        return DEAF


@dataclass(frozen=True)
class Delay:
    """Ask the API server so many seconds late."""

    seconds: float

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await asyncio.sleep(self.seconds)
        return await exchange.forward()


@dataclass(frozen=True)
class Hang:
    """Never answer; the API server is not asked."""

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await asyncio.Event().wait()
        return DEAF


@dataclass(frozen=True)
class Speak:
    """Accept a watch, say some bytes, and then close it, cut the connection, or stay silent."""

    said: bytes = b""
    end: str = "close"

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        response = await exchange.listen()
        if self.said:
            await response.write(self.said)
        if self.end == "silence":
            await asyncio.Event().wait()
        if self.end == "cut":
            exchange.reset()
        return response


@dataclass(frozen=True)
class Serve:
    """Answer a list with this body instead of the present one."""

    body: bytes

    async def __call__(self, _: Exchange) -> web.StreamResponse:
        return web.Response(body=self.body, content_type="application/json")


def status(code: int, reason: str = "", message: str = "", cause: str = "") -> dict[str, Any]:
    """An error as the API server says it."""
    details = {"details": {"causes": [{"reason": cause}]}} if cause else {}
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return {**body, "code": code, **details}


def event(what: str, obj: object) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": what, "object": obj}).encode() + b"\n"
