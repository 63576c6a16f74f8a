"""The HTTP server over TLS: handshakes are limited as requests are."""

import asyncio
import socket
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from memcached_agent.addresses import Address
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.reload import certificates
from memcached_agent.reload.certificates import Certificates
from memcached_agent.web import server, tls
from memcached_agent.web.messages import HttpResponse
from memcached_agent.web.server import MAX_CONNECTIONS, ConnectionState, Handler
from memcached_tls.tls import PIECE, Tls
from support.pki import CA, Pair
from support.streams import PARTIAL, read_to_end, status, stop_reading, until

from .clients import GET, OK, Port, hello, request, response_while_sending, resume_reading, serving
from .test_server import STATUS, endless, large

AUTHORITY = CA()
PAIR = AUTHORITY.issue()
GARBAGE = b"\x16\x03\x01\x00\x05hello"


def context(pair: Pair = PAIR) -> ssl.SSLContext:
    """The context of the agent for a pair."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "tls.crt").write_bytes(pair.cert)
        (Path(directory) / "tls.key").write_bytes(pair.key)
        source = Certificates(directory, 1, MemcachedClient(Address("127.0.0.1", 1)))
        return source.check(source.read()).context


def trusting(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """The context of a client that uses this version."""
    found = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    found.maximum_version = version
    return found


def run(
    scenario: Callable[[Port], Awaitable[None]], contexts: Callable[[], ssl.SSLContext | None], handler: Handler = hello
) -> None:
    """Run a scenario with a server of /hello."""

    async def serve() -> None:
        async with serving({"/hello": handler}, contexts) as port:
            await scenario(port)

    asyncio.run(asyncio.wait_for(serve(), 60))


def run_tls(scenario: Callable[[Port], Awaitable[None]], handler: Handler = hello) -> None:
    """Run a scenario with one certificate."""
    used = context()
    run(scenario, lambda: used, handler)


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timeouts for tests."""
    for state in (
        ConnectionState.HANDSHAKE,
        ConnectionState.IDLE,
        ConnectionState.CLOSING,
        ConnectionState.READING,
        ConnectionState.WRITING,
    ):
        monkeypatch.setitem(server.TIMEOUTS, state, 0.3)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda each: each.name)
def test_connection_serves_consecutive_requests(version: ssl.TLSVersion) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(tls=trusting(version))
        for _ in range(3):
            assert await status(client) == OK
        assert client[1].get_extra_info("ssl_object").version() == version.name.replace("_", ".")
        assert len(port.server.connections) == 1

    run_tls(scenario)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
def test_old_version_is_refused() -> None:
    async def scenario(port: Port) -> None:
        old = trusting()
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError, match=r"(?i)version"):
            await port.open(tls=old)

    run_tls(scenario)


def test_handshake_may_arrive_byte_by_byte() -> None:
    async def scenario(port: Port) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
        reader, writer = await port.open()
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    writer.write(bytes([byte]))
                    await writer.drain()
                incoming.write(await reader.read(2**16))
        tls.write(GET)
        for byte in outgoing.read():
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        incoming.write(await reader.read(2**16))
        assert tls.read(2**16).startswith(b"HTTP/1.1 200 OK")

    run_tls(scenario)


def test_large_response_is_complete() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(request("GET", "/hello", "Connection: close"), tls=trusting())
        found = await read_to_end(client)
        assert found.endswith((await large()).body)
        assert STATUS.findall(found[:100]) == [b"200"]

    run_tls(scenario, large)


def test_client_that_is_still_sending_gets_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(server.TIMEOUTS, ConnectionState.CLOSING, 60)

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await response_while_sending(await port.open(tls=trusting()))) == [b"405"]

    run_tls(scenario)


def test_slow_client_can_send_another_request() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096, tls=trusting())
        for _ in range(2):
            stop_reading(client)
            client[1].write(GET)
            await until(lambda: any(each.state is ConnectionState.WRITING for each in port.server.connections))
            resume_reading(client)
            assert await status(client, b"") == OK
            async with asyncio.timeout(server.TIMEOUTS[ConnectionState.WRITING] / 2):
                await until(lambda: all(each.state is ConnectionState.IDLE for each in port.server.connections))

    run_tls(scenario, large)


def test_last_response_is_followed_by_the_end_of_tls() -> None:
    """Without it, a client cannot know that nothing is missing."""

    def received(number: int) -> bytes:
        plain = socket.create_connection(("127.0.0.1", number))
        with trusting().wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as client:
            client.sendall(request("GET", "/hello", "Connection: close"))
            return b"".join(iter(partial(client.recv, 2**16), b""))

    async def scenario(port: Port) -> None:
        assert (await asyncio.to_thread(received, port.number)).endswith(b"hello\n")

    run_tls(scenario)


def test_client_that_ends_tls_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    handled = asyncio.Event()

    async def handler() -> HttpResponse:
        handled.set()
        return await endless()

    async def scenario(port: Port) -> None:
        client = await port.open(GET, tls=trusting())
        await handled.wait()
        client[1].close()
        await until(lambda: not port.server.connections)

    run_tls(scenario, handler)
    assert caplog.records == []


def test_buffers_of_openssl_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """They never shrink, so that an idle connection would keep the memory of its largest response."""
    read: list[int] = []
    written: list[int] = []

    class Recorded(Tls):
        def buffer_updated(self, nbytes: int) -> None:
            read.append(nbytes)
            super().buffer_updated(nbytes)

        def _flush(self) -> None:
            written.append(self._outgoing.pending)
            super()._flush()

    async def scenario(port: Port) -> None:
        client = await port.open(tls=trusting())
        assert await status(client) == OK
        client[1].write(request("POST", "/hello", "Content-Length: 1000000", body=b"x" * 1000000))
        await read_to_end(client)

    monkeypatch.setattr(tls, "Tls", Recorded)
    run_tls(scenario, large)
    assert 2**12 < max(read) <= PIECE
    assert PIECE < max(written) < 2 * PIECE


