"""CA rotation: API servers with an outdated bundle trust the served certificate at every moment."""

import asyncio
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from integration.control_plane import client_of
from integration.issuing import Installation
from memcached_operator.certificates import issuer as module
from memcached_operator.certificates.issuer import Issuer
from memcached_operator.certificates.pki import LIFETIME, KeyPair
from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import Key, Object

LAG = 1.9
"""Seconds by the issuer's clock until the slowest API server uses a new bundle."""
DUE = LIFETIME * 0.7
"""The age of a pair that is due for renewal."""
POD_LAG = 90.0
"""Seconds until the kubelet has updated the Secret in the last pod."""


def handshake(pair: KeyPair, bundle: bytes, name: str) -> str:
    """Do a TLS handshake between a server with a pair and a client with a bundle; return the verification error."""
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "crt"), Path(directory, "key")
        for file, content in zip(files, (pair.certificate, pair.key), strict=True):
            file.write_bytes(content)
        server_context.load_cert_chain(*files)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cadata=bundle.decode())
    client = context.wrap_bio(to_client, to_server, server_hostname=name)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    try:
        for side in (client, server, client):
            _advance(side)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return ""


def _advance(side: ssl.SSLObject) -> None:
    with suppress(ssl.SSLWantReadError):
        side.do_handshake()


class Timeline:
    """The CA bundles and the stored pairs over the time of the issuer's clock."""

    def __init__(self, installation: Installation) -> None:
        self.now = 0.0
        self.installation = installation
        self.bundles: list[tuple[float, list[bytes]]] = []
        self.served: list[tuple[float, KeyPair]] = []
        self.handshakes = 0

    def record(self) -> None:
        """Record the stored bundles and pair, and do a handshake of every client with every server."""
        self.bundles.append((self.now, self.installation.bundles()))
        if self.installation.plane.get(self.installation.secret) is not None:
            self.served.append((self.now, self.installation.pair()))
        for lag in (0.0, LAG):
            self.assert_trust(lag)

    def assert_trust(self, lag: float) -> None:
        """Assert that a client that uses bundles `lag` seconds late trusts every pod."""
        used = [bundles for since, bundles in self.bundles if since <= self.now - lag]
        for bundle in used[-1] if used else ():
            for pair in self.pairs():
                self.handshakes += 1
                failed = handshake(pair, bundle, self.installation.names.dns_names[0])
                assert not failed, f"client with a lag of {lag:g} s at {self.now:g} s: {failed}"

    def pairs(self) -> list[KeyPair]:
        """The pairs that pods may serve now: the last one, and those replaced within POD_LAG."""
        ends = [*(since for since, _ in self.served[1:]), self.now]
        found = [pair for (_, pair), end in zip(self.served, ends, strict=True) if end >= self.now - POD_LAG]
        return list(dict.fromkeys(found))


class RecordingClient(Client):
    """A client that calls `written` after each write."""

    written: Callable[[], None]

    async def create(self, key: Key, obj: Object) -> Object:
        """Create an object and call `written`."""
        stored = await super().create(key, obj)
        await asyncio.to_thread(self.written)
        return stored

    async def patch(self, key: Key, *arguments: Any, **options: Any) -> Object:
        """Patch an object and call `written`."""
        stored = await super().patch(key, *arguments, **options)
        await asyncio.to_thread(self.written)
        return stored


@pytest.fixture
def timeline(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Timeline:
    """The timeline of an installation with a trusted pair that is due; the issuer's sleeping advances its clock."""
    installation.check(after=-DUE)
    found = Timeline(installation)
    found.record()
    found.now += POD_LAG

    async def sleep(seconds: float) -> None:
        found.now += seconds
        await asyncio.to_thread(found.record)

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    return found


def check(timeline: Timeline) -> None:
    """Run one check of the issuer; record the state after each of its writes."""

    async def run() -> None:
        async with client_of(timeline.installation.plane.connection, RecordingClient) as client:
            client.written = timeline.record
            await Issuer(client, timeline.installation.names, LIFETIME).check()

    asyncio.run(run())
    timeline.record()


def test_handshake_fails_with_another_ca(timeline: Timeline) -> None:
    first = timeline.installation.pair()
    timeline.installation.plane.delete(timeline.installation.secret)
    check(timeline)
    name = timeline.installation.names.dns_names[0]
    assert handshake(timeline.installation.pair(), first.ca, name) == "unable to get local issuer certificate"
    assert handshake(first, first.ca, name) == ""


def test_late_clients_trust_pods_during_renewal(timeline: Timeline) -> None:
    first = timeline.installation.pair()
    check(timeline)
    assert timeline.installation.pair() != first
    assert timeline.pairs() == [first, timeline.installation.pair()]
    assert timeline.handshakes > 0


def test_late_clients_trust_pods_during_replacement_of_a_deleted_secret(timeline: Timeline) -> None:
    first = timeline.installation.pair()
    timeline.installation.plane.delete(timeline.installation.secret)
    check(timeline)
    assert timeline.pairs() == [first, timeline.installation.pair()]
