"""The certificate that memcached serves: a handshake on loopback, without a certificate of a client.

With TLS 1.3, the server sends its certificate before it asks for the client's, so that this works in every mode.
"""

import asyncio
import ssl
from typing import Final

from memcached_agent.memcached.connection import LIMIT_REACHED
from memcached_agent.reload.errors import UnverifiedError

HOST: Final = "127.0.0.1"
TIMEOUT: Final = 3.0
"""Seconds for the whole handshake."""
CHUNK: Final = 2**14


async def served_certificate(port: int) -> bytes:
    """The certificate that is served on this port of loopback, as DER. Raises UnverifiedError if there is none."""
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection(HOST, port, limit=CHUNK)
            try:
                return await _handshake(reader, writer)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise UnverifiedError(f"memcached did not complete a TLS handshake within {TIMEOUT:g} s") from None
    except ssl.SSLError as error:
        raise UnverifiedError(f"memcached refuses a TLS handshake: {error.reason}") from None
    except OSError as error:
        raise UnverifiedError(f"port {port} cannot be reached: {error.strerror or error}") from None


async def _handshake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = _context().wrap_bio(incoming, outgoing)
    while True:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            incoming.write(await _received(reader))
            continue
        writer.write(outgoing.read())
        return client.getpeercert(binary_form=True) or b""


async def _received(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(CHUNK)
    if data.startswith(LIMIT_REACHED):
        raise UnverifiedError("memcached has reached its connection limit and refuses new connections")
    if not data:
        raise UnverifiedError("memcached closed a connection before the TLS handshake was complete")
    return data


def _context() -> ssl.SSLContext:
    """A context for comparing certificates byte by byte, which needs no verification."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
