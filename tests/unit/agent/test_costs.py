"""The agent needs little memory and CPU time. CPU time, unlike wall time, does not depend on other processes much."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.pki import CA
from support.ports import free_port

from .memcacheds import FakeMemcached
from .processes import Agent, running, unverified
from .samples import types, value, with_slabs

SLABS = 40
Record = Callable[[str, object], None]
MAX_MEMORY = 20 * 2**20
"""Bytes of private memory. The container may use 48 MiB."""
MAX_SCRAPE = 0.010
"""Seconds of CPU time for a scrape."""
MAX_IDLE = 0.005
"""Share of a CPU without scrapes."""
MAX_LOADED_MEMORY = 32 * 2**20
"""Bytes of private memory while clients do not read their responses."""
SCRAPES = 200
IDLE_SECONDS = 4.0


@contextmanager
def with_slabs_served() -> Generator[int]:
    """A memcached with many slab classes, which runs in a thread; its port."""
    memcached = FakeMemcached()
    memcached.replies |= with_slabs(SLABS)
    started = threading.Event()
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        async with memcached.running():
            stopping.append((asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield memcached.port
    finally:
        loop, stop = stopping[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    """An agent of a memcached with many slab classes."""
    with with_slabs_served() as port, running(port, measured=False) as found:
        found.wait_for(200, "ok")
        yield found


def test_scrape_needs_little_cpu_time(agent: Agent, record_property: Record) -> None:
    _, text = agent.get()
    assert value(text, "memcached_slab_current_pages", slab=str(SLABS)) == 1
    assert len(types(text)) > 69
    before = agent.cpu_seconds()
    for _ in range(SCRAPES):
        agent.get()
    each = (agent.cpu_seconds() - before) / SCRAPES
    record_property("CPU time of a scrape", f"{1000 * each:.1f} ms")
    assert 0 < each < MAX_SCRAPE


def test_idle_agent_needs_little_cpu_time(agent: Agent, record_property: Record) -> None:
    before = agent.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    share = (agent.cpu_seconds() - before) / IDLE_SECONDS
    record_property("idle CPU", f"{100 * share:.2f} %")
    assert share < MAX_IDLE


def test_private_memory_is_small(agent: Agent, record_property: Record) -> None:
    for _ in range(20):
        agent.get()
    found = agent.private_bytes()
    record_property("private memory", f"{found / 2**20:.1f} MiB")
    assert 2**20 < found < MAX_MEMORY


def test_annotations_need_little_memory_and_cpu_time(tmp_path: Path, record_property: Record) -> None:
    annotations = tmp_path / "annotations"
    annotations.write_text(
        'memcached-operator.example.com/warm-up="hitRatio=80,timeout=900,minRequests=100"\n'
        'memcached-operator.example.com/memory="64"\n'
    )
    flags = (f"--annotations-file={annotations}", f"--state-directory={tmp_path}")
    with with_slabs_served() as port, running(port, *flags, measured=False) as agent:
        agent.wait_for(503, "not warm yet", "/readyz")
        for _ in range(20):
            agent.get()
        found, before = agent.private_bytes(), agent.cpu_seconds()
        time.sleep(2 * IDLE_SECONDS)  # at least one poll
        share = (agent.cpu_seconds() - before) / (2 * IDLE_SECONDS)
    record_property("private memory with annotations", f"{found / 2**20:.1f} MiB")
    record_property("idle CPU with annotations", f"{100 * share:.2f} %")
    assert 2**20 < found < MAX_MEMORY
    assert share < MAX_IDLE


def test_ssl_is_not_loaded_without_certificates(agent: Agent) -> None:
    """It needs 2 MiB of private memory, and 6 MiB of libraries."""
    assert "libssl" not in Path(f"/proc/{agent.process.pid}/maps").read_text()


def test_memory_is_bounded_with_clients_that_do_not_read(agent: Agent, record_property: Record) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", agent.port))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
        time.sleep(1)
        found = agent.private_bytes()
        record_property("private memory", f"{found / 2**20:.1f} MiB")
        assert found < MAX_LOADED_MEMORY
        assert agent.get()[0] == 200


def test_memory_is_bounded_with_tls_clients_that_do_not_read(tmp_path: Path, record_property: Record) -> None:
    pair = CA().issue()
    (tmp_path / "tls.crt").write_bytes(pair.cert)
    (tmp_path / "tls.key").write_bytes(pair.key)
    flags = (f"--tls-directory={tmp_path}", f"--tls-port={free_port()}", "--metrics-tls")
    with with_slabs_served() as port, running(port, *flags, measured=False, tls=True) as agent, ExitStack() as stack:
        agent.wait_for(200, f'memcached_slab_current_pages{{slab="{SLABS}"}} 1', "/metrics")
        assert "libssl" in Path(f"/proc/{agent.process.pid}/maps").read_text()
        record_property("private memory with TLS", f"{agent.private_bytes() / 2**20:.1f} MiB")
        assert agent.private_bytes() < MAX_MEMORY
        for _ in range(64):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port)))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            encrypted = stack.enter_context(unverified().wrap_socket(client))
            encrypted.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
        time.sleep(1)
        found = agent.private_bytes()
        record_property("private memory with TLS clients", f"{found / 2**20:.1f} MiB")
        assert found < MAX_LOADED_MEMORY
