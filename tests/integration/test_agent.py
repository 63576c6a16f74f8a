"""The agent beside real memcached processes of the oldest and the newest tested release, and their faults."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from corners.server import Server
from support.memcacheds import memcached
from support.ports import free_port
from unit.agent.processes import Agent, running
from unit.agent.samples import FOLDER, types, value

ITEMS = 2000
SIZES = range(10, 1970, 40)
LIMIT = 24
"""A small connection limit; memcached uses some of it itself, more with more threads."""
SCRAPE_SECONDS = 8.0
"""A scrape of a memcached that hangs takes 2 s. Prometheus waits 10 s by default."""


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


def test_memcached_hangs(live: Server, agent: Agent) -> None:
    live.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    text = agent.get()[1]
    assert time.monotonic() - began < SCRAPE_SECONDS
    assert value(text, "memcached_up") == 0
    assert value(text, "memcached_agent_connection_errors_total", reason="timeout") == 1
    agent.wait_for(503, "did not reply to `")
    began = time.monotonic()
    assert up(agent) == 0
    assert time.monotonic() - began < 1, "without a connection, a scrape does not wait"
    live.process.send_signal(signal.SIGCONT)
    agent.wait_for(200, "ok")
    text = agent.get()[1]
    assert (value(text, "memcached_up"), value(text, "memcached_current_items")) == (1, ITEMS)


def fill(live: Server, stack: ExitStack) -> None:
    """Open connections until memcached refuses one."""
    for _ in range(LIMIT + 1):
        client = live.connect()
        stack.callback(client.close)
        if not client.request(b"version\r\n").startswith(b"VERSION"):
            return
    raise AssertionError("memcached accepts more connections than its limit")


def test_connected_agent_reports_the_connection_limit(root: Path) -> None:
    with memcached(root, free_port(), "-c", str(LIMIT)) as live, running(live.port) as agent, ExitStack() as stack:
        agent.wait_for(200, "ok")
        fill(live, stack)
        text = agent.get()[1]
        assert value(text, "memcached_up") == 1
        assert value(text, "memcached_connections_rejected_total") >= 1
        assert value(text, "memcached_max_connections") == LIMIT
        assert agent.get("/healthz") == (200, "ok\n")


def test_agent_is_started_at_the_connection_limit(root: Path) -> None:
    with memcached(root, free_port(), "-c", str(LIMIT)) as live, ExitStack() as stack:
        fill(live, stack)
        with running(live.port) as agent:
            agent.wait_for(503, "has reached its connection limit and refuses new connections")
            assert (up(agent), errors(agent, "closed")) == (0, 0)
            assert errors(agent, "limit") >= 1
            stack.close()
            agent.wait_for(200, "ok")
            assert up(agent) == 1


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM], ids=lambda fault: fault.name)
def test_fault_of_the_agent_does_not_affect_memcached(live: Server, agent: Agent, fault: signal.Signals) -> None:
    client = live.connect()
    before = int(client.stats()["total_connections"])
    agent.process.send_signal(fault)
    if fault != signal.SIGSTOP:
        agent.process.wait(5)
    for number in range(0, ITEMS, 100):
        assert client.request(b"get %d\r\n" % number, b"END\r\n").startswith(b"VALUE")
    stats = client.stats()
    assert (int(stats["curr_items"]), int(stats["total_connections"])) == (ITEMS, before)
    other = live.connect()
    assert other.request(b"set new 0 0 1\r\n1\r\n") == b"STORED\r\n"
    for each in (client, other):
        each.close()
    assert live.process.poll() is None


def test_agent_keeps_one_connection(live: Server, agent: Agent) -> None:
    client = live.connect()
    before = int(client.stats()["total_connections"])
    for _ in range(20):
        assert up(agent) == 1
        assert agent.get("/healthz")[0] == 200
    assert int(client.stats()["total_connections"]) == before
    client.close()
