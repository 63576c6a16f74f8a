"""Heads of requests, and bytes that are not HTTP or not TLS."""

import asyncio
import json
import random
from contextlib import suppress

from faults.campaigns.port.setup import ERRORS, PATH, SEED, VALID, Setup
from faults.webhook import JSON, review
from memcached_api.memcached.types import MEMCACHED


async def methods_and_paths(setup: Setup) -> None:
    """Other methods and other paths."""
    valid = json.dumps(review(MEMCACHED, VALID)).encode()
    for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"):
        async with setup.session.request(method, setup.webhook.url + PATH, data=valid, headers=JSON) as response:
            text = await response.text()
            setup.sandbox.check(response.status in ERRORS and "allowed" not in text, f"{response.status} for {method}")
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
        await setup.check_rejected(valid, path)


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


async def not_http(setup: Setup) -> None:
    """Bytes that are not HTTP, or almost, and bytes that are not TLS."""
    smuggled = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n".encode()
    valid = json.dumps(review(MEMCACHED, VALID)).encode()
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    twice = b"Content-Length: 4\r\nContent-Length: %d\r\n\r\n" % len(valid)
    for data in (*REQUESTS, smuggled + both + valid, smuggled + twice + valid):
        await setup.check_not_allowed(data)
        setup.check_memory()
    for data in (*REQUESTS, b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100):
        await setup.check_not_allowed(data, tls=False)
    rng = random.Random(SEED)  # noqa: S311 - reproducible
    for _ in range(50):
        await setup.check_not_allowed(rng.randbytes(500))
        await setup.check_not_allowed(rng.randbytes(500), tls=False)


ENDLESS = {
    "many short headers": (BEGIN, b"A: b\r\n" * 10_000),
    "one long value": (BEGIN + b"A: ", b"b" * 60_000),
    "one long name": (BEGIN, b"b" * 60_000),
    "a long path": (b"POST /", b"a" * 60_000),
}
HEAD_LENGTH = 200 * 10**6
"""Length of a head, in bytes."""


async def endless_heads(setup: Setup) -> None:
    """Heads of 200 MB: the connection is closed early."""

    async def send(begin: bytes, piece: bytes) -> None:
        sent = 0
        with suppress(OSError):
            async with setup.connection() as (reader, writer):
                writer.write(begin)
                while sent < HEAD_LENGTH and not reader.at_eof():
                    writer.write(piece)
                    await writer.drain()
                    sent += len(piece)
                    await asyncio.sleep(0)
        setup.sandbox.check(sent > 0, "no head was sent: the connection failed")
        setup.sandbox.check(sent < HEAD_LENGTH, f"a head of {HEAD_LENGTH} bytes was read")

    for begin, piece in ENDLESS.values():
        await setup.while_serving(send(begin, piece))
