"""Two authorities overlap: API servers with a stale bundle trust the served certificate at every moment."""

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
"""Seconds, by the issuer's own clock, after which the slowest API server takes up a bundle."""
DUE = LIFETIME * 0.7
"""The age of a pair that is due."""
POD_LAG = 90.0
"""Seconds after which the kubelet has brought a new Secret to the last pod."""


def handshake(pair: KeyPair, bundle: bytes, name: str) -> str:
    """A TLS handshake with a server that serves a pair, by a client that trusts a bundle; the error, or nothing."""
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "crt"), Path(directory, "key")
        for file, content in zip(files, (pair.certificate, pair.key), strict=True):
            file.write_bytes(content)
        server_context.load_cert_chain(*files)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cadata=bundle.decode())
    client = context.wrap_bio(back, there, server_hostname=name)
    server = server_context.wrap_bio(there, back, server_side=True)
    try:
        for side in (client, server, client):
            _advance(side)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return ""


def _advance(side: ssl.SSLObject) -> None:
    with suppress(ssl.SSLWantReadError):
        side.do_handshake()


class World:
    """What API servers trust and what pods serve, as it was at each moment of the issuer's clock."""

    def __init__(self, installation: Installation) -> None:
        self.now = 0.0
        self.installation = installation
        self.bundles: list[tuple[float, list[bytes]]] = []
        self.served: list[tuple[float, KeyPair]] = []
        self.handshakes = 0

    def get_live(self) -> None:
        """Take down what is stored now, and try every server with every client."""
        self.bundles.append((self.now, self.installation.bundles()))
        if self.installation.plane.get(self.installation.secret) is not None:
            self.served.append((self.now, self.installation.pair()))
        for lag in (0.0, LAG):
            self.trusts(lag)

    def trusts(self, lag: float) -> None:
        """A client that is so late trusts every pod."""
        taken_up = [bundles for since, bundles in self.bundles if since <= self.now - lag]
        for bundle in taken_up[-1] if taken_up else ():
            for pair in self.pairs():
                self.handshakes += 1
                failed = handshake(pair, bundle, self.installation.names.dns_names[0])
                assert not failed, f"a client that is {lag:g} s late, at {self.now:g} s: {failed}"

    def pairs(self) -> list[KeyPair]:
        """What pods may serve now: the last pair, and each one that was the last within POD_LAG."""
        ends = [*(since for since, _ in self.served[1:]), self.now]
        found = [pair for (_, pair), end in zip(self.served, ends, strict=True) if end >= self.now - POD_LAG]
        return list(dict.fromkeys(found))


class Watched(Client):
    """A client after each of whose writes the world is looked at."""

    written: Callable[[], None]

    async def create(self, key: Key, obj: Object) -> Object:
        """Create, and look."""
        made = await super().create(key, obj)
        await asyncio.to_thread(self.written)
        return made

    async def patch(self, key: Key, *arguments: Any, **options: Any) -> Object:
        """Patch, and look."""
        made = await super().patch(key, *arguments, **options)
        await asyncio.to_thread(self.written)
        return made


@pytest.fixture
def world(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> World:
    """An installation with a pair that all trust and that is due; the issuer's waiting lets time pass in the world."""
    installation.check(after=-DUE)
    found = World(installation)
    found.get_live()
    found.now += POD_LAG

    async def sleep(seconds: float) -> None:
        found.now += seconds
        await asyncio.to_thread(found.get_live)

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
    return found


def check(world: World) -> None:
    """Have the issuer look, and the world after each of its writes."""

    async def run() -> None:
        async with client_of(world.installation.plane.connection, Watched) as client:
            client.written = world.get_live
            await Issuer(client, world.installation.names, LIFETIME).check()

    asyncio.run(run())
    world.get_live()


def test_a_client_that_trusts_another_authority_notices(world: World) -> None:
    first = world.installation.pair()
    world.installation.plane.delete(world.installation.secret)
    check(world)
    name = world.installation.names.dns_names[0]
    assert handshake(world.installation.pair(), first.ca, name) == "unable to get local issuer certificate"
    assert handshake(first, first.ca, name) == ""


def test_while_a_pair_that_is_due_is_replaced_late_clients_trust_what_is_served(world: World) -> None:
    first = world.installation.pair()
    check(world)
    assert world.installation.pair() != first
    assert world.pairs() == [first, world.installation.pair()]
    assert world.handshakes > 0


def test_while_a_deleted_secret_is_replaced_late_clients_trust_what_is_served(world: World) -> None:
    first = world.installation.pair()
    world.installation.plane.delete(world.installation.secret)
    check(world)
    assert world.pairs() == [first, world.installation.pair()]
