"""The agent stops a real memcached whose disk refuses writes: the volume is an ext4 file system of its own."""

import itertools
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from cluster.public import releases
from corners import server
from corners.client import Client
from corners.server import Server
from integration.reloading import Machine, machine
from support import file_systems
from support.kube import eventually
from support.memcacheds import RELEASES
from support.ports import free_port
from support.waiting import STEP
from unit.agent.processes import running
from unit.agent.samples import value

WRITABLE: Final = "memcached_agent_extstore_writable"
MEBIBYTE: Final = 2**20
COMMAND: Final = (releases.PROGRAM, "-l", "127.0.0.1", "-t", "2", "-m", "64")
IMAGE_SIZE: Final = 160 * MEBIBYTE
OPTIONS: Final = "ext_page_size=8,ext_wbuf_size=2,ext_item_age=0,ext_path="
FILE: Final = "64m"
KEYS: Final = 12_000
"""Items, almost twice as many as fit on the disk, so that memcached reuses its pages."""
SIZE: Final = 10_240
BATCH: Final = 50
STOPPED: Final = 15.0
"""Seconds from the error until memcached has ended."""


class Volume:
    """A file system in an image, mounted at a directory. `path`: as memcached and the agent see it."""

    def __init__(self, node: Machine, image: Path) -> None:
        self.path = node.tls.directory.parent / "extstore"
        self.path.mkdir()
        self._image = image

    @contextmanager
    def mounted(self, size: int = IMAGE_SIZE) -> Generator[None]:
        """Make the file system and mount it during the block. After an error, the kernel makes it read-only."""
        with file_systems.mounted(self._image, self.path, size, server.USER):
            yield

    def frozen(self) -> AbstractContextManager[None]:
        """Let each write wait during the block."""
        return file_systems.frozen(self.path)

    def fail(self) -> None:
        """Let the kernel report an error of the file system."""
        file_systems.fail(file_systems.device_of(self.path))


@pytest.fixture(params=RELEASES)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """A machine with a release of memcached."""
    return machine(request.param, tmp_path)


@pytest.fixture
def volume(node: Machine, tmp_path: Path) -> Volume:
    """A volume that is not mounted yet."""
    return Volume(node, tmp_path / "image")


def memcached_of(node: Machine, volume: Volume) -> AbstractContextManager[Server]:
    """A memcached with its items on the volume, which may not start."""
    port = free_port()
    words = [*COMMAND, "-p", str(port), "-o", f"{OPTIONS}{volume.path}/items:{FILE}"]
    return server.started(node.root, words, port)


@contextmanager
def cache(node: Machine, volume: Volume) -> Generator[Server]:
    """A memcached with its items on the volume."""
    with memcached_of(node, volume) as live:
        assert live.problem() == ""
        yield live


@contextmanager
def client_of(live: Server) -> Generator[Client]:
    """A client during the block."""
    client = live.connect()
    with client.socket:
        yield client


