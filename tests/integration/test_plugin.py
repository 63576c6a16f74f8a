"""The kubectl plugin with real memcacheds of the oldest and the newest tested release, and a real agent."""

import itertools
import json
import os
import threading
import zlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cluster.public import releases
from corners import server
from corners.server import Server
from kubectl_memcached.cli import cli
from kubectl_memcached.errors import PluginError
from support.clients import in_threads
from support.fake_kubectl import FakeKubectl
from support.ports import free_port
from unit.agent.processes import running
from unit.plugin import samples
from unit.plugin.test_status import secret

BLOCKING = ("--disable-flush-all", "--disable-dumping", "--disable-watch")

Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    """A cluster without objects."""
    fake = FakeKubectl(tmp_path)
    for name, value in fake.environment().items():
        monkeypatch.setenv(name, value)
    return fake


@pytest.fixture
def command(kubectl: FakeKubectl) -> Command:
    """Run a command; returns its exit code, and its JSON, output or error."""

    def invoke(*words: str) -> tuple[int, Any]:
        kubectl.environment()
        result = CliRunner().invoke(cli, words)
        if isinstance(result.exception, PluginError):
            return result.exception.code, str(result.exception)
        return result.exit_code, json.loads(result.stdout) if "json" in words else result.stdout

    return invoke


@contextmanager
def listening(root: Path, port: int, *options: str) -> Generator[Server]:
    """A memcached on this port of loopback, during the block; it may require a login."""
    words = [releases.PROGRAM, "-l", "127.0.0.1", "-p", str(port), "-t", "2", "-m", "64", *options]
    with server.started(root, words, port) as process:
        process.wait_until_started()
        yield process


@pytest.fixture
def start(root: Path, kubectl: FakeKubectl) -> Generator[Callable[..., list[Server]]]:
    """Start a memcached for each pod of a Memcached. `options`: of memcached. `agent`: whether they have agents."""
    with ExitStack() as stack:

        def servers(spec: dict[str, Any], *options: str, agent: bool = False) -> list[Server]:
            cr = samples.memcached(spec)
            processes = [stack.enter_context(listening(root, free_port(), *options)) for _ in range(2)]
            pods = [samples.pod(number, cr) for number in range(2)]
            for pod, process in zip(pods, processes, strict=True):
                metrics = stack.enter_context(running(process.port)).port if agent else 1
                kubectl.ports[pod["metadata"]["name"]] = {11211: process.port, 9150: metrics}
            kubectl.objects = {samples.RESOURCE: [cr], "pods": pods, "secret": [secret()]}
            return processes

        yield servers


def ask(process: Server, request: bytes, end: bytes = b"\r\n") -> bytes:
    """The reply of a server on a new connection."""
    with closing(process.connect()) as client:
        return client.request(request, end)


def counters(process: Server) -> dict[str, str]:
    """The counters that a get or a touch changes."""
    with closing(process.connect()) as client:
        stats = client.stats()
    return {name: stats[name] for name in ("cmd_get", "get_hits", "get_misses", "cmd_touch")}


def test_every_command_reads_real_servers(start: Callable[..., list[Server]], command: Command, root: Path) -> None:
    first, second = start({"monitoring": {}}, agent=True)
    for process, name, time in ((first, b"once", 0), (second, b"twice", 900)):
        assert ask(process, b"set %b 0 %d 3\r\nabc\r\n" % (name, time)) == b"STORED\r\n"
        ask(process, b"get %b\r\n" % name, b"END\r\n")
    code, status = command("status", "sessions", "-o", "json")
    release = root.name.partition("-")[0]
    assert (code, [(row["version"], row["hitRatio"]) for row in status["pods"]]) == (0, [(release, 1)] * 2)
    assert [row["agentProblem"] + row["problem"] for row in status["pods"]] == ["", ""]
    assert 0 < status["pods"][0]["connections"] < status["pods"][0]["maxConnections"] == 1024
    before = counters(second)
    code, result = command("find", "sessions", "twice", "-o", "json")
    (item,) = (lookup["item"] for lookup in result["pods"] if lookup["item"])
    assert (code, item["read"], item["sizeBytes"] > 50, 0 < item["expiresInSeconds"] <= 900) == (0, True, True, True)
    assert result["pods"][0] == {"pod": "sessions-0", "item": None, "problem": ""}
    assert counters(second) == before
    for option in ("slabs", "items", "settings"):
        assert command("stats", "sessions", f"--{option}", "-o", "json")[0] == 0
    assert command("top", "sessions", "--once", "--interval=0.5")[0] == 0


