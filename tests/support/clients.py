"""Clients of memcached with TLS and passwords: single requests, and a loop of requests that counts failures."""

import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection
from typing import Self

from support.kube import eventually
from support.pki import CA, Pair
from support.waiting import READY, REQUEST, STEP

PAUSE = 0.02
"""Seconds between two rounds of a loop."""
MAX_FAILURES = 20
"""Failures whose reason is kept."""


def trusting(*authorities: CA, minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
    """A context for clients that trust these authorities and verify the server's name."""
    context = ssl.create_default_context(cadata="".join(each.pem.decode() for each in authorities))
    context.minimum_version = minimum
    return context


@dataclass(frozen=True)
class Server:
    """Where and how a client connects. `name`: verified in the certificate. `tls`: None without TLS.

    `user`: a line `user:password`; None without a login.
    """

    address: str
    port: int
    name: str = ""
    tls: ssl.SSLContext | None = None
    user: str | None = None


class Client:
    """One connection. Every method raises OSError if the server refuses or closes the connection."""

    def __init__(self, server: Server, timeout: float = REQUEST) -> None:
        plain = create_connection((server.address, server.port), timeout=timeout)
        plain.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        try:
            self._socket = server.tls.wrap_socket(plain, server_hostname=server.name) if server.tls else plain
        except OSError:
            plain.close()
            raise
        self._file = self._socket.makefile("rb")
        if server.user is not None and not self.login(server.user):
            self.close()
            raise ConnectionRefusedError("the login was refused")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    @property
    def serial(self) -> int:
        """The serial number of the server's certificate."""
        assert isinstance(self._socket, ssl.SSLSocket)
        found = self._socket.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.sendall(data)

    def line(self) -> bytes:
        """The next line. Raises ConnectionError if there is none."""
        if not (found := self._file.readline()):
            raise ConnectionResetError("the server closed the connection")
        return found

    def request(self, *lines: bytes) -> bytes:
        """Send lines, and return the first line of the reply."""
        self.send(b"".join(each + b"\r\n" for each in lines))
        return self.line()

    def login(self, user: str) -> bool:
        """Log in with `user:password`; returns whether the server accepts it."""
        value = user.replace(":", " ", 1).encode()
        return self.request(b"set auth 0 0 %d" % len(value), value) == b"STORED\r\n"

    def store(self, keys: Iterable[str]) -> None:
        """Store each key, with itself as the value."""
        for key in keys:
            assert self.request(f"set {key} 0 0 {len(key)}".encode(), key.encode()) == b"STORED\r\n"

    def count(self, keys: Sequence[str], batch: int = 100) -> int:
        """The number of keys that have their values."""
        found = 0
        for start in range(0, len(keys), batch):
            self.send(f"get {' '.join(keys[start : start + batch])}\r\n".encode())
            while (line := self.line()) != b"END\r\n":
                found += line.split()[1] + b"\r\n" == self.line()
        return found

    def works(self) -> bool:
        """Whether the server replies to a request; an item need not exist."""
        return self.request(b"get any") == b"END\r\n"


def accepts(server: Server) -> bool:
    """Whether a server replies to a request. With TLS 1.3, it denies a certificate after the handshake."""
    try:
        with Client(server) as client:
            return client.works()
    except OSError:
        return False


def certified(context: ssl.SSLContext, pair: Pair, directory: str) -> ssl.SSLContext:
    """The context with a client certificate. `directory`: for the files that `ssl` reads."""
    certificate, key = f"{directory}/{pair.serial}.crt", f"{directory}/{pair.serial}.key"
    for path, content in ((certificate, pair.cert), (key, pair.key)):
        with open(path, "wb") as file:  # noqa: PTH123 - as in ssl's own interface
            file.write(content)
    context.load_cert_chain(certificate, key)
    return context


@dataclass
class Traffic:
    """The results of a loop. A round has one request to each server.

    `failed_together`: rounds in which requests to more than one server failed.
    """

    rounds: int = 0
    requests: int = 0
    failed: int = 0
    failed_together: int = 0
    reasons: list[str] = field(default_factory=list[str])


@contextmanager
def in_threads(*loops: Callable[[threading.Event], None]) -> Generator[None]:
    """Run each loop in a thread during the block. At its end, the event is set upon which they end."""
    stop = threading.Event()
    threads = [threading.Thread(target=each, args=(stop,), daemon=True) for each in loops]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in threads:
            each.join(STEP)


@contextmanager
def traffic(*servers: Server) -> Generator[Traffic]:
    """Send requests to all servers during the block: over one kept connection each, and over a new one each round.

    It begins when all servers reply: a Service has no rules on a node until some time after its pods are ready. Kept
    connections are opened again if they fail. At the end, at least one round is complete.
    """
    for each in servers:
        eventually(lambda server=each: accepts(server), READY, f"{each.name or each.address} replies")
    found = Traffic()
    with in_threads(partial(_run, servers, found)):
        yield found


def _run(servers: Sequence[Server], found: Traffic, stop: threading.Event) -> None:
    kept: dict[Server, Client] = {}
    while not (stop.is_set() and found.rounds):
        failed = sum(not _request(each, kept, found) for each in servers)
        found.rounds += 1
        found.failed_together += failed > 1
        stop.wait(PAUSE)
    for each in kept.values():
        each.close()


def _request(server: Server, kept: dict[Server, Client], found: Traffic) -> bool:
    """One request over the kept connection, and one over a new one; returns whether both succeeded."""
    found.requests += 2
    started = time.monotonic()
    try:
        if server not in kept:
            kept[server] = Client(server)
        assert kept[server].works()
        with Client(server) as new:
            assert new.works()
    except (OSError, AssertionError) as error:
        found.failed += 1
        if len(found.reasons) < MAX_FAILURES:
            seconds = time.monotonic() - started
            found.reasons.append(f"round {found.rounds}, {seconds:.1f} s: {server.name or server.address}: {error!r}")
        if server in kept:
            kept.pop(server).close()
        return False
    return True
