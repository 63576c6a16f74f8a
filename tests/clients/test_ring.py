"""`kubectl memcached ring` recognizes each library with the settings of docs/clients.md. These tests need no pods.

The servers of a cache are memcacheds at loopback addresses, which clients find by the names of its slots.
"""

import json
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from clients import libraries
from clients.running import HOSTS, Client, running
from cluster.public import releases as memcacheds
from corners import server
from corners.server import Server
from kubectl_memcached.cli import cli
from support.fake_kubectl import FakeKubectl
from support.kube import eventually
from support.memcacheds import memcached_root
from support.ports import free_port
from support.waiting import STEP
from unit.plugin import samples

PORT: Final = 11211
SIZE: Final = 3
KEYS: Final = 500
SECONDS: Final = 10
"""Enough for all keys on a busy machine. They take less than a second on an idle one."""
RECOGNIZED: Final = {
    "pymemcache": "pymemcache",
    "pylibmc": "pylibmc (ketama)",
    "gomemcache": "gomemcache or memjs (rendezvous hashing)",
    "memjs": "gomemcache or memjs (rendezvous hashing)",
    "xmemcached": "xmemcached (ketama)",
    "php-memcached": "php-memcached (ketama)",
    "dalli": "dalli",
    "pymemcache with bytes": "pymemcache (bytes keys)",
    "npm's memcached": "php-memcached (ketama)",  # with three servers
}
"""The name that `ring` has for the settings of each library."""

Names = Callable[[int], str]


def pod_name(slot: int) -> str:
    """The DNS name of a pod."""
    return f"sessions-{slot}.sessions.shop.svc.cluster.local"


def service_name(slot: int) -> str:
    """The DNS name of the Service of a slot."""
    return f"sessions-{slot}.shop.svc.cluster.local"


def listed(name: Names, size: int) -> str:
    """The list of servers in the connection ConfigMap."""
    return ",".join(f"{name(slot)}:{PORT}" for slot in range(size))


@dataclass(frozen=True)
class World:
    """A cache, and clients that know a number of its slots."""

    servers: Sequence[Server]
    hosts: Path
    programs: dict[str, libraries.Command]

    def started(self, stack: ExitStack, library: str, size: int) -> Client:
        """A client program with a list of `size` servers."""
        variables = {"MEMCACHED_SERVERS": listed(pod_name, size), "MEMCACHED_FIXED_SERVERS": listed(service_name, size)}
        return stack.enter_context(running(library, self.programs[library], variables, self.hosts, HOSTS))

    def ring(self, *clients: tuple[str, int]) -> dict[str, Any]:
        """The result of `ring` while clients of these libraries, each with a number of servers, store their keys."""
        with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
            started = [self.started(stack, library, size) for library, size in clients]
            words = ["ring", "sessions", f"--seconds={SECONDS}", "-o", "json"]
            # memcached notices the end of the watchers of the test before only after a moment.
            eventually(lambda: self.watchers() == {"0"}, STEP, "no server is watched")
            result = pool.submit(CliRunner().invoke, cli, words)
            eventually(lambda: self.watchers() == {"1"}, STEP, "all servers are watched")
            for client in started:
                fill(client)
            return json.loads(result.result().stdout)

    def watchers(self) -> set[str]:
        """The numbers of watchers of the memcacheds."""
        return {watchers(process) for process in self.servers}


def fill(client: Client) -> None:
    """Store all keys. On a busy machine, a request may exceed the time-outs of its library."""
    eventually(lambda: client.store(KEYS).succeeded == KEYS, STEP, "the client stores all keys")


def watchers(process: Server) -> str:
    """The number of watchers of a memcached."""
    with closing(process.connect()) as client:
        return client.stats()["log_watchers"]


@contextmanager
def serving(programs: dict[str, libraries.Command], folder: Path, size: int, network: str) -> Generator[World]:
    """Memcacheds at the first addresses of a network, and a kubectl that knows them as pods, during the block."""
    root = memcached_root(memcacheds.VERSIONS[-1])
    fake, cr = FakeKubectl(folder), samples.memcached({"size": size, "service": {"perPod": True}})
    pods = [samples.pod(slot, cr) for slot in range(size)]
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        servers = list[Server]()
        for slot, pod in enumerate(pods):
            pod["status"]["podIP"] = f"{network}.{slot + 1}"
            # The port of 127.0.0.1 is that of kubectl port-forward.
            port = free_port()
            words = [memcacheds.PROGRAM, "-l", f"{network}.{slot + 1}:{PORT},127.0.0.1:{port}", "-t", "2"]
            servers.append(stack.enter_context(server.started(root, words, port)))
            servers[-1].wait_until_started()
            fake.ports[pod["metadata"]["name"]] = {PORT: port}
        hosts = folder / "hosts"
        hosts.write_text(
            "".join(f"{network}.{slot + 1} {pod_name(slot)} {service_name(slot)}\n" for slot in range(size))
        )
        fake.objects = {samples.RESOURCE: [cr], "pods": pods}
        for name, value in fake.environment().items():
            patch.setenv(name, value)
        yield World(servers, hosts, programs)


@pytest.fixture(scope="module")
def world(programs: dict[str, libraries.Command], tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    """Three slots."""
    with serving(programs, tmp_path_factory.mktemp("ring"), SIZE, f"127.77.{os.getpid() % 250}") as found:
        yield found


@pytest.mark.parametrize("library", [*libraries.LIBRARIES, *libraries.RINGS])
def test_library_is_recognized(library: str, world: World) -> None:
    result = world.ring((library, SIZE))
    first = result["matches"][0]
    assert (first["library"], first["slots"], result["agree"]) == (RECOGNIZED[library], [0, 1, 2], True)
    assert (result["newKeys"], first["share"]) == (KEYS, 1.0)


@pytest.mark.parametrize(
    "clients",
    [
        [("pymemcache", 3), ("php-memcached", 3)],
        [("pymemcache", 3), ("pymemcache with bytes", 3)],
        [("gomemcache", 3), ("dalli", 3), ("pylibmc", 3)],
        [("pymemcache", 3), ("pymemcache", 2)],
    ],
)
def test_clients_that_disagree_are_reported(clients: list[tuple[str, int]], world: World) -> None:
    result = world.ring(*clients)
    assert not result["agree"]
    found = {(match["library"], len(match["slots"])) for match in result["matches"]}
    assert found == {(RECOGNIZED[library], size) for library, size in clients}
    assert result["elsewhere"] == 0


def test_package_of_npm_is_one_client_where_its_ring_differs_from_that_of_libmemcached(
    programs: dict[str, libraries.Command], tmp_path: Path
) -> None:
    with serving(programs, tmp_path, 7, f"127.78.{os.getpid() % 250}") as world:
        result = world.ring(("npm's memcached", 7))
    assert [(each["library"], each["share"]) for each in result["matches"]] == [("npm's memcached (ketama)", 1.0)]
    assert result["agree"]
