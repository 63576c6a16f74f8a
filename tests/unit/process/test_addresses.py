import asyncio
import socket

import pytest

from memcached_agent.web.server import ListenError
from memcached_process.addresses import Address, parse_address
from support.ports import free_port
from support.streams import status

from .ports import PLAIN, Ports, hello


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0", None),
        (":8081", Address(None, 8081)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_addresses(text: str, address: Address | None):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8081", ":", ":x", ":65536", ":-1", "a:٣"])
def test_invalid_addresses(text: str):
    with pytest.raises(ValueError, match=": invalid bind address; use HOST:PORT, :PORT, or 0 to disable the server"):
        parse_address(text)


# The contract of every port.


@pytest.mark.parametrize("ports", PLAIN, indirect=True)
@pytest.mark.parametrize(
    ("host", "client", "has_ipv6"),
    [
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", False),
        ("::1", "::1", True),
    ],
)
def test_address_serves_its_families(
    ports: Ports, host: str, client: str, has_ipv6: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        number = free_port()
        async with ports.serving(hello, number, host=host):
            streams = await asyncio.open_connection(client, number)
            assert await status(streams) == b"200 OK"
            streams[1].transport.abort()

    if client == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    if not has_ipv6:
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    asyncio.run(run())


@pytest.mark.parametrize("ports", PLAIN, indirect=True)
def test_port_in_use_is_an_error(ports: Ports) -> None:
    async def run() -> None:
        number = free_port()
        async with ports.serving(hello, number):
            with pytest.raises((OSError, ListenError), match="Address already in use"):
                await ports.serving(hello, number).__aenter__()

    asyncio.run(run())
