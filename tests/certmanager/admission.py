"""Our admission process, which serves the certificate of a mounted Secret, and clients that create objects."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

import aiohttp

from faults.process import die_with_parent
from integration.control_plane import ControlPlane, client_of, until, would_create
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support.ports import free_port
from support.volumes import Volume
from support.waiting import STEP

CLIENTS = 4
"""The clients of Creations, each with one request at a time."""


class Admission:
    """An admission process, as in a pod. `files`: its mounted Secret."""

    def __init__(self, folder: Path) -> None:
        self.files = Volume(folder / "mounted")
        self.port = free_port()
        self._probes = free_port()
        self._log = folder / "admission.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it is ready."""
        words = [
            f"--webhook-port={self.port}",
            f"--webhook-cert-path={self.files.directory}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{self._probes}",
            "--shutdown-delay=0",
        ]
        path = os.pathsep.join(path for path in sys.path if path)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "memcached_webhooks", *words],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        until(self._ready, STEP)

    def stop(self) -> None:
        """Stop the process, if it runs."""
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(STEP) == 0, self._log.read_text()

    def _ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._probes}/readyz", timeout=5) as response:
                return response.status == 200
        except (URLError, OSError):
            return False


def served(port: int, name: str, authorities: bytes) -> bytes:
    """The certificate, as DER, that a client gets at a port of loopback: it expects this name and trusts these CAs.

    Raises ssl.SSLError.
    """
    context = ssl.create_default_context(cadata=authorities.decode())
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname=name) as encrypted,
    ):
        return encrypted.getpeercert(binary_form=True) or b""


class Creations:
    """Clients that create Memcacheds until the block ends, with dry runs, which call admission as others do.

    `count`: the requests so far. `failures`: the errors, and objects without defaults.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self.count = 0
        self.failures: list[str] = []
        self._connection: Config = plane.connection
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(STEP)

    def wait_for_more(self, number: int = 100) -> None:
        """Wait until this number of further requests has been answered."""
        wanted = self.count + number
        until(lambda: self.count >= wanted, STEP)

    async def _run(self) -> None:
        async with client_of(self._connection) as client, asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._create(client))

    async def _create(self, client: ApiClient) -> None:
        while not self._ended.is_set():
            try:
                stored = await would_create(client, MEMCACHEDS, memcached())
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                self.failures.append(str(error))
            else:
                if "image" not in stored["spec"]:
                    self.failures.append(f"without defaults: {stored['spec']}")
            self.count += 1


def memcached(**spec: object) -> Object:
    """A Memcached without the fields that admission sets, unless they are given."""
    meta = {"namespace": "default", "generateName": "created-"}
    return {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind, "metadata": meta, "spec": spec}
