"""The admission process, its certificate files as a kubelet mounts them, and clients for it."""

import asyncio
import json
import re
import ssl
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import aiohttp

from faults.process import Operator, supervised
from faults.proxy import HOST
from faults.sandbox import Sandbox, wait_until
from memcached_api.appservice.types import APPSERVICE
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.values import nested_field
from memcached_operator.certificates.pki import KeyPair, issue
from memcached_operator.kube.resource import Object
from memcached_webhooks.admission import path_of
from support import programs
from support.cpu import cpu_time
from support.ports import free_port

SKMEM = re.compile(r"skmem:\(r(\d+),.*?,f(\d+),w(\d+),")
START_TIMEOUT = 60.0
"""Seconds until the process serves, on a very busy machine: 0.5 on an idle one."""
ERRORS = "certwatcher_read_certificate_errors_total"
MUTATE, VALIDATE = "mutate", "validate"
KINDS = (MEMCACHED, APPSERVICE)
PATHS = tuple(path_of(verb, kind) for verb in (MUTATE, VALIDATE) for kind in KINDS)
JSON = {"Content-Type": "application/json"}
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


def pair(*names: str, age: timedelta = timedelta()) -> KeyPair:
    """A certificate that was issued `age` ago and is valid for a day; by default for localhost."""
    return issue(list(names) or [HOST], timedelta(days=1), datetime.now(UTC) - age)


class Files:
    """A directory like a mounted Secret: `tls.crt` → `..data/tls.crt`, and `..data` → the newest version."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._versions = 0

    def swap(self, files: Mapping[str, bytes]) -> None:
        """Replace all files at once, as a kubelet does."""
        self._versions += 1
        version = f"..{self._versions}"
        (self.directory / version).mkdir(parents=True)
        for name, content in files.items():
            (self.directory / version / name).write_bytes(content)
            link = self.directory / name
            if not link.is_symlink():
                link.unlink(missing_ok=True)
                link.symlink_to(f"..data/{name}")
        (self.directory / "..new").symlink_to(version)
        (self.directory / "..new").rename(self.directory / "..data")

    def write_pair(self, serving: KeyPair) -> None:
        """Replace the files with this certificate and key."""
        self.swap(files_of(serving))


def files_of(serving: KeyPair) -> dict[str, bytes]:
    """The contents of a Secret with this certificate and key."""
    return {"tls.crt": serving.certificate, "tls.key": serving.key}


@dataclass
class Webhook:
    """An admission process and its ports. `pair`: its first certificate."""

    process: Operator
    files: Files
    port: int
    metrics_port: int
    probes_port: int
    pair: KeyPair

    @property
    def url(self) -> str:
        """URL for reviews, without a path."""
        return f"https://{HOST}:{self.port}"

    def rss(self) -> float:
        """Resident memory, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def socket_memory(self) -> float:
        """Kernel memory of the sockets of its ports, in MiB: received, unsent and reserved."""
        ports = " or ".join(f"sport = :{port}" for port in (self.port, self.metrics_port, self.probes_port))
        lines = programs.output(("ss", "-Htnm", ports))
        return sum(sum(map(int, found)) for found in SKMEM.findall(lines)) / 2**20

    def cpu(self) -> float:
        """CPU time used so far, in seconds, user and system."""
        return cpu_time(self.process.pid)

    async def metrics(self) -> dict[str, float]:
        """Each series with its value; none while the process is down."""
        text = await asyncio.to_thread(_fetch, f"http://127.0.0.1:{self.metrics_port}/metrics")
        lines = [line for line in text.splitlines() if line[:1] != "#"]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    async def ready(self) -> bool:
        """The result of the readiness probe."""
        return await asyncio.to_thread(_fetch, f"http://127.0.0.1:{self.probes_port}/readyz") == "ok"

    async def start(self) -> None:
        """Start the process and wait until it serves."""
        self.process.start()
        await wait_until(self.ready, START_TIMEOUT, "admission is ready")

    def failures(self) -> list[str]:
        """Words that must not be in its log, and exit codes."""
        text = self.process.log_text()
        found = [
            word
            for word in ("Traceback", "internal error while handling a request to", "Task exception", "Unhandled")
            if word in text
        ]
        return found + [f"exit code {code}" for code in self.process.exits]


