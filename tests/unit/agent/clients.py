"""A served port of the agent."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from memcached_agent.addresses import Address
from memcached_agent.web.messages import HttpResponse, text
from memcached_agent.web.server import Handler, Server, listen
from memcached_agent.web.tls import Contexts, protocols
from support.ports import free_port
from support.streams import until
from unit.process.serving import Port


async def hello() -> HttpResponse:
    """A handler."""
    return text(HTTPStatus.OK, "hello")


@asynccontextmanager
async def _serving(handler: Handler, contexts: Contexts | None) -> AsyncGenerator[Port]:
    server, number = Server({"/hello": handler}), free_port()
    async with listen(server, Address("127.0.0.1", number), protocols(server, contexts) if contexts else None):
        port = Port(server, number, secure=contexts is not None)
        try:
            yield port
        finally:
            port.abort()
    await until(lambda: not server.connections)


def run_scenario(
    scenario: Callable[[Port], Awaitable[None]], handler: Handler = hello, contexts: Contexts | None = None
) -> None:
    """Run a scenario with a server of /hello, with `contexts` over TLS. All connections are closed at the end."""

    async def serve() -> None:
        async with _serving(handler, contexts) as port:
            await scenario(port)

    asyncio.run(asyncio.wait_for(serve(), 60))
