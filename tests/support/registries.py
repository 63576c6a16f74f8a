"""Local registries for images, without a password and with accounts. All are plain HTTP."""

import hashlib
import json
import shutil
import subprocess
import tarfile
import time
from base64 import b64encode
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from uuid import uuid4

from cluster.public.images import cluster_archive, remove_images
from cluster.public.lifecycle import running
from support import programs
from support.ports import free_port
from support.servers import Quiet, serving
from support.waiting import READY

OF_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "authorization"}
"""Headers that a proxy does not pass on."""
READS = ("GET", "HEAD")
OCI_MANIFEST, OCI_CONFIG, OCI_LAYER = (
    f"application/vnd.oci.image.{name}" for name in ("manifest.v1+json", "config.v1+json", "layer.v1.tar")
)


@contextmanager
def open_registry(crane: Path, directory: Path) -> Generator[str]:
    """The address of an empty registry that keeps its images in a new directory."""
    port = free_port()
    directory.mkdir()
    command = [crane, "registry", "serve", f"--address=127.0.0.1:{port}", f"--disk={directory}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + READY
            while programs.run([crane, "catalog", f"localhost:{port}"]).returncode:
                assert time.monotonic() < deadline, "the registry does not respond"
                time.sleep(0.1)
            yield f"localhost:{port}"
        finally:
            server.terminate()


@contextmanager
def registry_of_node(images: Sequence[str], readers: Mapping[str, str]) -> Generator[str]:
    """The address of a registry with accounts, from which the cluster's node can pull images of its own archive.

    The tags of the images must differ.
    """
    state, plan = running()
    content = {name: blob for image in images for name, blob in _of_archive(cluster_archive(), image).items()}
    with serving(_of_class(_Archived, may_write=_accounts({}, readers), content=content), plan.host_address) as address:
        folder = state.registries / address
        folder.mkdir(parents=True)
        try:
            (folder / "hosts.toml").write_text(f'[host."http://{address}"]\ncapabilities = ["pull", "resolve"]\n')
            yield address
        finally:
            shutil.rmtree(folder)
            remove_images(state, address)


@contextmanager
def private_registry(behind: str, writers: Mapping[str, str], readers: Mapping[str, str]) -> Generator[str]:
    """The address of a registry with basic authentication, which passes requests on to the one at address `behind`.

    `writers`, `readers`: passwords by user name. The response is 401 without an account, 403 to a write of a reader.
    """
    with serving(_of_class(_Proxy, may_write=_accounts(writers, readers), address=behind), "localhost") as address:
        yield address


def _accounts(writers: Mapping[str, str], readers: Mapping[str, str]) -> dict[str, bool]:
    """Whether an account may write, by the value of its header."""
    known = {_credentials(*account): True for account in writers.items()}
    return known | {_credentials(*account): False for account in readers.items()}


def _of_class(handler: type[BaseHTTPRequestHandler], **attributes: object) -> type[BaseHTTPRequestHandler]:
    """The handler with these attributes of its class."""
    return type("Handler", (handler,), attributes)


def _of_archive(archive: Path, image: str) -> dict[str, tuple[str, bytes]]:
    """Media type and content, by the end of the path in the registry's API: the image's manifest, and each blob."""
    with tarfile.open(archive) as tar:

        def member(name: str) -> bytes:
            found = tar.extractfile(name)
            assert found is not None
            return found.read()

        (entry,) = (each for each in json.loads(member("manifest.json")) if image in each["RepoTags"])
        # The kubelet remembers by its id that an image needs a secret: the image of the archive must stay without one.
        config_text = json.dumps(json.loads(member(entry["Config"])) | {"author": f"registry {uuid4()}"}).encode()
        blobs = [(OCI_CONFIG, config_text), *((OCI_LAYER, member(name)) for name in entry["Layers"])]
    config, *layers = [{"mediaType": kind, "digest": _digest(data), "size": len(data)} for kind, data in blobs]
    manifest = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers}
    text = json.dumps(manifest).encode()
    names = image.rpartition(":")[2], _digest(text)
    return dict.fromkeys(names, (OCI_MANIFEST, text)) | {_digest(blob[1]): blob for blob in blobs}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _credentials(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


class _WithAccounts(Quiet, BaseHTTPRequestHandler):
    """Answers requests of known accounts. `may_write`: by the value of their header. crane tries TLS first."""

    protocol_version = "HTTP/1.1"
    may_write: Mapping[str, bool] = {}

    def handle_request(self) -> None:
        """Respond to one request."""
        body = self._body()
        may_write = self.may_write.get(self.headers.get("Authorization", ""))
        if may_write is None:
            self.respond(401, {"WWW-Authenticate": 'Basic realm="registry"'}, b"")
        elif not may_write and self.command not in READS:
            self.respond(403, {}, b"")
        else:
            self.answer(body)

    def answer(self, body: bytes) -> None:
        """Respond to a request of a known account."""
        raise NotImplementedError

    def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a response, without the body to a HEAD request."""
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


class _Archived(_WithAccounts):
    """Serves `content`, whose keys are the ends of paths."""

    content: Mapping[str, tuple[str, bytes]] = {}

    def answer(self, body: bytes) -> None:
        """Respond with a part of the content."""
        del body
        name = self.path.rpartition("/")[2]
        kind, content = self.content.get(name, ("", b""))
        self.respond(200 if content or not name else 404, {"Content-Type": kind} if kind else {}, content)


class _Proxy(_WithAccounts):
    """Passes requests on."""

    address = ""

    def answer(self, body: bytes) -> None:
        """Respond as the registry behind does."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_CONNECTION}
        with closing(HTTPConnection(self.address)) as connection:
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            payload = response.read()
            kept = {name: value for name, value in response.headers.items() if name.lower() not in OF_CONNECTION}
            if self.command == "HEAD":
                kept["Content-Length"] = response.headers.get("Content-Length", "0")
            self.respond(response.status, kept, payload)


for _method in (*READS, "POST", "PUT", "PATCH", "DELETE"):
    setattr(_WithAccounts, f"do_{_method}", _WithAccounts.handle_request)
