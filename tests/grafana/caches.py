"""Caches for the dashboards: memcached processes with their agents, under the names that their pods would have."""

import os
import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cluster.public import releases
from corners import server
from corners.server import Server
from memcached_operator.memcached.desired.extstore import FILE, PATH
from support.memcacheds import memcached_root
from support.pki import CA
from support.ports import free_port
from support.volumes import Volume
from unit.agent.processes import Agent, running
from unit.agent.warming import annotations

MIB = 8
"""Memory of each memcached for items, so that a load of minutes fills it."""
CERTIFICATE_DAYS = 47
GATE = "hitRatio=60,timeout=900,minRequests=100"
DISK = f"ext_path={FILE}:64m,ext_page_size=8,ext_wbuf_size=2,ext_item_age=0"
"""A disk that a load of minutes fills. The sizes of pages and buffers are the smallest ones."""
RESTART_SECONDS = 2.5
"""Between the end of a memcached and its next start: its clock then shows that it has lost its items."""


@dataclass(frozen=True)
class Cache:
    """A Memcached. `slots`: `identity: Stable`, whose agents know annotations. `limit`: of connections. `rate`: gets/s.

    `keys`: different keys of the gets. `crowds`: now and then, more clients than the limit allows connect.
    `evictions`: `spec.cache.evictions`; without them, a full cache refuses items. `factor`: of the sizes of items. With
    large items, the evicted ones soon have several times the size of the memory, as predictions need. `disk`: has
    `spec.cache.extstore`, which excludes predictions.
    """

    namespace: str
    name: str
    pods: Sequence[str]
    rate: int
    keys: int
    slots: bool = False
    tls: bool = False
    limit: int = 200
    crowds: bool = False
    evictions: bool = True
    factor: int = 1
    disk: bool = False


CACHES = (
    Cache("shop", "sessions", ("0", "1", "2"), 250, 9000, slots=True, tls=True),
    Cache("shop", "catalog", ("6c9f8d5b47-x2k8v", "6c9f8d5b47-7wq5m"), 150, 40000, limit=400, crowds=True),
    Cache("search", "results", ("74b8c5f9d6-zt4jl",), 80, 40000, evictions=False),
    Cache("search", "prices-eu", ("0", "1"), 300, 20000, slots=True, factor=12),
    Cache("search", "images", ("0",), 150, 9000, slots=True, factor=12, disk=True),
)


@dataclass
class Pod:
    """A memcached and its agent."""

    cache: Cache
    name: str
    port: int
    agent: Agent
    root: Path
    command: Sequence[str]
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start memcached."""
        live: Server = self.stack.enter_context(server.started(self.root, self.command, self.port))
        live.wait_until_started()
        assert live.process.poll() is None, live.exit_message()

    def stop(self) -> None:
        """Kill memcached."""
        self.stack.close()

    def restart(self) -> None:
        """Kill memcached, and start it without its items."""
        self.stop()
        time.sleep(RESTART_SECONDS)
        self.start()

    @property
    def target(self) -> dict[str, object]:
        """The target of a PodMonitor, with the labels that it adds."""
        names = {"namespace": self.cache.namespace, "pod": self.name, "container": "agent", "endpoint": "metrics"}
        job = f"{self.cache.namespace}/{self.cache.name}"
        return {"targets": [f"127.0.0.1:{self.agent.port}"], "labels": {**names, "job": job}}


@contextmanager
def started(directory: Path) -> Generator[list[Pod]]:
    """Run all caches during the block."""
    release = memcached_root(releases.VERSIONS[-1])
    with ExitStack() as stack:
        yield [
            stack.enter_context(_pod(release, directory / f"{cache.name}-{pod}", cache, f"{cache.name}-{pod}"))
            for cache in CACHES
            for pod in cache.pods
        ]


@contextmanager
def _pod(release: Path, directory: Path, cache: Cache, name: str) -> Generator[Pod]:
    root, port, tls_port = directory / "root", free_port(), free_port()
    shutil.copytree(release, root)
    words = [releases.PROGRAM, "-t", "2", "-m", str(MIB), "-c", str(cache.limit), "-I", "512k"]
    words += [] if cache.evictions else ["-M"]
    flags = [f"--extstore-volume={_volume(root)}"] if cache.disk else ["--insight"]
    words += ["-o", DISK] if cache.disk else []
    if cache.tls:
        files = _certificate(directory, root)
        words += ["-l", f"127.0.0.1:{tls_port},notls:127.0.0.1:{port}", "-Z"]
        words += ["-o", f"ssl_chain_cert={files}/tls.crt,ssl_key={files}/tls.key"]
        flags += [f"--tls-directory={files}", f"--tls-port={tls_port}"]
    else:
        words += ["-l", "127.0.0.1", "-p", str(port)]
    if cache.slots:
        (directory / "annotations").write_bytes(annotations(GATE, memory=str(MIB)))
        flags += [f"--annotations-file={directory}/annotations", f"--state-directory={directory}"]
    with running(port, *flags, measured=False) as agent, ExitStack() as stack:
        pod = Pod(cache, name, port, agent, root, words, stack)
        pod.start()
        yield pod


def _volume(root: Path) -> Path:
    """The directory of extstore's file, below memcached's root directory."""
    volume = root / PATH.lstrip("/")
    volume.mkdir()
    os.chown(volume, server.USER, server.USER)
    return volume


def _certificate(directory: Path, root: Path) -> Path:
    """The directory of a certificate, whose absolute path leads to it in the root directory too."""
    mounts = directory / "mounts"
    inside = root / mounts.relative_to("/")
    inside.mkdir(parents=True)
    mounts.symlink_to(inside)
    for each in (directory, *directory.parents):
        with suppress(PermissionError):
            each.chmod(each.stat().st_mode | 0o055)
    pair, volume = CA().issue(days=CERTIFICATE_DAYS), Volume(mounts / "tls")
    volume.write({"tls.crt": pair.cert, "tls.key": pair.key})
    return volume.directory
