"""Memory tests with TLS: certificates below the root directory of a server, and many clients that connect at once.

Handshakes determine the peak: OpenSSL needs more for each than for the connection later, and memcached keeps the
memory of handshakes that took place at the same time.
"""

import socket
import ssl
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from corners.client import ADDRESS, TIMEOUT
from corners.server import copy_root
from memcached_operator.parts.tls import CA as CA_FILE
from memcached_operator.parts.tls import CERTIFICATE, KEY, TLS_PATH
from support import pki

SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    "None": {"secretName": "tls"},
    "Require": {"secretName": "tls", "clientAuth": "Require"},
}
"""`spec.tls` by its `clientAuth`."""

_MOST_MEMORY: Final = {"None": ssl.TLSVersion.TLSv1_3, "Require": ssl.TLSVersion.TLSv1_2}
"""The version of TLS with which a connection needs the most."""


@contextmanager
def prepared(root: Path, client_auth: str) -> Generator[tuple[Path, ssl.SSLContext | None]]:
    """The root directory of a server, and how its clients connect. An empty `client_auth`: without TLS."""
    if not client_auth:
        yield root, None
        return
    with TemporaryDirectory(prefix="corners-") as directory:
        copy = Path(directory)
        copy.chmod(0o755)
        copy_root(root, copy)
        yield copy, _with_certificates(copy, client_auth)


def _with_certificates(root: Path, client_auth: str) -> ssl.SSLContext:
    """Write the files of the server; returns the settings of its clients. Their chain has an intermediate CA."""
    server_ca, client_ca = (pki.CA(name, new_key=pki.rsa_key) for name in ("server CA", "client CA"))
    server = server_ca.issue()
    files = root / TLS_PATH.lstrip("/")
    files.mkdir(parents=True)
    for name, content in ((CERTIFICATE, server.cert), (KEY, server.key), (CA_FILE, client_ca.pem)):
        (files / name).write_bytes(content)
    context = ssl.create_default_context(cadata=server_ca.pem.decode())
    context.check_hostname = False
    context.minimum_version = context.maximum_version = _MOST_MEMORY[client_auth]
    if client_auth == "Require":
        client = pki.CA("intermediate", parent=client_ca, new_key=pki.rsa_key).issue(["client"], client=True)
        (root / "client.pem").write_bytes(client.cert + client.key)
        context.load_cert_chain(root / "client.pem")
    return context


class Connection:
    """A connection whose handshake has begun."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.socket = socket.create_connection((ADDRESS, port), TIMEOUT)
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()

    def send(self, data: bytes) -> None:
        """Send data."""
        self._tls.write(data)
        self._flush()

    def complete(self) -> None:
        """Complete the handshake and wait for a reply. Raises OSError if memcached denies the connection."""
        while not self._is_complete():
            self._receive()
        self.send(b"mn\r\n")
        while self._read() != b"MN\r\n":
            self._receive()

    def _is_complete(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._flush()
        return True

    def _read(self) -> bytes:
        try:
            return self._tls.read(64)
        except ssl.SSLWantReadError:
            return b""

    def _receive(self) -> None:
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError("memcached closed the connection")
        self._received.write(received)

    def _flush(self) -> None:
        if data := self._to_send.read():
            self.socket.sendall(data)


def connect_at_once(port: int, context: ssl.SSLContext, count: int) -> Sequence[Connection]:
    """Open connections. No handshake is completed before all have begun, as after an interruption of the network."""
    connections = [Connection(port, context) for _ in range(count)]
    for each in connections:
        each.complete()
    return connections
