"""Heads of requests, and bytes that are no HTTP or no TLS."""

import asyncio
import json
import random
from contextlib import suppress

from faults.campaigns.port.scene import ERRORS, GOOD, PATH, SEED, Scene
from faults.webhook import JSON, review
from memcached_api.memcached import MEMCACHED


async def methods_and_paths(scene: Scene) -> None:
    """Another method, or another path."""
    good = json.dumps(review(MEMCACHED, GOOD)).encode()
    for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"):
        async with scene.session.request(method, scene.webhook.url + PATH, data=good, headers=JSON) as answer:
            text = await answer.text()
            scene.stage.holds(answer.status in ERRORS and "allowed" not in text, f"{answer.status} for {method}")
    for path in (
        "/",
        "/validate",
        f"{PATH}/",
        f"/{PATH}",
        f"{PATH}%00",
        f"{PATH}/../{PATH}",
        "/%2e%2e/",
        "/" + "a" * 8000,
    ):
        await scene.refused(good, path)


BEGIN = b"POST / HTTP/1.1\r\nHost: a\r\n"
REQUESTS = (
    b"GET\r\n\r\n",
    b"\r\n" * 1000,
    b"\x00" * 5000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST / HTTP/9.9\r\n\r\n",
    BEGIN + b"Content-Length: -1\r\n\r\n",
    BEGIN + b"Content-Length: 9999999999999999999999\r\n\r\n",
    BEGIN + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    BEGIN + b"A: b\r\n" * 100_000 + b"\r\n",
    BEGIN + b"A: " + b"b" * 2**20 + b"\r\n\r\n",
    b"POST /" + b"a" * 2**20 + b" HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01" * 3000,
)


async def no_http(scene: Scene) -> None:
    """What is no HTTP, or nearly so; and what is no TLS."""
    smuggled = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n".encode()
    good = json.dumps(review(MEMCACHED, GOOD)).encode()
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    twice = b"Content-Length: 4\r\nContent-Length: %d\r\n\r\n" % len(good)
    for data in (*REQUESTS, smuggled + both + good, smuggled + twice + good):
        await scene.unanswered(data)
        scene.measured()
    for data in (*REQUESTS, b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100):
        await scene.unanswered(data, tls=False)
    dice = random.Random(SEED)  # noqa: S311 - the same ones each time
    for _ in range(50):
        await scene.unanswered(dice.randbytes(500))
        await scene.unanswered(dice.randbytes(500), tls=False)


ENDLESS = {
    "many short headers": (BEGIN, b"A: b\r\n" * 10_000),
    "one long value": (BEGIN + b"A: ", b"b" * 60_000),
    "one long name": (BEGIN, b"b" * 60_000),
    "a long path": (b"POST /", b"a" * 60_000),
}
SENT = 200 * 10**6
"""Bytes of a head."""


async def endless_heads(scene: Scene) -> None:
    """Heads of 200 MB: the connection is cut at their beginning."""

    async def sending(begin: bytes, piece: bytes) -> None:
        sent = 0
        with suppress(OSError):
            async with scene.line() as (reader, writer):
                writer.write(begin)
                while sent < SENT and not reader.at_eof():
                    writer.write(piece)
                    await writer.drain()
                    sent += len(piece)
                    await asyncio.sleep(0)
        scene.stage.holds(sent < SENT, f"a head of {SENT} bytes is read")

    for begin, piece in ENDLESS.values():
        await scene.while_well(sending(begin, piece))
