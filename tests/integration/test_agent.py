"""The agent beside real memcached processes of the oldest and the newest tested release, and their faults."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.public import releases
from corners.server import Server
from support.memcacheds import memcached
from support.pki import CA
from support.ports import free_port
from support.streams import unverified
from unit.agent.processes import Agent, running
from unit.agent.samples import FOLDER, types, value
from unit.agent.warming import annotations

ITEMS = 2000
SIZES = range(10, 1970, 40)
LIMIT = 24
"""A small connection limit; memcached uses some of it itself, more with more threads."""


@pytest.fixture
def live(root: Path) -> Iterator[Server]:
    """A memcached with items, in several slab classes."""
    with memcached(root, free_port()) as found:
        client = found.connect()
        for number in range(ITEMS):
            size = SIZES[number % len(SIZES)]
            assert client.request(b"set %d 0 0 %d\r\n%b\r\n" % (number, size, b"x" * size)) == b"STORED\r\n"
        client.close()
        yield found


@pytest.fixture
def agent(live: Server) -> Iterator[Agent]:
    """An agent that is connected to it."""
    with running(live.port) as found:
        found.wait_for(200, "ok")
        yield found


def errors(agent: Agent, reason: str) -> float:
    """The number of connection errors with this reason."""
    return value(agent.get()[1], "memcached_agent_connection_errors_total", reason=reason)


def up(agent: Agent) -> float:
    """The value of memcached_up."""
    return value(agent.get()[1], "memcached_up")


def test_every_metric_is_present_with_its_value(live: Server, agent: Agent) -> None:
    client = live.connect()
    for words in (b"get 1", b"get missing", b"delete 1", b"incr missing 1", b"touch 2 0"):
        client.send(words + b"\r\n")
        client.request(b"mn\r\n", b"MN\r\n")
    text = agent.get()[1]
    reference = types((FOLDER / "metrics.txt").read_text())
    found = {name: kind for name, kind in types(text).items() if not name.startswith("memcached_agent_")}
    assert found == {name: kind for name, kind in reference.items() if name != "memcached_exporter_build_info"}
    stats, items, slabs = (client.stats(kind) for kind in ("", "items", "slabs"))
    assert value(text, "memcached_current_items") == int(stats["curr_items"]) == ITEMS - 1
    assert value(text, "memcached_commands_total", command="get", status="miss") == 1
    assert value(text, "memcached_version", version=stats["version"]) == 1
    assert value(text, "memcached_malloced_bytes") == int(slabs["total_malloced"])
    classes = {name.split(":")[1] for name in items}
    assert len(classes) > 10
    for each in classes:
        assert value(text, "memcached_slab_current_items", slab=each) == int(items[f"items:{each}:number"])
        assert value(text, "memcached_slab_chunks_used", slab=each) == int(slabs[f"{each}:used_chunks"])
    client.close()


def test_memcached_is_killed_and_started_again(root: Path) -> None:
    port = free_port()
    with memcached(root, port) as first, running(port) as agent:
        agent.wait_for(200, "ok")
        first.process.kill()
        agent.wait_for(503, "refuses the connection: nothing listens on this port")
        assert (up(agent), errors(agent, "closed")) == (0, 1)
        assert errors(agent, "refused") >= 1
        with memcached(root, port):
            agent.wait_for(200, "ok")
            assert (up(agent), errors(agent, "closed"), errors(agent, "timeout")) == (1, 1, 0)


def fill(live: Server, stack: ExitStack) -> None:
    """Open connections until memcached refuses one."""
    for _ in range(LIMIT + 1):
        client = live.connect()
        stack.callback(client.close)
        if not client.request(b"version\r\n").startswith(b"VERSION"):
            return
    raise AssertionError("memcached accepts more connections than its limit")


def test_agent_is_started_at_the_connection_limit(root: Path) -> None:
    """One that is connected keeps its connection."""
    with memcached(root, free_port(), "-c", str(LIMIT)) as live, running(live.port) as connected, ExitStack() as stack:
        connected.wait_for(200, "ok")
        fill(live, stack)
        text = connected.get()[1]
        assert value(text, "memcached_up") == 1
        assert value(text, "memcached_connections_rejected_total") >= 1
        assert value(text, "memcached_max_connections") == LIMIT
        assert connected.get("/healthz") == (200, "ok\n")
        with running(live.port) as agent:
            agent.wait_for(503, "has reached its connection limit and refuses new connections")
            assert (up(agent), errors(agent, "closed")) == (0, 0)
            assert errors(agent, "limit") >= 1
            stack.close()
            agent.wait_for(200, "ok")
            assert up(agent) == 1


MAX_MEMORY, MAX_LOADED_MEMORY = 20 * 2**20, 32 * 2**20
"""Bytes of private memory, without clients and while many of them read no responses. The container may use 48 MiB."""
CLIENTS, REQUESTS = 64, 10
"""Clients of each port that read no responses; the agent serves 32 of them. Each sends some requests."""
IDLE_SECONDS, MAX_WAKEUPS = 2.0, 20


@pytest.mark.parametrize("root", releases.VERSIONS[-1:], indirect=True)
@pytest.mark.parametrize("kind", ["plain", "annotations", "tls"])
def test_agent_needs_little(live: Server, tmp_path: Path, kind: str) -> None:
    """Little memory, whatever its clients do, and hardly any work while it is idle."""
    with running(live.port, *flags(kind, tmp_path), measured=False, tls=kind == "tls") as agent, ExitStack() as stack:
        agent.wait_for(200, "memcached_up 1", "/metrics")
        for _ in range(20):
            agent.get()
        assert 2**20 < agent.private_bytes() < MAX_MEMORY
        libraries = Path(f"/proc/{agent.process.pid}/maps").read_text()
        assert ("libssl" in libraries) == (kind == "tls"), "it needs 2 MiB of private memory"
        before = agent.wakeups()
        time.sleep(IDLE_SECONDS)
        assert agent.wakeups() - before < MAX_WAKEUPS
        for path, port in (("/metrics", agent.port), ("/readyz", agent.probes)):
            for _ in range(CLIENTS):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                encrypts = kind == "tls" and port == agent.port
                sender = stack.enter_context(unverified().wrap_socket(client)) if encrypts else client
                sender.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * REQUESTS)
        agent.wait_for(200, "memcached_up 1", "/metrics")
        assert agent.private_bytes() < MAX_LOADED_MEMORY


def flags(kind: str, directory: Path) -> list[str]:
    """The options of an agent with these features. The files that they name are created."""
    if kind == "annotations":
        (directory / "annotations").write_bytes(annotations("hitRatio=80,timeout=900,minRequests=100", memory="64"))
        return [f"--annotations-file={directory}/annotations", f"--state-directory={directory}"]
    if kind == "tls":
        pair = CA().issue()
        (directory / "tls.crt").write_bytes(pair.cert)
        (directory / "tls.key").write_bytes(pair.key)
        return [f"--tls-directory={directory}", f"--tls-port={free_port()}", "--metrics-tls"]
    return []
