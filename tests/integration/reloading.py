"""A memcached and an agent that makes it reload certificates and users, whose files change as mounted Secrets."""

import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.public import releases
from corners import server
from corners.client import Client
from corners.server import Server
from support.memcacheds import memcached_root
from support.pki import Pair
from support.ports import free_port
from support.streams import unverified
from support.volumes import Volume
from unit.agent.processes import Agent, running

IN_TIME = 10.0
"""Seconds from a change of the files until memcached uses them."""
SUCCESSFUL = "memcached_agent_last_reload_successful"
EXPIRATION = "memcached_agent_certificate_expiration_timestamp_seconds"
MODES = {"None": 0, "Request": 1, "Require": 2}


@dataclass
class Machine:
    """A root directory of memcached, in which the same absolute paths lead to the files as for the agent."""

    version: str
    root: Path
    tls: Volume
    auth: Volume

    @property
    def users(self) -> Path:
        """The file of -Y."""
        return self.auth.directory / "users"


def machine(version: str, folder: Path) -> Machine:
    """A machine with a release of memcached, below a folder that is empty."""
    release = memcached_root(version)
    root = folder / "root"
    server.copy_root(release, root)
    mounts = folder / "mounts"
    inside = root / mounts.relative_to("/")
    inside.mkdir(parents=True)
    mounts.symlink_to(inside)
    return Machine(version, root, Volume(mounts / "tls"), Volume(mounts / "auth"))


@dataclass
class Cache:
    """A memcached, its agent, and a client that stays connected."""

    node: Machine
    server: Server
    tls_port: int
    agent: Agent
    client: Client

    def served(self, identity: Path | None = None) -> tuple[bytes, bytes]:
        """The certificate that memcached serves, and its reply, to a new client. Raises OSError."""
        context = unverified()
        if identity:
            context.load_cert_chain(identity)
        with (
            socket.create_connection(("127.0.0.1", self.tls_port), 10) as plain,
            context.wrap_socket(plain) as encrypted,
        ):
            encrypted.sendall(b"version\r\n")
            return encrypted.getpeercert(binary_form=True) or b"", encrypted.recv(100)

    def wait_served(self, pair: Pair, identity: Path | None = None) -> None:
        """Wait until memcached serves this certificate and the agent reports it, but not too long."""
        wait_until(lambda: self.served(identity)[0] == pair.der)
        self.agent.wait_for(200, f"{EXPIRATION} {pair.not_after.timestamp():.0f}", "/metrics")
        self.agent.wait_for(200, f'{SUCCESSFUL}{{source="certificate"}} 1', "/metrics")
        assert self.agent.get("/healthz") == (200, "ok\n")

    def accepts(self, user: bytes) -> bool:
        """Whether a new client can log in, with `user password`; not at the connection limit."""
        client = self.server.connect()
        with client.socket:
            try:
                return log_in(client, user)
            except ConnectionError:
                return False


def log_in(client: Client, user: bytes) -> bool:
    """Log in, with `user password`."""
    reply = client.request(b"set auth 0 0 %d\r\n%b\r\n" % (len(user), user))
    return reply == b"STORED\r\n"


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true; at most IN_TIME."""
    deadline = time.monotonic() + IN_TIME
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.1)


@contextmanager
def cache(
    node: Machine,
    *,
    tls: str | None = "None",
    auth: bool = False,
    options: tuple[str, ...] = (),
    agent: tuple[str, ...] = (),
) -> Generator[Cache]:
    """A memcached with TLS, in a mode of clientAuth, or with users, and its agent. The files must exist."""
    port, tls_port = free_port(), free_port()
    words = [releases.PROGRAM, "-t", "2", "-m", "64", *options]
    flags = list(agent)
    if tls is None:
        words += ["-l", "127.0.0.1", "-p", str(port)]
    else:
        directory = node.tls.directory
        extended = f"ssl_chain_cert={directory}/tls.crt,ssl_key={directory}/tls.key,ssl_min_version=2"
        if MODES[tls]:
            extended += f",ssl_ca_cert={directory}/client-ca.crt,ssl_verify_mode={MODES[tls]}"
        words += ["-l", f"*:{tls_port},notls:127.0.0.1:{port}", "-Z", "-o", extended]
        flags += [f"--tls-directory={directory}", f"--tls-port={tls_port}"]
    if auth:
        words += ["-Y", str(node.users)]
        flags += [f"--users-file={node.users}"]
    with server.started(node.root, words, port) as found:
        found.wait_until_started()
        assert found.process.poll() is None, found.exit_message()
        with running(port, *flags, tls="--metrics-tls" in flags) as started:
            for each in ["certificate"] * (tls is not None) + ["users"] * auth:
                started.wait_for(200, f'{SUCCESSFUL}{{source="{each}"}} 1', "/metrics")
            client = found.connect()
            with client.socket:
                yield Cache(node, found, tls_port, started, client)
            if started.process.poll() is None:
                assert "Traceback" not in started.end()[1]


def store(client: Client) -> None:
    """Store an item."""
    assert client.request(b"set item 0 0 1\r\n1\r\n") == b"STORED\r\n"


def check_kept(client: Client) -> None:
    """Check that a connection and the item are still there."""
    assert client.request(b"get item\r\n", b"END\r\n").startswith(b"VALUE item 0 1\r\n1\r\n")