def fill(path: Path) -> None:
    """Write a file until no space is left."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def content(key: int) -> bytes:
    """The value of a key."""
    return (b"%d," % key * SIZE)[:SIZE]


def store(client: Client, keys: range) -> None:
    """Store items."""
    for key in keys:
        client.send(b"ms %08d %d q\r\n%b\r\n" % (key, SIZE, content(key)))
    client.request(b"mn\r\n", b"MN\r\n")


def check(client: Client, keys: range) -> list[bool]:
    """Whether each value that memcached returns is that of its key."""
    request = b"".join(b"mg %08d k v q\r\n" % key for key in keys) + b"mn\r\n"
    reply, found = client.request(request, b"MN\r\n").removesuffix(b"MN\r\n"), list[bool]()
    while reply:
        line, _, reply = reply.partition(b"\r\n")
        if line != b"EN":  # an item that has left the disk
            found.append(reply[:SIZE] == content(int(line.split()[2][1:])))
            reply = reply[SIZE + 2 :]
    return found


def use(client: Client, start: int) -> Generator[list[bool]]:
    """Store new items and read earlier ones, until memcached ends."""
    with suppress(OSError):
        for first in itertools.count(start, BATCH):
            store(client, range(first, first + BATCH))
            earlier = first - KEYS // 4
            yield check(client, range(earlier, earlier + BATCH))


def signals(log: str) -> int:
    """How often the agent has sent SIGTERM."""
    return log.count("sent SIGTERM to memcached")


def test_memcached_is_stopped_when_its_disk_is_read_only(node: Machine, volume: Volume) -> None:
    option, healthy = f"--extstore-volume={volume.path}", f"{WRITABLE} 1"
    with volume.mounted(), cache(node, volume) as live, running(live.port, option) as agent, client_of(live) as client:
        agent.wait_for(200, healthy, "/metrics")
        store(client, range(KEYS))
        eventually(lambda: client.stats()["extstore_page_evictions"] != "0", STEP, "memcached reuses its pages")
        using = use(client, KEYS)
        assert all(same for _ in range(20) for same in next(using)), "memcached returns the values that were stored"
        volume.fail()
        failed = time.monotonic()
        values = [same for found in using for same in found]
        assert live.process.wait(STEP) == 0
        seconds = time.monotonic() - failed
        assert seconds <= STOPPED, f"{values.count(False)} wrong values of {len(values)}"
        assert not all(values), "memcached returns values of other keys, which is why it must be stopped"
        for _ in range(2):
            with memcached_of(node, volume) as second:
                assert second.problem().startswith("exited 1: ")
                second.errors.seek(0)
                assert b"extstore open: Read-only file system" in second.errors.read()
        agent.wait_for(503, f"extstore: {volume.path} cannot be written: Read-only file system. ")
        assert value(agent.get()[1], WRITABLE) == 0
        code, log = agent.end()
        assert (code, signals(log)) == (0, 1), log
    with volume.mounted(), cache(node, volume) as live, running(live.port, option) as agent, client_of(live) as client:
        agent.wait_for(200, "ok")  # the pod was deleted, and the new one has another volume
        agent.wait_for(200, healthy, "/metrics")  # it is ready before its first probe of the volume ends
        assert [same for found in itertools.islice(use(client, 0), 20) for same in found].count(False) == 0


def test_memcached_runs_while_its_disk_is_full(node: Machine, volume: Volume) -> None:
    filler = volume.path / "filler"
    option = f"--extstore-volume={volume.path}"
    with volume.mounted(), cache(node, volume) as live, running(live.port, option) as agent, client_of(live) as client:
        fill(filler)
        agent.wait_for(503, f"extstore: {volume.path} has no space for all items: No space left on device. ")
        text = agent.get()[1]
        assert value(text, WRITABLE) == 0
        assert value(text, "memcached_agent_extstore_volume_free_bytes") < SIZE
        store(client, range(KEYS))
        values = [same for first in range(0, KEYS, BATCH) for same in check(client, range(first, first + BATCH))]
        assert values
        assert all(values), "no value is wrong"
        filler.unlink()
        agent.wait_for(200, "ok")
        _, log = agent.end()
        assert (signals(log), live.process.poll()) == (0, None), log


@pytest.mark.parametrize(("size", "fits"), [(64 * MEBIBYTE, False), (IMAGE_SIZE, True)])
def test_volume_that_is_too_small_is_seen_at_once(node: Machine, volume: Volume, size: int, fits: bool) -> None:
    """The file is sparse, so that memcached starts on both volumes. The operator renders 90 % of a volume."""
    option = f"--extstore-volume={volume.path}"
    with volume.mounted(size), cache(node, volume) as live, running(live.port, option) as agent:
        agent.wait_for(200, "memcached_agent_extstore_file_bytes", "/metrics")
        text = agent.get()[1]
        limit, used, free = (
            value(text, f"memcached_{name}")
            for name in ("extstore_bytes_limit", "agent_extstore_file_bytes", "agent_extstore_volume_free_bytes")
        )
        assert limit == 64 * MEBIBYTE
        assert (limit - used - free <= 0) == fits


@pytest.mark.nightly
def test_memcached_runs_while_its_disk_hangs(node: Machine, volume: Volume) -> None:
    with volume.mounted(), cache(node, volume) as live, running(live.port, f"--extstore-volume={volume.path}") as agent:
        agent.wait_for(200, f"{WRITABLE} 1", "/metrics")
        with volume.frozen():
            agent.wait_for(503, f"extstore: {volume.path} does not reply: a write has taken more than 10 s")
            assert agent.get("/livez") == (200, "ok\n")
            assert value(agent.get()[1], WRITABLE) == 0
        agent.wait_for(200, "ok")
        assert value(agent.get()[1], WRITABLE) == 1
        _, log = agent.end()
        assert (signals(log), live.process.poll()) == (0, None), log
