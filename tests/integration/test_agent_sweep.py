"""`memcached-agent sweep` with real memcacheds: what it removes, and what it leaves, which a real proxy says."""

import os
import re
import signal
import socket
import subprocess
from base64 import b64encode
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from cluster.public import releases
from corners.client import Client
from corners.server import Server
from integration.test_agent_proxy import listening, proxy
from memcached_agent.sweep.connection import Deadline
from memcached_agent.sweep.dump import MARKER
from memcached_agent.sweep.slot import Change, Slot
from memcached_agent.sweep.sweep import sweep
from support import waiting
from support.kube import eventually
from support.memcacheds import memcached_root
from support.ports import free_port
from unit.agent.processes import command, environment

CHANGE: Final = 1764582000
DONE: Final = re.compile(r"(\d+) slots are swept \((\d+) were before\): (\d+) items removed in [0-9.]+ s")
EACH: Final = 12
"""Keys of a kind."""


class Item(NamedTuple):
    """A key as commands contain it, and whether it is in base64. `append`: whether its value is changed so."""

    key: bytes
    in_base64: bool = False
    append: bool = False

    @property
    def flag(self) -> bytes:
        """The flag of base64."""
        return b" b" if self.in_base64 else b""


def encoded(key: bytes, *, append: bool = False) -> Item:
    """An item whose key is in base64."""
    return Item(b64encode(key), in_base64=True, append=append)


ITEMS: Final = [
    item
    for n in range(EACH)
    for item in (
        *(
            Item(b"user:%d" % n),
            Item(b"k" * 240 + b"%d" % n),
            Item(f"ключ-{n}".encode()),
            Item(b"added-%d" % n, append=True),
        ),
        *(encoded(b"plain-%d" % n), encoded(b"\x01\xfe %d" % n), encoded(b"a\r\nmg b%d" % n)),
        *(encoded(b"\x01\xfe changed %d" % n, append=True), encoded(b"b\r\nc%d" % n, append=True)),
    )
]


@dataclass(frozen=True)
class Ring:
    """Slots on loopback. `network`: the start of their addresses, on which all use the same `port`."""

    servers: Sequence[Server]
    network: str
    port: int

    def fill(self, slots: Sequence[int]) -> None:
        """Store all items in each of these slots, wherever their home is."""
        for slot in slots:
            with closing(self.servers[slot].connect()) as client:
                for item in ITEMS:
                    store(client, item)

    def held(self, item: Item) -> set[int]:
        """The slots that have an item."""
        return {slot for slot, server in enumerate(self.servers) if ask(server, b"mg %b%b" % (item.key, item.flag))}

    def words(self, old: int, new: int, change: int = CHANGE) -> list[str]:
        """The command line of a sweep."""
        sizes = (f"--old={old}", f"--new={new}", f"--change={change}")
        return command("sweep", *sizes, f"--host={self.network}.1{{}}", f"--port={self.port}")

    def sweep(self, old: int, new: int, change: int = CHANGE) -> tuple[int, ...]:
        """Sweep successfully: the numbers of slots, of those that were swept before, and of the removed items."""
        with self.sweeping(old, new, change) as process:
            return result(process)

    @contextmanager
    def sweeping(self, old: int, new: int, change: int = CHANGE) -> "Generator[subprocess.Popen[str]]":
        """A sweep that may run during the block."""
        words = self.words(old, new, change)
        with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()


def result(process: "subprocess.Popen[str]") -> tuple[int, ...]:
    """Wait until a sweep has succeeded; returns the numbers in the last line of its log."""
    _, log = process.communicate(timeout=waiting.STEP)
    assert process.returncode == 0, log
    found = DONE.fullmatch(log.splitlines()[-1])
    assert found, log
    return tuple(map(int, found.groups()))


def next_line(process: "subprocess.Popen[str]") -> str:
    """The next line of the log of a sweep."""
    assert process.stderr
    return process.stderr.readline()


