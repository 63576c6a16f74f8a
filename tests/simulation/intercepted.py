"""The requests of one process on their way to the API server: recorded, and with injected faults."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlencode

from aiohttp import web

from faults.calls import Entry, call_of, metadata
from faults.faulty import NO_RESPONSE
from faults.interception import Interception, Stream
from simulation.api.server import ApiServer, Reply, Request, Subscription
from simulation.session import LATENCY, Connection


class Relay(Interception):
    """Responds to the requests of one process with the API server's replies, unless a rule injects a fault."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__()
        self.server = server

    async def __call__(self, connection: Connection) -> None:
        """Respond to one request."""
        request = connection.request
        call = call_of(request.method, request.path, urlencode(request.query), request.content_type, request.body)
        entry, rule = self.receive(call, request.body)
        exchange = _Exchange(self, connection, entry)
        response = await (rule.fault(exchange) if rule else exchange.forward())
        if exchange.cut:
            return
        if response is not NO_RESPONSE and isinstance(response, web.Response):
            entry.code = response.status
            body = response.body
            connection.open(response.status, response.headers)
            connection.write(body if isinstance(body, bytes) else b"")
        connection.close()
        if exchange.on_response is not None:
            asyncio.get_running_loop().call_later(2 * LATENCY, exchange.on_response)


class _Watch(web.StreamResponse):
    """The response to a watch."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._connection.write(bytes(data))


class _Exchange:
    """A request in progress."""

    def __init__(self, relay: Relay, connection: Connection, entry: Entry) -> None:
        self.cut = False
        self.on_response: Callable[[], None] | None = None
        self._relay, self._connection, self._entry = relay, connection, entry

    def kill(self) -> None:
        self._relay.kill()

    def reset(self) -> None:
        self.cut = True
        self._connection.abort()

    def abort(self) -> None:
        self._connection.abort()

    def after_response(self, work: Callable[[], None]) -> None:
        self.on_response = work

    async def wait_disconnected(self) -> None:
        await self._connection.left.wait()

    async def forward(self) -> web.StreamResponse:
        request = self._connection.request
        request = request._replace(path=self._relay.renamed_path(request.path))
        if self._entry.call.verb == "watch":
            return await self._watch(request)
        reply = self._relay.server.handle(request)
        self._entry.committed = reply.status
        self._entry.version = metadata(reply.body)[1]
        return _response(reply)

    async def accept_watch(self) -> web.StreamResponse:
        self._entry.code = 200
        self._connection.open(200, {"Content-Type": "application/json"})
        return _Watch(self._connection)

    async def _watch(self, request: Request) -> web.StreamResponse:
        """Relay events until the watch is interrupted, or the client leaves."""
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        found = self._relay.server.watch(request, lines.put_nowait)
        if isinstance(found, Reply):
            self._entry.committed = found.status
            return _response(found)
        self._entry.committed = 200
        response = await self.accept_watch()
        stream = Stream(self._entry.call, response, self)
        self._relay.streams.add(stream)
        await self._relay_lines(stream, lines, found)
        return response

    async def _relay_lines(self, stream: Stream, lines: asyncio.Queue[bytes], found: Subscription) -> None:
        async def relay() -> None:
            while True:
                line = await lines.get()
                await self._relay.wait_released(stream)
                await self._send_event(stream, line)

        tasks = [asyncio.create_task(work) for work in (relay(), stream.ended.wait(), self._connection.left.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            found.close()
            self._relay.streams.discard(stream)
            for task in tasks:
                task.cancel()

    async def _send_event(self, stream: Stream, line: bytes) -> None:
        size, pause = self._relay.pace or (len(line), 0.0)
        for start in range(0, len(line), size):
            await stream.response.write(line[start : start + size])
            if pause:
                await asyncio.sleep(pause)


def _response(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=dict(reply.headers))
