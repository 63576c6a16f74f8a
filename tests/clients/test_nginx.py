"""NGINX and the Perl client of examples/nginx, with the blocks of the page. These tests need no pods."""

import http.client
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

import pytest

from clients import libraries
from clients.loopback import SIZE, Slots, slots
from clients.running import HOSTS, WITH_FILE
from clients.test_ring import listed, service_name
from cluster.shell import run
from support import examples
from support.code_blocks import code_blocks
from support.kube import eventually
from support.ports import free_port
from support.servers import Quiet, serving
from support.waiting import STEP

HOST: Final = "www.example.com"
PAGE, APPLICATION = "from memcached", "from the application"
PLAIN: Final = [f"/articles/{number}?page={number}&q=a+b" for number in range(60)]
ESCAPED: Final = ["/a%20b", "/caf%C3%A9", "/caf%c3%a9", "/?q=%2F"]
LONGEST: Final = "/" + "x" * (250 - len(HOST) - 1)
CONFIGURATION: Final = """
daemon off;
pid %(folder)s/pid;
error_log %(folder)s/errors;
events {}
http {
    access_log off;
    %(block)s
}
"""


class Application(Quiet, BaseHTTPRequestHandler):
    """The application that makes pages."""

    def do_GET(self) -> None:
        """Answer each request alike."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(APPLICATION.encode())


@dataclass(frozen=True)
class Site:
    """NGINX with the page's configuration. `address`: HOST:PORT; `errors`: its error log."""

    slots: Slots
    address: str
    errors: Path

    def get(self, path: str, host: str = HOST) -> str:
        """The body of a page."""
        with closing(http.client.HTTPConnection(self.address, timeout=STEP)) as connection:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().read().decode()

    def store(self, *paths: str) -> None:
        """Store pages with the client of the page."""
        (text,) = code_blocks(examples.readme(examples.ROOT / "nginx"), "perl")
        settings, _, _ = text.partition("$cache->set(")
        code = f'while (<STDIN>) {{ chomp; print $cache->set($_, "{PAGE}") ? "stored " : "failed "; }}'
        words = [
            *("env", f"MEMCACHED_FIXED_SERVERS={listed(service_name, SIZE)}"),
            *(libraries.perl(), "-MCache::Memcached::Fast", "-e", settings + code),
        ]
        stdin = "".join(f"{HOST}{path}\n" for path in paths)
        assert run([*with_names(self.slots), *words], stdin=stdin).split() == ["stored"] * len(paths)

    def asked(self) -> int:
        """The number of keys that NGINX has asked for."""
        return sum(int(_statistics(self.slots, slot)["cmd_get"]) for slot in range(SIZE))


def _statistics(slots: Slots, slot: int) -> dict[str, str]:
    with closing(slots.servers[slot].connect()) as client:
        return client.stats()


def with_names(slots: Slots) -> list[str]:
    """The words before a command that resolves the names of the slots."""
    return ["unshare", "--mount", "sh", "-euc", WITH_FILE, "sh", str(slots.hosts), HOSTS]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """NGINX, an application and memcacheds."""
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    (block,) = code_blocks(examples.readme(examples.ROOT / "nginx"), "nginx")
    with ExitStack() as stack:
        found = stack.enter_context(slots(folder))
        application = stack.enter_context(serving(Application, "127.0.0.1"))
        for slot in range(SIZE):
            block = block.replace(f"pages-{slot}.web.svc.cluster.local", service_name(slot))
        block = block.replace("listen 8080", f"listen 127.0.0.1:{port}").replace("application.web:8080", application)
        file = folder / "nginx.conf"
        file.write_text(CONFIGURATION % {"folder": folder, "block": block})
        words = [*with_names(found), libraries.nginx(), "-c", str(file)]
        process = stack.enter_context(subprocess.Popen(words))
        stack.callback(process.terminate)
        site = Site(found, f"127.0.0.1:{port}", folder / "errors")
        eventually(lambda: _answers(site), STEP, "NGINX answers")
        yield site


def _answers(site: Site) -> bool:
    try:
        return site.get("/") == APPLICATION
    except OSError:
        return False


def test_stored_pages_are_served_from_memcached(site: Site) -> None:
    paths = [*PLAIN, LONGEST]
    site.store(*paths)
    assert [site.get(path) for path in paths] == [PAGE] * len(paths)
    assert site.get(PLAIN[0], f"{HOST.upper()}:8080") == PAGE


@pytest.mark.parametrize("path", [*ESCAPED, f"{LONGEST}x"])
def test_page_that_memcached_cannot_have_comes_from_the_application(site: Site, path: str) -> None:
    before = site.asked()
    assert site.get(path) == APPLICATION
    assert site.asked() == before
    assert "[error]" not in site.errors.read_text()