def _fetch(url: str) -> str:
    try:
        with urlopen(url, timeout=5) as response:  # noqa: S310 - http, on loopback
            return response.read().decode()
    except (URLError, OSError):
        return ""


@asynccontextmanager
async def webhook(
    sandbox: Sandbox, serving: KeyPair | None = None, port: int = 0, options: Sequence[str] = ()
) -> AsyncGenerator[Webhook]:
    """Start an admission process with this certificate, by default a valid one, and port, by default a free one."""
    metrics, probes = free_port(), free_port()
    port = port or free_port()
    serving = serving or pair()
    with tempfile.TemporaryDirectory() as directory:
        files = Files(Path(directory))
        files.write_pair(serving)
        arguments = [
            f"--webhook-port={port}",
            f"--webhook-cert-path={directory}",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
            f"--health-probe-bind-address=127.0.0.1:{probes}",
            "--shutdown-delay=0",
            *options,
        ]
        log = sandbox.operator.log.with_suffix(".webhook.log")
        process = Operator(arguments, {}, sandbox.settings.sources, log, "memcached_webhooks")
        async with supervised(process):
            started = Webhook(process, files, port, metrics, probes, serving)
            await started.start()
            yield started


def client_context(*bundle: bytes) -> ssl.SSLContext:
    """TLS settings of a client that trusts only these CAs."""
    return ssl.create_default_context(cadata=b"".join(bundle).decode())


@asynccontextmanager
async def client_session(tls: ssl.SSLContext, *, fresh: bool = False) -> AsyncGenerator[aiohttp.ClientSession]:
    """A client that connects as an API server does. `fresh`: a new connection for each request."""
    connector = aiohttp.TCPConnector(limit=0, ssl=tls, force_close=fresh)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30)) as session:
        yield session


def review(kind: Kind[Any], obj: Any, old: Any = None, *, namespace: str = "default") -> Object:
    """A review of an object that is created or changed, as the API server sends it."""
    kind_fields: dict[str, Any] = {"group": kind.group, "version": kind.versions[0]}
    request = {
        "uid": "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        "kind": {**kind_fields, "kind": kind.name},
        "resource": {**kind_fields, "resource": kind.plural},
        "name": nested_field(obj, "metadata", "name") or "",
        "namespace": namespace,
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {**REVIEW, "request": request}


async def send_review(
    session: aiohttp.ClientSession, url: str, verb: str, kind: Kind[Any], body: Object
) -> tuple[int, Any]:
    """Send a review; returns the code and the response, or the text of an error."""
    return await post(session, url, path_of(verb, kind), json.dumps(body).encode())


async def post(
    session: aiohttp.ClientSession, url: str, path: str, data: bytes, headers: Mapping[str, str] = JSON
) -> tuple[int, Any]:
    """POST a body; returns the code and the response, or the text of an error."""
    async with session.post(f"{url}{path}?timeout=5s", data=data, headers=headers) as response:
        payload = await response.read()
    if response.status != 200:
        return response.status, payload.decode(errors="replace")
    return 200, json.loads(payload)["response"]


@dataclass
class ContinuousClient:
    """A client that sends reviews continuously, and its failures."""

    count: int = 0
    failed: list[str] = field(default_factory=list[str])

    async def run(self, session: aiohttp.ClientSession, url: str) -> None:
        """Send reviews of a valid object, until cancelled."""
        body = review(MEMCACHED, {"metadata": {"name": "cache"}, "spec": {"size": 1, "image": "example.com/app:1"}})
        while True:
            try:
                code, response = await send_review(session, url, VALIDATE, MEMCACHED, body)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self.failed.append(f"call {self.count}: {error!r}")
            else:
                if code != 200 or not response["allowed"]:
                    self.failed.append(f"call {self.count}: {code} {response}")
            self.count += 1