def ask(server: Server, line: bytes) -> bytes:
    """The reply to a meta get, without its end; empty for a miss."""
    with closing(server.connect()) as client:
        return client.request(line + b"\r\nmn\r\n", b"MN\r\n").removesuffix(b"MN\r\n").removesuffix(b"EN\r\n")


def store(client: Client, item: Item) -> None:
    """Store an item, with the value x or xy."""
    for mode, value in ((b"S", b"x"), (b"A", b"y"))[: 1 + item.append]:
        assert client.request(b"ms %b 1 M%b%b\r\n%b\r\n" % (item.key, mode, item.flag, value)) == b"HD\r\n"


def many(items: int, prefix: bytes = b"many-") -> Iterator[bytes]:
    """Batches of commands that store items."""
    for start in range(0, items, 1000):
        yield b"".join(b"ms %b%d 1 q\r\nx\r\n" % (prefix, number) for number in range(start, start + 1000))


@pytest.fixture(scope="module")
def root() -> Path:
    """The root directory of the newest release."""
    return memcached_root(releases.VERSIONS[-1])


@contextmanager
def ring(root: Path, size: int, *options: str) -> Generator[Ring]:
    """Slots without items, during the block."""
    network, port = f"127.79.{os.getpid() % 250}", free_port()
    with ExitStack() as stack:
        servers = [
            stack.enter_context(listening(root, free_port(), "-l", f"{network}.1{slot}:{port}", *options))
            for slot in range(size)
        ]
        yield Ring(servers, network, port)


@pytest.mark.parametrize(("old", "new"), [(3, 4), (4, 3)])
def test_only_items_of_other_slots_are_removed(root: Path, old: int, new: int) -> None:
    with ring(root, 4) as found, proxy(root, [each.port for each in found.servers[:old]]) as front:
        with closing(front.connect()) as client:
            for item in ITEMS:
                store(client, item)
        homes = {item: found.held(item) for item in ITEMS}
        assert {len(slots) for slots in homes.values()} == {1}
        found.fill(range(4))
        kept = sum(max(slots) < new for slots in homes.values())
        assert found.sweep(old, new) == (new, 0, new * len(ITEMS) - kept)
        unswept = set(range(new, 4))
        assert {item: found.held(item) for item in ITEMS} == {item: slots | unswept for item, slots in homes.items()}
        for item in ITEMS:
            value = b"VA 2\r\nxy\r\n" if item.append else b"VA 1\r\nx\r\n"
            assert ask(front, b"mg %b v%b" % (item.key, item.flag)) == value


def test_slots_are_swept_once_for_each_change(root: Path) -> None:
    with ring(root, 2) as found:
        found.fill(range(2))
        _, _, removed = found.sweep(1, 2)
        assert removed == len(ITEMS)
        assert [ask(each, b"mg %b v t" % MARKER) for each in found.servers] == [b"VA 10 t-1\r\n%d\r\n" % CHANGE] * 2
        found.fill([1])
        assert found.sweep(1, 2) == (2, 2, 0)
        assert found.held(ITEMS[0]) == {0, 1}
        assert found.sweep(1, 2, CHANGE + 1) == (2, 0, len(ITEMS))
        assert found.held(ITEMS[0]) == {0}


def test_slot_that_lost_its_marker_is_swept_again(root: Path) -> None:
    with ring(root, 2) as found:
        found.sweep(1, 2)
        assert ask(found.servers[1], b"md %b" % MARKER) == b"HD\r\n"
        found.fill([1])
        assert found.sweep(1, 2) == (2, 1, len(ITEMS))


def test_key_that_looks_like_two_does_not_stop_a_sweep(root: Path) -> None:
    """An item whose key lost its mark, and contains the start of another line of a dump. It stays."""
    item = encoded(b"a\r\nmg b", append=True)
    with ring(root, 1) as found:
        with closing(found.servers[0].connect()) as client:
            store(client, item)
        for slots in range(2, 5):
            assert found.sweep(slots, 1, CHANGE + slots) == (1, 0, 0)
        assert found.held(item) == {0}