# Without TLS, or without a certificate.


def test_client_without_tls_gets_no_response() -> None:
    async def scenario(port: Port) -> None:
        assert b"HTTP" not in await port.exchange(GET)
        await until(lambda: not port.server.connections)

    run_tls(scenario)


def test_clients_wait_for_a_certificate() -> None:
    found: list[ssl.SSLContext] = []

    async def scenario(port: Port) -> None:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await port.open(tls=trusting())
        found.append(context())
        assert await status(await port.open(tls=trusting())) == OK

    run(scenario, lambda: found[-1] if found else None)


def test_renewed_certificate_is_used_for_new_connections() -> None:
    other = AUTHORITY.issue()
    found = [context()]

    async def scenario(port: Port) -> None:
        first = await port.open(tls=trusting())
        found[0] = context(other)
        second = await port.open(tls=trusting())
        assert [await status(each) for each in (first, second)] == [OK, OK]
        served = [each[1].get_extra_info("ssl_object").getpeercert(binary_form=True) for each in (first, second)]
        assert served == [PAIR.der, other.der]

    run(scenario, lambda: found[0])


# Slow and many clients.


@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("data", [b"", GARBAGE[:1], GARBAGE[:4]], ids=repr)
def test_incomplete_handshake_is_closed(data: bytes) -> None:
    async def scenario(port: Port) -> None:
        assert await port.exchange(data) == b""

    run_tls(scenario)


@pytest.mark.usefixtures("short_times")
def test_trickled_handshake_does_not_extend_its_time() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(b"\x16\x03\x01\x02\x00")
        began = time.monotonic()
        while port.server.connections:
            client[1].write(b"\x00")
            await asyncio.sleep(0.02)
            assert time.monotonic() < began + 5
        await read_to_end(client)

    run_tls(scenario)


@pytest.mark.parametrize("data", [GARBAGE, b"\x16" * 1000, b"\x16" + b"\xff" * 2**20], ids=["short", "records", "long"])
def test_garbage_closes_the_connection_and_is_not_logged(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        await port.exchange(data)
        await until(lambda: not port.server.connections)
        client = await port.open(tls=trusting())
        assert await status(client) == OK
        client[1].transport.get_extra_info("socket")  # the connection is open
        port.abort()

    run_tls(scenario)
    assert caplog.records == []


def test_garbage_after_the_handshake_closes_the_connection() -> None:
    async def scenario(port: Port) -> None:
        plain = await port.open()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        plain[1].write(outgoing.read())
        incoming.write(await plain[0].read(2**16))
        tls.do_handshake()
        plain[1].write(outgoing.read() + b"\x17\x03\x03\x00\x05wrong")
        await read_to_end(plain)
        await until(lambda: not port.server.connections)

    run_tls(scenario)


def test_half_open_handshakes_do_not_keep_others_out() -> None:
    async def scenario(port: Port) -> None:
        half = [await port.open(GARBAGE[:3]) for _ in range(3 * MAX_CONNECTIONS)]
        assert await status(await port.open(tls=trusting())) == OK
        assert len(port.server.connections) == MAX_CONNECTIONS
        assert await read_to_end(half[0]) == b""

    run_tls(scenario)


def test_handshakes_are_closed_before_idle_connections() -> None:
    async def scenario(port: Port) -> None:
        idle = await port.open(tls=trusting())
        assert await status(idle) == OK
        for _ in range(2 * MAX_CONNECTIONS):
            await port.open(GARBAGE[:3])
        assert len(port.server.connections) == MAX_CONNECTIONS
        assert await status(idle) == OK

    run_tls(scenario)


@pytest.mark.usefixtures("short_times")
def test_client_that_does_not_read_is_aborted() -> None:
    handled = asyncio.Event()

    async def handler() -> HttpResponse:
        handled.set()
        return await large()

    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096, tls=trusting())
        stop_reading(client)
        client[1].write(GET)
        await handled.wait()
        await until(lambda: not port.server.connections)

    run_tls(scenario, handler)


@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("data", [b"", PARTIAL], ids=["idle", "half request"])
def test_connection_is_closed_without_progress(data: bytes) -> None:
    async def scenario(port: Port) -> None:
        assert await read_to_end(await port.open(data, tls=trusting())) == b""

    run_tls(scenario)


def test_stored_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sessions of TLS 1.2 clients without tickets, which Python cannot keep OpenSSL from storing."""
    monkeypatch.setattr(certificates, "MAX_SESSIONS", 5)
    (tmp_path / "tls.crt").write_bytes(PAIR.cert)
    (tmp_path / "tls.key").write_bytes(PAIR.key)
    source = Certificates(str(tmp_path), 1, MemcachedClient(Address("127.0.0.1", 1)))
    assert source.context() is None
    source.check(source.read())
    sizes: list[int] = []

    def recorded() -> ssl.SSLContext | None:
        found = source.context()
        sizes.append(found.session_stats()["number"] if found else 0)
        return found

    async def scenario(port: Port) -> None:
        for _ in range(20):
            without_tickets = trusting(ssl.TLSVersion.TLSv1_2)
            without_tickets.options |= ssl.OP_NO_TICKET
            client = await port.open(tls=without_tickets)
            assert await status(client) == OK
            client[1].close()
            await until(lambda: not port.server.connections)

    run(scenario, recorded)
    assert max(sizes) == 5
