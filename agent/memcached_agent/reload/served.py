"""The certificate that memcached serves: a handshake on loopback, without a certificate of a client.

With TLS 1.3, the server sends its certificate before it asks for the client's, so that this works in every mode.
"""

import asyncio
import ssl
from typing import Final

from memcached_agent.errors import UnverifiedError
from memcached_agent.memcached.connection import LIMIT_REACHED

HOST: Final = "127.0.0.1"
TIMEOUT: Final = 3.0
"""Seconds for the whole handshake."""
CHUNK: Final = 2**14


NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python's `ssl` does not name."""


async def served_certificate(port: int) -> bytes:
    """The certificate that is served on this port of loopback, as DER. Raises UnverifiedError if there is none."""
    return (await _handshake(port, _context())).getpeercert(binary_form=True) or b""


async def served_expiry(port: int) -> float:
    """When the certificate that is served expires, in seconds since 1970. Raises UnverifiedError if there is none.

    Python decodes only a certificate that a handshake has verified, so that the second handshake trusts it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
    try:
        context.load_verify_locations(cadata=await served_certificate(port))
        fields = (await _handshake(port, context)).getpeercert() or {}
        return ssl.cert_time_to_seconds(str(fields.get("notAfter")))
    except (ssl.SSLError, ValueError):
        raise UnverifiedError("memcached serves a certificate that cannot be decoded") from None


async def _handshake(port: int, context: ssl.SSLContext) -> ssl.SSLObject:
    """A client after its handshake with memcached."""
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection(HOST, port, limit=CHUNK)
            try:
                return await _connected(reader, writer, context)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise UnverifiedError(f"memcached did not complete a TLS handshake within {TIMEOUT:g} s") from None
    except ssl.SSLError as error:
        raise UnverifiedError(f"memcached rejects a TLS handshake: {error.reason}") from None
    except OSError as error:
        raise UnverifiedError(f"port {port} cannot be reached: {error.strerror or error}") from None


async def _connected(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
) -> ssl.SSLObject:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    while True:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            incoming.write(await _received(reader))
            continue
        writer.write(outgoing.read())
        return client


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