def test_sweeps_at_the_same_time_share_the_work(root: Path) -> None:
    with ring(root, 2) as found:
        for server in found.servers:
            with closing(server.connect()) as client:
                client.send_quiet(many(20000))
        with found.sweeping(1, 2) as first, found.sweeping(1, 2) as second:
            removed = [result(process)[2] for process in (first, second)]
        assert sum(removed) == 20000
        with closing(found.servers[1].connect()) as client:
            assert client.stats()["curr_items"] == "1"


def test_slot_that_hangs_is_swept_when_it_is_back(root: Path) -> None:
    with ring(root, 2) as found:
        found.fill([1])
        hanging = found.servers[1].process
        hanging.send_signal(signal.SIGSTOP)
        with found.sweeping(1, 2) as process:
            address = f"slot 1 ({found.network}.11:{found.port})"
            assert next_line(process) == f"{address} does not reply within 5 s. The sweep tries again\n"
            hanging.send_signal(signal.SIGCONT)
            assert result(process) == (2, 0, len(ITEMS))


def test_sweep_ends_with_its_pod(root: Path) -> None:
    with ring(root, 2) as found:
        found.servers[1].process.kill()
        with found.sweeping(1, 2) as process:
            assert "refuses the connection" in next_line(process)
            process.terminate()
            assert process.wait(waiting.STEP) == 128 + signal.SIGTERM


@contextmanager
def unread_dump(server: Server) -> Generator[None]:
    """A dump of many keys that its client does not read, during the block."""
    with closing(server.connect()) as client:
        client.send_quiet(many(20000, b"k" * 240))
    with socket.socket() as dump:
        dump.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        dump.connect(("127.0.0.1", server.port))
        dump.sendall(b"lru_crawler mgdump hash\r\n")
        eventually(partial(crawls, server), waiting.STEP, "the dump has begun")
        yield


def crawls(server: Server) -> bool:
    """Whether a dump or a crawl runs."""
    with closing(server.connect()) as client:
        return client.stats()["lru_crawler_running"] == "1"


def test_dump_of_another_client_delays_a_sweep_but_no_clients(root: Path) -> None:
    """The command of a second dump would stop the only worker thread until the first one is read."""
    with ring(root, 1, "-t", "1") as found:
        (server,) = found.servers
        with ExitStack() as dump:
            dump.enter_context(unread_dump(server))
            with found.sweeping(2, 1) as process:
                assert "is busy with another dump or crawl of its items" in next_line(process)
                assert crawls(server)
                with closing(Client(server.port, waiting.REQUEST)) as client:
                    assert client.request(b"mn\r\n") == b"MN\r\n"
                dump.close()
                slots, skipped, removed = result(process)
        assert (slots, skipped) == (1, 0)
        assert 0 < removed < 20000


def test_dump_is_given_up_if_its_deletions_take_longer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_agent.sweep.slot.MAX_PENDING", 1000)
    with ring(root, 1) as found:
        (server,) = found.servers
        with closing(server.connect()) as client:
            client.send_quiet(many(20000))
            slot = Slot(1, "127.0.0.1", server.port)  # the home of all in a ring of one slot is 0
            assert sweep([slot], Change(1, 2, CHANGE), Deadline(waiting.STEP), print)
            assert slot.removed == 20000
            assert int(client.stats()["lru_crawler_starts"]) > 2
            assert client.stats()["curr_items"] == "1"


@pytest.mark.nightly
def test_release_without_the_dump() -> None:
    with ring(memcached_root(releases.VERSIONS[0]), 1) as found:
        words = [*found.words(2, 1), "--timeout=1"]
        with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
            _, log = process.communicate(timeout=waiting.STEP)
        assert process.returncode == 1
        assert "use memcached 1.6.40 or later, with its LRU crawler and dumps" in log.splitlines()[-1]
