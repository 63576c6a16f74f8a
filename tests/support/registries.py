"""Local registries for images: one without a password, and one with accounts in front of it. Both are plain HTTP."""

import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_server

from support.waiting import READY

OF_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "authorization"}
"""Headers that a proxy does not pass on."""
READS = ("GET", "HEAD")


def _free_port() -> int:
    with closing(create_server(("127.0.0.1", 0))) as probe:
        return probe.getsockname()[1]


@contextmanager
def open_registry(crane: Path, directory: Path) -> Generator[str]:
    """The address of an empty registry that keeps its images in a new directory."""
    port = _free_port()
    directory.mkdir()
    command = [crane, "registry", "serve", f"--address=127.0.0.1:{port}", f"--disk={directory}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + READY
            while subprocess.run([crane, "catalog", f"localhost:{port}"], capture_output=True, check=False).returncode:
                assert time.monotonic() < deadline, "the registry does not respond"
                time.sleep(0.1)
            yield f"localhost:{port}"
        finally:
            server.terminate()


@contextmanager
def private_registry(behind: str, writers: Mapping[str, str], readers: Mapping[str, str]) -> Generator[str]:
    """The address of a registry with basic authentication, which passes requests on to the one at address `behind`.

    `writers`, `readers`: passwords by user name. The response is 401 without an account, 403 to a write of a reader.
    """
    known = {_credentials(*account): True for account in writers.items()}
    known |= {_credentials(*account): False for account in readers.items()}

    class Handler(_Proxy):
        """The proxy for these accounts."""

        may_write = known
        address = behind

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,))
        thread.start()
        try:
            yield f"localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _credentials(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


class _Proxy(BaseHTTPRequestHandler):
    """Passes requests of known accounts on. `may_write`: by the value of their header."""

    protocol_version = "HTTP/1.1"
    may_write: Mapping[str, bool] = {}
    address = ""

    def handle_request(self) -> None:
        """Respond to one request."""
        body = self._body()
        may_write = self.may_write.get(self.headers.get("Authorization", ""))
        if may_write is None:
            self._respond(401, {"WWW-Authenticate": 'Basic realm="registry"'}, b"")
        elif not may_write and self.command not in READS:
            self._respond(403, {}, b"")
        else:
            self._pass_on(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing: crane tries TLS first."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _pass_on(self, body: bytes) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_CONNECTION}
        with closing(HTTPConnection(self.address)) as connection:
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            payload = response.read()
            kept = {name: value for name, value in response.headers.items() if name.lower() not in OF_CONNECTION}
            if self.command == "HEAD":
                kept["Content-Length"] = response.headers.get("Content-Length", "0")
            self._respond(response.status, kept, payload)

    def _respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


for _method in (*READS, "POST", "PUT", "PATCH", "DELETE"):
    setattr(_Proxy, f"do_{_method}", _Proxy.handle_request)
