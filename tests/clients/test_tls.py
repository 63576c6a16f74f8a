"""Clients of a Memcached that needs certificates and passwords: the libraries that support both, and the others."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from clients.libraries import Command
from clients.running import Client, connection, running
from clients.scenario import KEYS, fill, read
from support import kube
from support.memcached import SMALL, memcached, wait_until_ready
from support.pki import CA
from support.secrets import names_of, tls_secret, users_secret
from support.slots import replace_pod

NAME = "secure"
SUPPORTED = ("pymemcache", "gomemcache")
UNSUPPORTED = ("pylibmc", "memjs", "xmemcached", "php-memcached", "dalli")
"""Dalli supports TLS, but cannot log in."""
ATTEMPTS = 10
"""Requests of a client that memcached denies."""

Start = Callable[[str, Mapping[str, str]], AbstractContextManager[Client]]
NOTHING: Mapping[str, str] = {}


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """A namespace."""
    with kube.temporary_namespace() as name:
        yield name


@pytest.fixture(scope="module")
def variables(namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of clients: the connection ConfigMap of a Memcached, and files and a password for TLS."""
    authority, others = CA(), CA()
    server, client = authority.issue(names_of(namespace, NAME)), authority.issue(["client"], client=True)
    foreign = others.issue(["client"], client=True)
    files = tmp_path_factory.mktemp("tls")
    (files / "ca.crt").write_bytes(authority.pem)
    for name, pair in (("client", client), ("foreign", foreign)):
        (files / f"{name}.crt").write_bytes(pair.cert)
        (files / f"{name}.key").write_bytes(pair.key)
    kube.apply(tls_secret(namespace, "tls", server, authority))
    kube.apply(users_secret(namespace, "users", "app:a-password"))
    tls, auth = {"secretName": "tls", "clientAuth": "Require"}, {"secretName": "users"}
    slots: dict[str, Any] = {"size": 3, "identity": "Stable", "service": {"perPod": True}}
    kube.apply(memcached(namespace, NAME, **slots, tls=tls, auth=auth, resources=SMALL))
    wait_until_ready(namespace, NAME, timeout=120)
    return {
        **connection(namespace, NAME),
        "MEMCACHED_CA": str(files / "ca.crt"),
        "MEMCACHED_CERTIFICATE": str(files / "client.crt"),
        "MEMCACHED_KEY": str(files / "client.key"),
        "MEMCACHED_USER": "app",
        "MEMCACHED_PASSWORD": "a-password",
    }


@pytest.fixture
def start(programs: dict[str, Command], variables: Mapping[str, str], dns: Path) -> Start:
    """Start the client of a library with other values of some variables."""

    def started(name: str, other: Mapping[str, str]) -> AbstractContextManager[Client]:
        return running(name, programs[name], {**variables, **other}, dns)

    return started


@pytest.mark.parametrize("name", SUPPORTED)
def test_client_with_a_certificate_and_a_password_uses_all_slots(name: str, start: Start, namespace: str) -> None:
    """A replaced pod has no old connections: the client completes the handshake and logs in again."""
    with start(name, NOTHING) as client:
        fill(client, name)
        assert read(client, KEYS).succeeded == KEYS
        replace_pod(namespace, f"{NAME}-1", NAME)
        fill(client, name)
        found = read(client, KEYS)
    assert (found.succeeded, found.errors) == (KEYS, 0)


@pytest.mark.parametrize("name", SUPPORTED)
def test_client_of_another_authority_is_denied(name: str, start: Start, variables: Mapping[str, str]) -> None:
    foreign = {key: variables[key].replace("client", "foreign") for key in ("MEMCACHED_CERTIFICATE", "MEMCACHED_KEY")}
    with start(name, foreign) as client:
        assert client.store(ATTEMPTS).succeeded == 0


@pytest.mark.parametrize("name", SUPPORTED)
def test_client_with_a_wrong_password_is_denied(name: str, start: Start) -> None:
    with start(name, {"MEMCACHED_PASSWORD": "wrong"}) as client:
        assert client.store(ATTEMPTS).succeeded == 0


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_library_without_support_stores_nothing(name: str, start: Start) -> None:
    with start(name, NOTHING) as client:
        assert client.store(ATTEMPTS).succeeded == 0
