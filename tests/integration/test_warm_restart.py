"""The start script with real memcached processes that keep their items, or what is left of them."""

import os
import shutil
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corners import server
from corners.server import Server
from memcached_operator.memcached.desired.warm_restart import CACHE_PATH, ITEMS, META, command
from memcached_operator.parts.agent import MOUNT_PATH
from support import programs
from support.ports import free_port

SHELL = "/usr/bin/dash"
PROGRAMS = (SHELL, "/usr/bin/sleep", "/usr/bin/rm")
MISSING, STORED = b"END\r\n", b"VALUE key 0 1\r\na\r\nEND\r\n"
CUT = (slice(0), slice(3), slice(-3), slice(7, None))
"""The bytes that are left of the description of the items."""
pytestmark = pytest.mark.skipif(not Path(SHELL).exists(), reason=f"{SHELL} is not installed")


class Container:
    """A container with a memcached and a shell, which keeps its volumes."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.port = free_port()
        self.root = directory / "root"
        server.copy_root(root, self.root)
        for program in PROGRAMS:
            found = programs.output(["ldd", program])
            for each in (program, *(word for word in found.split() if word.startswith("/"))):
                target = self.root / each[1:]
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    shutil.copy(each, target)
        for path in (CACHE_PATH, MOUNT_PATH):
            self.path(path).mkdir(parents=True)
        os.chown(self.path(CACHE_PATH), server.USER, server.USER)
        for each in (directory, *directory.parents):
            each.chmod(each.stat().st_mode | 0o055)
        self.path(f"{MOUNT_PATH}/args").write_text("-m 64 -o modern -t 2")

    def path(self, path: str) -> Path:
        """Where a file of the container is."""
        return self.root / path[1:]

    @contextmanager
    def started(self) -> Generator[Server]:
        """Start the container's command."""
        words = command(["-p", str(self.port), "-l", "127.0.0.1", "-U", "0"])
        words = [SHELL, words[1], words[2].replace("$$$$", "$$"), *words[3:]]
        with server.started(self.root, words, self.port) as live:
            assert live.problem() == ""
            yield live

    def replies(self, live: Server, request: bytes) -> bytes:
        """The reply to a request."""
        client = live.connect()
        with client.socket:
            return client.request(request, b"END\r\n" if request.startswith(b"get") else b"\r\n")

    def stop(self, live: Server) -> None:
        """Let memcached write where its items are, and end."""
        live.process.send_signal(signal.SIGUSR1)
        assert live.process.wait(30) == 0


@pytest.fixture
def container(root: Path, tmp_path: Path) -> Container:
    return Container(root, tmp_path)


def test_items_are_kept_unless_their_description_is_cut(container: Container) -> None:
    """memcached would abort at each start, and the file would stay as it is."""
    expected = MISSING
    for left in (slice(None), *CUT):
        with container.started() as live:
            assert container.replies(live, b"get key\r\n") == expected
            assert not container.path(META).exists()
            assert container.replies(live, b"set key 0 0 1\r\na\r\n") == b"STORED\r\n"
            container.stop(live)
        meta = container.path(META)
        meta.write_bytes(meta.read_bytes()[left])
        expected = MISSING if left in CUT else STORED
    with container.started() as live:
        assert container.replies(live, b"get key\r\n") == expected


def test_process_has_the_command_line_that_the_agent_compares(container: Container) -> None:
    with container.started() as live:
        words = Path(f"/proc/{live.process.pid}/cmdline").read_text().split("\0")
        assert words[0] == "memcached"
        assert " ".join(words[words.index(ITEMS) + 1 : -1]) == container.path(f"{MOUNT_PATH}/args").read_text()
        assert container.path(f"{CACHE_PATH}/memcached.pid").read_text() == f"{live.process.pid}\n"
