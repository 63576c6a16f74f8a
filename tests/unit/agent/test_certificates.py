"""Certificates: the command to memcached, and the proof by a handshake."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from memcached_agent.addresses import Address
from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.reload import served
from memcached_agent.reload.certificates import Certificates
from memcached_agent.reload.served import served_certificate
from memcached_agent.reload.watcher import FileWatcher
from support.pki import CA, Pair
from support.ports import free_port
from support.streams import until

from .memcacheds import LIMIT, FakeMemcached, replies_again, with_client

OLD, NEW = CA().issue(), CA().issue()
EXPIRED = CA().issue(days=0.5)
"""Half a day ago."""
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def write(directory: Path, pair: Pair) -> None:
    """Write the files of a pair."""
    (directory / "tls.crt").write_bytes(pair.cert)
    (directory / "tls.key").write_bytes(pair.key)


@asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """A server on loopback; its port."""
    port = free_port()
    writers: list[asyncio.StreamWriter] = []

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            await serve(reader, writer)
        writer.transport.abort()

    async with await asyncio.start_server(handled, "127.0.0.1", port, ssl=context):
        yield port
        for each in writers:
            each.transport.abort()
        await asyncio.sleep(0.05)  # until the transports are closed


async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that closes each connection."""
    writer.close()


async def at_limit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A memcached at its connection limit."""
    writer.write(LIMIT)
    await writer.drain()
    writer.write_eof()
    await reader.read()


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """A server that does not reply."""
    await reader.read()


async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server without TLS."""
    await reader.read(1)
    writer.write(b"ERROR\r\n")
    await reader.read()


FAULTS = {
    "closed": (close, "memcached closed a connection before the TLS handshake was complete|cannot be reached"),
    "limit": (at_limit, "memcached has reached its connection limit and refuses new connections"),
    "silent": (silent, "memcached did not complete a TLS handshake within 0.3 s"),
    "plain": (plain, "memcached rejects a TLS handshake: WRONG_VERSION_NUMBER"),
}


@pytest.mark.parametrize(("serve", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_missing_proof_is_reported(serve: Serve, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "TIMEOUT", 0.3)

    async def run() -> None:
        async with serving(serve) as port:
            with pytest.raises(UnverifiedError, match=message):
                await served_certificate(port)

    asyncio.run(run())


def test_port_that_is_not_served_is_reported() -> None:
    port = free_port()
    with pytest.raises(UnverifiedError, match=f"port {port} cannot be reached: "):
        asyncio.run(served_certificate(port))


def test_certificate_counts_as_loaded_when_memcached_serves_it(tmp_path: Path) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        write(tmp_path, OLD)
        context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        async with serving(close, context) as port:
            source = Certificates(str(tmp_path), port, client)
            assert source.target() is None
            await replies_again(client)
            assert source.target() == 1
            memcached.replies["refresh_certs"] = b"OK\r\n"
            await source.apply(source.check(source.read()))
            assert source.expires == OLD.not_after.timestamp()
            write(tmp_path, NEW)
            with pytest.raises(InvalidError, match=r"memcached serves another certificate than .*/tls.crt"):
                await source.apply(source.check(source.read()))
            memcached.replies["refresh_certs"] = b"Error loading the key: " + b"x" * 1000 + b"\r\n"
            with pytest.raises(
                InvalidError, match=r"memcached cannot load the files in .*: 'Error loading the key: x+'"
            ):
                await source.apply(source.check(source.read()))
            assert (source.expires, source.target()) == (OLD.not_after.timestamp(), 1)
            memcached.close_all()
            await until(lambda: client.connected == 2)
            assert source.target() == 2, "what it serves is verified again"

    with_client(scenario)


def test_bad_certificate_is_not_loaded(tmp_path: Path) -> None:
    write(tmp_path, replace(OLD, key=NEW.key))

    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        memcached.replies["refresh_certs"] = b"OK\r\n"
        await replies_again(client)
        source = Certificates(str(tmp_path), 1, client)
        with pytest.raises(InvalidError, match=r"tls.key is not the key of"):
            source.check(source.read())
        for _ in range(2):
            await client.general()
        assert "refresh_certs" not in memcached.commands

    with_client(scenario)


def test_certificate_that_expires_is_checked_again(tmp_path: Path) -> None:
    now = 0.0
    source = Certificates(str(tmp_path), 1, MemcachedClient(Address("127.0.0.1", 1)), lambda: now)
    write(tmp_path, OLD)
    source.expires = OLD.not_after.timestamp()
    before = source.read()
    now = source.expires + 1
    assert source.read() != before
    assert source.read() == source.read()


@pytest.mark.parametrize("pair", [OLD, EXPIRED], ids=["valid", "expired"])
def test_expiry_is_known_although_the_files_are_bad(tmp_path: Path, pair: Pair) -> None:
    """As after a restart of the agent. memcached serves what it loaded before."""

    async def scenario(_: FakeMemcached, client: MemcachedClient) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        write(tmp_path, pair)
        context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        (tmp_path / "tls.crt").write_bytes(b"bad")
        async with serving(close, context) as port:
            source = Certificates(str(tmp_path), port, client)
            watched = FileWatcher(source)
            await replies_again(client)
            await watched.step()
            assert "contains no complete certificate in PEM format" in await watched.problem()
            assert source.expires == pair.not_after.timestamp()

    with_client(scenario)
