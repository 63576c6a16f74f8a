"""Slots on loopback: memcacheds that clients find by the names of slots, and a proxy in front of them. No pods."""

import os
import signal
import tempfile
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clients.libraries import Command
from clients.running import HOSTS, Client, running
from clients.test_ring import PORT, listed, pod_name, service_name
from cluster.public import releases
from corners import server
from corners.server import Server
from integration.test_proxy_limits import Corner, container, started
from support.kube import eventually
from support.memcacheds import memcached_root
from support.ports import free_port
from support.waiting import STEP

SIZE: Final = 3
BROKEN: Final = 1
"""The slot that a test breaks."""
KEYS: Final = 60


@dataclass(frozen=True)
class Slots:
    """A server for each slot, and one more, which only a longer list contains. `network`: the start of all addresses.

    `hosts`: a hosts file with the names of the slots.
    """

    root: Path
    network: str
    servers: Sequence[Server]
    hosts: Path

    def client(self, library: str, command: Command, size: int = SIZE) -> AbstractContextManager[Client]:
        """A client with a list of `size` servers, during the block."""
        variables = {"MEMCACHED_SERVERS": listed(pod_name, size), "MEMCACHED_FIXED_SERVERS": listed(service_name, size)}
        return running(library, command, variables, self.hosts, HOSTS)

    def held(self, prefix: str) -> list[list[int]]:
        """The numbers of a client's keys that each of the slots holds. Those of a server that ended: none."""
        return [numbers(each, prefix) if each.process.poll() is None else [] for each in self.servers]

    def end(self, slot: int = BROKEN) -> None:
        """End the server of a slot: connections are refused."""
        process = self.servers[slot].process
        process.kill()
        process.wait()

    def flush(self) -> None:
        """Delete the items of the servers that run."""
        for each in self.servers:
            if each.process.poll() is None:
                with closing(each.connect()) as client:
                    assert client.request(b"flush_all\r\n") == b"OK\r\n"

    @contextmanager
    def hanging(self) -> Generator[None]:
        """Stop the server of the broken slot during the block: it accepts connections, and does not answer."""
        process = self.servers[BROKEN].process
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    @contextmanager
    def front(self, library: str, command: Command) -> Generator[Client]:
        """A client of a proxy of all slots, with the routes of a MemcachedProxy, during the block."""
        built, routes = container(Corner({}))
        routes = routes.replace('"cache-" .. i .. ".cache.test.svc.cluster.local."', f'"{self.network}." .. i + 1')
        with tempfile.NamedTemporaryFile("w", dir=self.root, prefix="routes-") as file, ExitStack() as stack:
            file.write(routes)
            file.flush()
            Path(file.name).chmod(0o644)
            words = [word.replace("/etc/podinfo/routes", f"/{Path(file.name).name}") for word in built["command"][1:]]
            address = f"127.0.0.1:{stack.enter_context(started(self.root, words)).port}"
            variables = {"MEMCACHED_SERVERS": address, "MEMCACHED_FIXED_SERVERS": address}
            yield stack.enter_context(running(library, command, variables, self.hosts, HOSTS))


def numbers(process: Server, prefix: str) -> list[int]:
    """The numbers of a client's keys that a server holds."""
    with closing(process.connect()) as client:
        keys = b" ".join(b"%s-%d" % (prefix.encode(), number) for number in range(KEYS))
        lines = client.request(b"get %s\r\n" % keys, b"END\r\n").decode().splitlines()
    return [int(line.split()[1].rpartition("-")[2]) for line in lines if line.startswith("VALUE ")]


def filled(client: Client) -> None:
    """Store all keys. On a busy machine, a request may exceed the time-outs of its library."""
    eventually(lambda: client.store(KEYS).succeeded == KEYS, STEP, "the client stores all keys")


@contextmanager
def slots(folder: Path) -> Generator[Slots]:
    """Servers during the block. `folder`: for the hosts file."""
    root, network = memcached_root(releases.VERSIONS[-1]), f"127.78.{os.getpid() % 250}"
    with ExitStack() as stack:
        servers = list[Server]()
        for slot in range(SIZE + 1):
            port = free_port()
            words = [releases.PROGRAM, "-l", f"{network}.{slot + 1}:{PORT},127.0.0.1:{port}", "-t", "2"]
            servers.append(stack.enter_context(server.started(root, words, port)))
            servers[-1].wait_until_started()
        hosts = folder / "hosts"
        hosts.write_text("".join(f"{network}.{n + 1} {pod_name(n)} {service_name(n)}\n" for n in range(SIZE + 1)))
        yield Slots(root, network, servers, hosts)
