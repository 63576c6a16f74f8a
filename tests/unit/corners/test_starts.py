"""What the corner tests say about servers that exit or do not reply, with small programs in the place of memcached."""

import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from corners import starts
from corners.groups import MemoryGroup
from corners.server import Outcome, Server
from corners.starts import Start

REPLIES = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(reply, count=100):
    for _ in range(count):
        connection = listener.accept()[0]
        if connection.recv(100) and reply:
            connection.sendall(reply)
        connection.close()
"""
PROGRAMS = {
    "runs": REPLIES + "serve(b'VERSION 1.6.18\\r\\n')",
    "wrong": REPLIES + "serve(b'ERROR\\r\\n')",
    "silent": REPLIES + "serve(b'')",
    "exits": "print('no memory', file=__import__('sys').stderr); raise SystemExit(71)",
    "exits later": REPLIES + "serve(b'VERSION 1.6.18\\r\\n', 1); print('crashed', file=sys.stderr); sys.exit(5)",
}


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each spec starts the program that it names; the time to settle ends when `exits later` has exited."""
    running: list[subprocess.Popen[bytes]] = []

    @contextmanager
    def started(root: Path, command: Sequence[str], port: int) -> Generator[Server]:
        del port
        with socket.create_server(("127.0.0.1", 0)) as found:
            free = found.getsockname()[1]
        with TemporaryFile() as errors:
            words = [sys.executable, "-c", PROGRAMS[root.name], str(free)]
            with subprocess.Popen(words, stderr=errors) as process:
                running.extend([process] if "exits" in root.name else [])
                try:
                    yield Server(process, free, MemoryGroup(root, unified=True), errors)
                finally:
                    process.kill()

    def settle(_: float) -> None:
        for process in running:
            process.wait(timeout=60)

    monkeypatch.setattr(starts, "started", started)
    monkeypatch.setattr(starts, "sleep", settle)


@pytest.mark.usefixtures("servers")
def test_servers_of_a_batch_that_exit_or_do_not_reply_are_problems() -> None:
    batch = [Start(name, {}) for name in PROGRAMS]
    assert list(starts.problems(batch, Path)) == [
        "",
        "no reply to `version`: ERROR",
        "no reply to `version`: memcached closed the connection",
        "exited 71: no memory",
        "exited 5: crashed",
    ]


@pytest.mark.usefixtures("servers")
def test_batches_have_limited_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "BATCH", 2)
    batch = [Start("runs", {}), Start("exits", {}, 71), Start("silent", {}, "silent")]
    assert list(starts.problems(batch, Path)) == ["", "", ""]


@pytest.mark.parametrize(
    ("expected", "found", "message"),
    [
        ("runs", "runs", ""),
        (71, 71, ""),
        ("runs", 71, "reason"),
        (71, "runs", "expected 71, found 'runs'"),
        ("silent", 1, "expected 'silent', found 1: reason"),
    ],
)
def test_problem(expected: Outcome, found: Outcome, message: str) -> None:
    assert starts.problem(expected, found, "" if found == "runs" else "reason") == message


def test_a_start_needs_as_many_open_files_as_connections() -> None:
    assert Start("1.6.18", {}).open_files == 1024
    assert Start("1.6.18", {"cache": {"maxConnections": 65536}}).open_files == 65536