def test_flush_deletes_the_items_of_every_pod(start: Callable[..., list[Server]], command: Command) -> None:
    servers = start({})
    for process in servers:
        assert ask(process, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert command("flush", "sessions", "--yes", "--rate=6000")[0] == 0
    assert [ask(process, b"get k\r\n", b"END\r\n") for process in servers] == [b"END\r\n"] * 2


@contextmanager
def traffic(processes: list[Server]) -> Generator[None]:
    """Store new keys as gomemcache does with two servers, and read one key after each."""

    def work(stop: threading.Event) -> None:
        with ExitStack() as stack:
            clients = [stack.enter_context(closing(process.connect())) for process in processes]
            for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                key = b"new:%d" % number
                clients[zlib.crc32(key) % 2].request(b"set %b 0 0 1\r\nx\r\n" % key, b"\r\n")
                clients[0].request(b"get hot\r\n", b"END\r\n")

    with in_threads(work):
        yield


def test_ring_and_hot_keys_of_real_servers(start: Callable[..., list[Server]], command: Command) -> None:
    servers = start({})
    for process in servers:
        assert ask(process, b"set hot 0 0 5\r\nabcde\r\n") == b"STORED\r\n"
    with traffic(servers):
        code, found = command("ring", "sessions", "--seconds=2", "-o", "json")
        hot_code, hot = command("hotkeys", "sessions", "--seconds=2", "-o", "json")
    assert (code, found["matches"][0]["library"], found["matches"][0]["share"]) == (0, "gomemcache", 1)
    first = hot["keys"][0]
    assert (hot_code, first["key"], first["valueBytes"], list(first["pods"])) == (0, "hot", 5, ["sessions-0"])
    assert 0.4 < first["share"] < 0.6


def test_blocked_flush_names_the_option(start: Callable[..., list[Server]], command: Command) -> None:
    start({}, *BLOCKING)
    code, message = command("flush", "sessions", "--yes", "--rate=6000")
    assert code == 7
    assert message.startswith("0 of 2 pods are flushed. sessions-0: memcached runs with --disable-flush-all")
    assert (command("status", "sessions")[0], command("find", "sessions", "k")[0]) == (0, 1)
    assert (command("ring", "sessions")[0], command("hotkeys", "sessions")[0]) == (7, 7)


def test_password_is_sent_only_to_a_memcached_that_requires_it(
    start: Callable[..., list[Server]], command: Command, root: Path
) -> None:
    users = root / f"plugin-users-{os.getpid()}"
    users.write_text("web:secret\n")
    users.chmod(0o444)
    try:
        start({"auth": samples.AUTH}, "-Y", f"/{users.name}")
        code, status = command("status", "sessions", "-o", "json")
        assert (code, [row["problem"] for row in status["pods"]]) == (0, ["", ""])
        code, hot = command("hotkeys", "sessions", "--seconds=1", "-o", "json")
        assert (code, [pod["problem"] for pod in hot["pods"]]) == (1, ["", ""])
    finally:
        users.unlink()
    (first, _) = start({"auth": samples.AUTH})
    assert command("status", "sessions")[0] == 0
    assert ask(first, b"get auth\r\n", b"END\r\n") == b"END\r\n"
