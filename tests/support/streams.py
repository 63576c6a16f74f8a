"""Clients of a server on loopback, which read or do not read its responses."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

HELLO = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
PARTIAL = HELLO[:-2]
"""A request without its last line."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def unverified() -> ssl.SSLContext:
    """The context of a client that accepts every certificate, as the kubelet's probes do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def read_to_end(client: Streams) -> bytes:
    """The remaining data until the server closes or aborts the connection. Raises TimeoutError after 30 s."""
    found = b""
    try:
        async with asyncio.timeout(30):
            while chunk := await client[0].read(2**16):
                found += chunk
    except ConnectionError:
        pass
    return found


async def status(client: Streams, data: bytes = HELLO) -> bytes:
    """The status of the response to a request. The connection stays open."""
    client[1].write(data)
    async with asyncio.timeout(30):
        head = await client[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await client[0].readexactly(length)
    return head.partition(b"\r\n")[0].partition(b" ")[2]


def stop_reading(client: Streams) -> None:
    """Stop a client from reading, even from its socket."""
    transport = cast("Any", client[1].transport)  # no public class of typeshed has this limit
    transport.pause_reading()
    if client[1].get_extra_info("ssl_object"):
        transport.set_read_buffer_limits(0)  # TLS would read 256 KiB ahead


def resume_reading(client: Streams) -> None:
    """Let a client read again."""
    transport = cast("Any", client[1].transport)
    if client[1].get_extra_info("ssl_object"):
        transport.set_read_buffer_limits(2**16)
    transport.resume_reading()


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true; at most 30 s."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - changed by sockets
            await asyncio.sleep(0.005)
