"""HTTP/1.1 on one connection: a request is answered in the moment its last byte arrives.

A review takes less than a tenth of a millisecond, so nothing is waited for and no task is made for it. What is read is
bounded in size, time and number, whoever sends it.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

log = logging.getLogger(__name__)

LARGEST_BODY: Final = 4 * 2**20  # bytes; an object is at most 1.5 MiB in etcd, and a review holds two of them
LARGEST_HEAD: Final = 2**16  # bytes; an API server's has a few hundred
SMALL_BODY: Final = 2**16  # bytes; most reviews have less than a tenth
LARGE_BODIES: Final = 4  # read at the same time; more wait for their turn, small ones do not
READ_SECONDS: Final = 10.0  # for a whole request, waiting included; the API server gives up after 5
IDLE_SECONDS: Final = 100.0  # without a request: longer than Go's clients keep a connection (90)
FRAMING: Final = 0.25  # bytes around each byte of a body, at most: of its chunks, and after it
LONG_NUMBER: Final = 20  # digits of a length that nobody has
GRACE_SECONDS: Final = 5.0  # for requests under way at the very end
CLOSE_SECONDS: Final = 5.0  # for the other side to take its last answer and agree; asyncio would wait 30, or for ever
WRITE_BUFFER: Final = (
    2**16
)  # bytes of answers that nobody reads, before nothing more is read; by default 512 KiB in TLS

TEXT: Final = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What is sent back; `allow`: the methods that a path has, where it was asked by another."""

    status: int
    body: bytes
    content_type: str = TEXT
    allow: str = ""


def told(status: int, text: str) -> Answer:
    """An answer for people."""
    return Answer(status, text.encode())


@dataclass(slots=True)
class Request:
    """What is known of a request so far. `path` is empty until its head is whole; `since`: `time.perf_counter()` then.

    `refused`: it was answered before it was whole, and what is left of it is thrown away.
    """

    url: bytes = b""
    method: str = ""
    path: str = ""
    content_type: str = ""
    length: int | None = None
    waits_for_continue: bool = False
    since: float = 0.0
    body: bytearray = field(default_factory=bytearray)
    size: int = 0
    refused: bool = False


@dataclass(eq=False)
class Server:
    """What the connections of a port have in common.

    `respond` answers a whole request, and must not raise. `noted` is told of every answer to a request with a path.
    `draining`: each connection ends with its next answer, so that clients open their next one elsewhere.
    """

    respond: Callable[[Request], Answer]
    noted: Callable[[Request, Answer], None] = lambda _, __: None
    draining: bool = False
    connections: dict["Connection", None] = field(default_factory=dict["Connection", None])
    large: set["Connection"] = field(default_factory=set["Connection"])
    waiting: deque["Connection"] = field(default_factory=deque["Connection"])
    unused: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self) -> "Connection":
        """What asyncio asks for a new connection."""
        return Connection(self)

    def under_way(self, path: str) -> int:
        """How many requests of a path are being read."""
        return sum(each.request.path == path and not each.request.refused for each in self.connections)

    async def close(self) -> None:
        """Close what is idle; the rest after its answer, or after GRACE_SECONDS."""
        self.draining = True
        for each in list(self.connections):
            if not each.busy:
                each.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                while self.connections:
                    self.unused.clear()
                    await self.unused.wait()
        for each in list(self.connections):
            each.abort()


