"""HTTP/1.1 without TLS, byte by byte: what is answered, what is refused, and what is bounded."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from memcached_webhooks import protocol
from memcached_webhooks.protocol import Answer, Request, Server, told

STATUS = re.compile(rb"HTTP/1\.1 (\d+ [A-Za-z ]+)\r")
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Place:
    """A server that answers with what it was sent, and notes each answer."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, int]] = []
        self.server = Server(self.answer, lambda request, answer: self.noted.append((request.path, answer.status)))
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    def answer(self, request: Request) -> Answer:
        """One request."""
        return told(200, f"{request.method} {request.path} {request.content_type} {len(request.body)}!")

    async def come(self, data: bytes = b"", limit: int = 2**16) -> Line:
        """A new connection, and what is said first on it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    async def said(self, data: bytes) -> bytes:
        """All that is answered to some bytes, until the other side closes."""
        reader, writer = await self.come(data)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 5)

    @contextmanager
    def left(self) -> Generator[None]:
        """All connections are cut in the end."""
        try:
            yield
        finally:
            for writer in self._writers:
                writer.transport.abort()


def play(story: Callable[[Place], Awaitable[None]]) -> Place:
    """Serve while a story goes on."""

    async def serve() -> Place:
        place = Place()
        listening = await asyncio.get_running_loop().create_server(place.server, "127.0.0.1", 0)
        place.port = listening.sockets[0].getsockname()[1]
        with place.left():
            await story(place)
        listening.close()
        await place.server.close()
        assert not place.server.connections
        assert not place.server.large
        assert not place.server.waiting
        return place

    return asyncio.run(asyncio.wait_for(serve(), 20))


def post(*headers: str, body: bytes = b"", path: str = "/", version: str = "1.1") -> bytes:
    """A request."""
    lines = [f"POST {path} HTTP/{version}", "Host: a", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def sized(body: bytes, *headers: str, path: str = "/", version: str = "1.1") -> bytes:
    """A request with the length of its body."""
    return post(f"Content-Length: {len(body)}", *headers, body=body, path=path, version=version)


ANSWERED: dict[str, tuple[bytes, list[bytes], bytes]] = {
    "a body": (sized(b"12345"), [b"200 OK"], b"POST /  5!"),
    "a path with a query": (sized(b"", path="/a?timeout=5s"), [b"200 OK"], b"POST /a  0!"),
    "a type with parameters": (sized(b"", "Content-Type: Application/JSON; charset=utf-8"), [b"200 OK"], b"json 0!"),
    "one after the other": (sized(b"1") + sized(b"22"), [b"200 OK", b"200 OK"], b"2!"),
    "chunks": (post("Transfer-Encoding: chunked", body=b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), [b"200 OK"], b" 5!"),
    "trailers": (post("Transfer-Encoding: chunked", body=b"1\r\na\r\n0\r\nA: b\r\n\r\n"), [b"200 OK"], b" 1!"),
    "a client that waits": (sized(b"1", "Expect: 100-continue"), [b"100 Continue", b"200 OK"], b" 1!"),
    "a last request": (sized(b"1", "Connection: close") + sized(b"2"), [b"200 OK"], b" 1!"),
    "an older client": (sized(b"1", version="1.0") + sized(b"2"), [b"200 OK"], b" 1!"),
    "no body for HEAD": (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", [b"200 OK"], b"\r\n\r\n"),
    "a trailer is no header": (
        post("Content-Type: a/b", "Transfer-Encoding: chunked", body=b"1\r\na\r\n0\r\nContent-Type: c/d\r\n\r\n"),
        [b"200 OK"],
        b" a/b 1!",
    ),
    "an older client that waits": (sized(b"1", "Expect: 100-continue", version="1.0"), [b"200 OK"], b" 1!"),
    "no upgrade": (sized(b"", "Connection: Upgrade", "Upgrade: h2c"), [b"200 OK"], b" 0!"),
}


@pytest.mark.parametrize(("data", "statuses", "end"), ANSWERED.values(), ids=ANSWERED.keys())
def test_requests_are_answered_in_turn(data: bytes, statuses: list[bytes], end: bytes) -> None:
    async def story(place: Place) -> None:
        found = await place.said(data)
        assert STATUS.findall(found) == statuses
        assert found.endswith(end)

    play(story)


def test_a_request_may_come_byte_by_byte() -> None:
    async def story(place: Place) -> None:
        reader, writer = await place.come()
        for byte in sized(b"12345", "Content-Type: application/json", path="/some/path"):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
            await asyncio.sleep(0.0005)
        assert (await reader.readuntil(b"!")).endswith(b"POST /some/path application/json 5!")

    play(story)


REFUSED: dict[str, tuple[bytes, bytes, list[tuple[str, int]]]] = {
    "no HTTP": (b"hello\r\n\r\n", b"400 Bad Request", []),
    "an unknown method": (b"BREW / HTTP/1.1\r\n\r\n", b"400 Bad Request", []),
    "two lengths": (post("Content-Length: 1", "Content-Length: 2"), b"400 Bad Request", []),
    "a length and chunks": (post("Content-Length: 1", "Transfer-Encoding: chunked"), b"400 Bad Request", []),
    "a negative length": (post("Content-Length: -1"), b"400 Bad Request", []),
    "no length at all": (post(f"Content-Length: {10**30}"), b"400 Bad Request", []),
    "a length of many zeros": (post(f"Content-Length: {'0' * 5000}"), b"413 Request Entity Too Large", [("/", 413)]),
    "a wrong chunk": (post("Transfer-Encoding: chunked", body=b"ZZ\r\n"), b"400 Bad Request", [("/", 400)]),
    "a long head": (post(*["A: b"] * 200_000), b"431 Request Header Fields Too Large", []),
    "a long header": (post(f"A: {'b' * 2**20}"), b"431 Request Header Fields Too Large", []),
    "a long path": (post(path=f"/{'a' * 2**20}"), b"431 Request Header Fields Too Large", []),
    "a large body": (sized(b" " * (4 * 2**20 + 1)), b"413 Request Entity Too Large", [("/", 413)]),
    "a large body in chunks": (
        post("Transfer-Encoding: chunked", body=b"100000\r\n%s\r\n" % (b" " * 2**20) * 5 + b"0\r\n\r\n"),
        b"413 Request Entity Too Large",
        [("/", 413)],
    ),
}


@pytest.mark.parametrize(("data", "status", "noted"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_answered_once_and_ends_the_connection(
    data: bytes, status: bytes, noted: list[tuple[str, int]]
) -> None:
    async def story(place: Place) -> None:
        reader, _ = await place.come(data)
        head = await reader.readuntil(b"\r\n\r\n")
        assert STATUS.findall(head + await rest(reader)) == [status]
        assert b"Connection: close" in head

    assert play(story).noted == noted


CRUMBS = {
    "chunks of a byte": post("Transfer-Encoding: chunked", body=b"1\r\na\r\n" * 30_000),
    "a trailer without an end": post("Transfer-Encoding: chunked", body=b"1\r\na\r\n0\r\nA: " + b"b" * 2**20),
    "more of what was refused": sized(b" " * (9 * 2**20)),
}


@pytest.mark.parametrize("data", CRUMBS.values(), ids=CRUMBS.keys())
def test_what_has_no_end_is_cut(data: bytes) -> None:
    async def story(place: Place) -> None:
        reader, _ = await place.come(data)
        assert b" 200 " not in await rest(reader)

    play(story)


LATE = {
    "a head": b"POST / HTTP/1.1\r\nA: ",
    "a body": post("Content-Length: 9"),
    "a large body that waits": post("Content-Length: 99999"),
    "the rest of what was refused": post(f"Content-Length: {10**9}"),
    "a second request": sized(b"1") + b"P",
}


@pytest.mark.parametrize("data", LATE.values(), ids=LATE.keys())
def test_a_request_has_a_time(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "READ_SECONDS", 0.2)
    monkeypatch.setattr(protocol, "LARGE_BODIES", 0)

    async def story(place: Place) -> None:
        reader, _ = await place.come(data)
        found = await reader.read()
        assert b" 408 Request Timeout" in found or b" 413 " in found

    play(story)


def test_few_large_bodies_are_read_at_once_and_each_gets_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LARGE_BODIES", 1)
    head, body = post("Content-Length: 1000000"), b" " * 1_000_000

    async def story(place: Place) -> None:
        first, gone, last = [await place.come(head) for _ in range(3)]
        await until(lambda: len(place.server.waiting) == 2)
        for _, writer in (first, gone, last):
            writer.write(body[:-1])
        await asyncio.sleep(0.1)
        held = sum(each.request.size for each in place.server.waiting)
        assert held < 2**19, "of a body that waits nothing is read but what was on its way"
        assert place.server.under_way("/") == 3
        assert b" 1!" in await (await place.come(sized(b"1")))[0].readuntil(b"!")
        gone[1].transport.abort()
        first[1].write(b" ")
        assert b" 1000000!" in await first[0].readuntil(b"!")
        last[1].write(b" ")
        assert b" 1000000!" in await last[0].readuntil(b"!")

    play(story)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What still comes, until the other side closes or cuts."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def until(look: Callable[[], Any]) -> None:
    """Wait until something is so."""
    while not look():  # noqa: ASYNC110 - what is waited for happens in sockets
        await asyncio.sleep(0.005)


def test_who_does_not_read_answers_is_not_read_either(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[str] = []

    async def story(place: Place) -> None:
        place.server.noted = lambda request, _: answered.append(request.path)
        place.server.respond = lambda _: told(200, " " * 100_000)
        reader, writer = await place.come(limit=2**10)
        for _ in range(1000):
            writer.write(sized(b""))
            await asyncio.sleep(0)
        await asyncio.sleep(0.2)
        count = len(answered)
        assert count < 900
        await asyncio.sleep(0.1)
        assert len(answered) == count
        while len(answered) < 1000:
            await reader.read(2**20)

    play(story)


def test_a_connection_without_requests_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "IDLE_SECONDS", 0.1)

    async def story(place: Place) -> None:
        reader, _ = await place.come(sized(b"1"))
        assert (await reader.read()).endswith(b" 1!")

    play(story)


def test_at_the_end_what_is_under_way_is_answered_and_the_rest_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "GRACE_SECONDS", 1.0)

    async def story(place: Place) -> None:
        idle, busy, slow = await place.come(), await place.come(post("Content-Length: 1")), await place.come(b"P")
        await until(lambda: sum(each.busy for each in place.server.connections) == 2)
        ending = asyncio.create_task(place.server.close())
        assert await idle[0].read() == b""
        busy[1].write(b"1")
        found = await busy[0].read()
        assert b"Connection: close" in found
        assert found.endswith(b" 1!")
        assert await rest(slow[0]) == b""
        await ending

    play(story)
