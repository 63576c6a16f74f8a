"""The HTTPS port of the agent, beyond the contract of every port (tests/unit/process): versions and certificates."""

import ssl
import tempfile
from pathlib import Path

import pytest

from memcached_agent.addresses import Address
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.reload import certificates
from memcached_agent.reload.certificates import Certificates
from support.pki import CA, Pair
from support.streams import status, until
from unit.process.serving import OK, Port

from .clients import run_scenario

AUTHORITY = CA()
PAIR = AUTHORITY.issue()


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


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda each: each.name)
def test_connection_serves_consecutive_requests(version: ssl.TLSVersion) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(tls=trusting(version))
        for _ in range(3):
            assert await status(client) == OK
        assert client[1].get_extra_info("ssl_object").version() == version.name.replace("_", ".")
        assert len(port.server.connections) == 1

    used = context()
    run_scenario(scenario, contexts=lambda: used)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
def test_old_version_is_refused() -> None:
    async def scenario(port: Port) -> None:
        old = trusting()
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError, match=r"(?i)version"):
            await port.open(tls=old)

    used = context()
    run_scenario(scenario, contexts=lambda: used)


# Without a certificate.


def test_clients_wait_for_a_certificate() -> None:
    found: list[ssl.SSLContext] = []

    async def scenario(port: Port) -> None:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await port.open(tls=trusting())
        found.append(context())
        assert await status(await port.open(tls=trusting())) == OK

    run_scenario(scenario, contexts=lambda: found[-1] if found else None)


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

    run_scenario(scenario, contexts=lambda: found[0])


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

    run_scenario(scenario, contexts=recorded)
    assert max(sizes) == 5