class Connection(asyncio.Protocol):
    """One of them. Requests come one after the other, and so do their answers.

    `busy`: from the first byte of a request to its answer.
    """

    def __init__(self, server: Server) -> None:
        self.request = Request()
        self.busy = False
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._cut: asyncio.TimerHandle | None = None
        self._used_at = self._loop.time()
        self._count = 0  # bytes of the request under way, all things included
        self._is_full = False

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It begins, its handshake done."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(WRITE_BUFFER)
        self._server.connections[self] = None
        self._end_if_unused()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """It has ended, for whatever reason."""
        self._server.connections.pop(self, None)
        if not self._server.connections:
            self._server.unused.set()
        for timer in (self._deadline, self._idle, self._cut):
            if timer is not None:
                timer.cancel()
        self._give_way()

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole with this."""
        if self._transport.is_closing():
            return
        self._count += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError:
            # The outermost edge: a defect that one request meets must not end the process.
            log.exception("a request met an error of ours")
            self.abort()
        except HttpParserError as error:
            self._refuse_and_close(told(HTTPStatus.BAD_REQUEST, f"this is no HTTP/1.1: {error}"))
        except HttpParserUpgrade:
            self.close()
        if self.busy and not self._transport.is_closing():
            self._bound()

    def eof_received(self) -> None:
        """The other side has said its last word; what it has not finished by now is nothing."""
        self.close()

    def pause_writing(self) -> None:
        """The other side does not read its answers."""
        self._is_full = True
        self._flow()

    def resume_writing(self) -> None:
        """It does again."""
        self._is_full = False
        self._flow()

    # What the parser tells.

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.busy = True

    def on_url(self, url: bytes) -> None:
        """A piece of it."""
        self.request.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole header; what comes after the body is none of ours."""
        if self.request.path:
            return
        match name.lower():
            case b"content-type":
                self.request.content_type = value.decode("latin-1").partition(";")[0].strip().lower()
            case b"content-length":
                # The parser has seen to it that these are digits, but not to their number.
                self.request.length = int(value) if len(value) < LONG_NUMBER else LARGEST_BODY + 1
            case b"expect":
                self.request.waits_for_continue = value.lower() == b"100-continue"
            case _:
                pass

    def on_headers_complete(self) -> None:
        """The head is whole."""
        request = self.request
        request.since = time.perf_counter()
        request.method = self._parser.get_method().decode("latin-1")
        request.path = request.url.partition(b"?")[0].decode("latin-1")
        if (request.length or 0) > LARGEST_BODY:
            self._refuse_size()
            return
        if request.length is None or request.length > SMALL_BODY:
            self._take_turn()
        if request.waits_for_continue and self._parser.get_http_version() != "1.0":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A piece of it."""
        request = self.request
        request.size += len(body)
        if request.refused:
            return
        request.body += body
        if request.size > LARGEST_BODY:
            self._refuse_size()

    def on_message_complete(self) -> None:
        """A whole request."""
        if self._transport.is_closing():
            return
        keep = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        keep = keep and not self._server.draining and not self.request.refused
        if not self.request.refused:
            self._send(self._server.respond(self.request), keep=keep)
        self._give_way()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.request, self.busy, self._count, self._used_at = Request(), False, 0, self._loop.time()
        if not keep:
            self.close()

    # What is done about it.

    def close(self) -> None:
        """Close when all is written, or after CLOSE_SECONDS. To close a TLS transport twice is to lose hold of it."""
        self._give_way()
        if self._cut is None:
            self._cut = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)
        if not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Cut it."""
        self._transport.abort()

    def _bound(self) -> None:
        """A request is not whole yet: it has a time, and a size, whatever it consists of."""
        if self._deadline is None:
            self._deadline = self._loop.call_later(READ_SECONDS, self._is_late)
        if not self.request.path and self._count > LARGEST_HEAD:
            text = f"want a head of at most {LARGEST_HEAD} bytes"
            self._refuse_and_close(told(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text))
        elif self._count > LARGEST_HEAD + (1 + FRAMING) * self.request.size or self._count > 2 * LARGEST_BODY:
            # A body in crumbs, a trailer without an end, or much more of what was refused.
            self.abort()

    def _take_turn(self) -> None:
        """Few large bodies are read at once: this one now, or later."""
        if len(self._server.large) < LARGE_BODIES:
            self._server.large.add(self)
        else:
            self._server.waiting.append(self)
            self._flow()

    def _give_way(self) -> None:
        """Let the next large body be read."""
        large, waiting = self._server.large, self._server.waiting
        if self in large:
            large.remove(self)
            if waiting:
                large.add(waiting[0])
                waiting.popleft()._flow()
        elif waiting and self in waiting:
            waiting.remove(self)
            self._flow()

    def _flow(self) -> None:
        """Read only what can be answered, and a large body only when it is its turn."""
        if self._transport.is_closing():
            return
        if self._is_full or self in self._server.waiting:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _refuse(self, answer: Answer) -> None:
        """Answer before the request is whole. The rest is still read: who goes on sending would not see the answer."""
        if not self.request.refused:
            self.request.refused = True
            self.request.body = bytearray()
            self._send(answer, keep=False)
            self._give_way()

    def _refuse_size(self) -> None:
        self._refuse(told(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"want a body of at most {LARGEST_BODY} bytes"))

    def _refuse_and_close(self, answer: Answer) -> None:
        self._refuse(answer)
        self.close()

    def _is_late(self) -> None:
        self._refuse_and_close(told(HTTPStatus.REQUEST_TIMEOUT, f"want a whole request within {READ_SECONDS:g} s"))

    def _send(self, answer: Answer, *, keep: bool) -> None:
        if self.request.path:
            self._server.noted(self.request, answer)
        self._transport.write(_head(answer, keep=keep) + (b"" if self.request.method == "HEAD" else answer.body))

    def _end_if_unused(self) -> None:
        """One timer for many requests: to set one for each would cost as much as a rule."""
        left = IDLE_SECONDS - (self._loop.time() - self._used_at)
        if left <= 0 and not self.busy:
            self.close()
        else:
            self._idle = self._loop.call_later(max(left, 1.0), self._end_if_unused)


def _head(answer: Answer, *, keep: bool) -> bytes:
    more = f"Allow: {answer.allow}\r\n" if answer.allow else ""
    more += "" if keep else "Connection: close\r\n"
    return (
        f"HTTP/1.1 {answer.status} {_phrase(answer.status)}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\nDate: {_date(int(time.time()))}\r\n{more}\r\n"
    ).encode("latin-1")


@cache
def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
