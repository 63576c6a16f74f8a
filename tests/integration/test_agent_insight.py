"""The agent watches evictions of real memcached processes of the oldest and the newest tested release."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from corners.server import Server
from insight.watch import Watch
from support.memcacheds import memcached
from support.ports import free_port
from unit.agent.processes import Agent, running
from unit.agent.samples import value

MEMORY = ("-m", "8")
SIZE, FITTING = 4000, 1700
"""Bytes of a value, and about how many of them fit."""
BATCH = 100
"""Items of which memcached buffers all lines."""
LIMIT = 24
"""A small connection limit."""
SECONDS = 120.0
"""Enough for a busy machine and the time between two attempts to watch."""


@pytest.fixture
def full(root: Path) -> Iterator[Server]:
    """A memcached that evicts items."""
    with memcached(root, free_port(), *MEMORY) as found:
        store(found, range(2 * FITTING))
        yield found


def store(server: Server, keys: Iterable[int]) -> None:
    """Store items. The keys have characters that memcached encodes for watchers."""
    client = server.connect()
    client.send_quiet([b"".join(map(request, keys))])  # in one piece: the kernel delays many small ones
    client.close()


def request(key: int) -> bytes:
    """The request that stores an item."""
    return b"ms %%k/%d\xff %d q\r\n%b\r\n" % (key, SIZE, b"x" * SIZE)


def stat(server: Server, name: str) -> int:
    """A counter of memcached."""
    client = server.connect()
    found = client.stats()[name]
    client.close()
    return int(found)


def until_watched(server: Server, number: int = 1) -> None:
    """Wait until memcached has so many watchers."""
    wait_until(lambda: stat(server, "log_watchers") == number)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def until_unavailable(agent: Agent) -> None:
    """Wait until the agent reports that it cannot watch."""
    agent.wait_for(200, 'memcached_agent_insight_quality{quality="unavailable"} 1', "/metrics", SECONDS)


def test_ghosts_have_the_keys_of_both_kinds_of_lines(full: Server) -> None:
    """A loop over twice the items that fit has no hits, and would have only hits with more than twice the memory."""
    watch = Watch(full.port)
    client = full.connect()
    keys = [*range(2 * FITTING)] * 5
    for first in range(0, len(keys), BATCH):
        batch = keys[first : first + BATCH]
        gets_and_sets = b"".join(b"mg %%k/%d\xff q\r\n%b" % (key, request(key)) for key in batch)
        assert client.request(gets_and_sets + b"mn\r\n", b"MN\r\n") == b"MN\r\n"
        wait_until(lambda first=first: watch.window.evictions >= first)  # memcached would drop the lines of a burst
    client.close()
    result = watch.result()
    assert (result.quality, result.hit_ratio) == ("good", 0)
    found = {point.memory: point.hit_ratio for point in result.larger}
    assert found[1.25] == found[1.5] == 0
    assert found[4.0] > 0.95


def test_watcher_is_closed_with_the_agent(full: Server) -> None:
    """A killed agent leaves nothing behind."""
    with running(full.port, "--insight") as agent:
        until_watched(full)
        agent.process.kill()
        until_watched(full, 0)


def test_agent_that_reads_nothing_does_not_delay_clients(full: Server) -> None:
    """memcached drops its lines, and counts them."""
    with running(full.port, "--insight") as agent:
        until_watched(full)
        agent.process.send_signal(signal.SIGSTOP)
        before, deadline = stat(full, "cmd_set"), time.monotonic() + SECONDS
        while not stat(full, "log_watcher_skipped"):
            assert time.monotonic() < deadline
            store(full, range(20 * FITTING))
        assert (stat(full, "cmd_set") - before) % (20 * FITTING) == 0
        agent.process.send_signal(signal.SIGCONT)
        agent.wait_for(200, "ok")


def test_memcached_that_is_restarted_is_watched_again(root: Path) -> None:
    port = free_port()
    with memcached(root, port, *MEMORY) as first, running(port, "--insight") as agent:
        until_watched(first)
        first.process.kill()
        until_unavailable(agent)
        with memcached(root, port, *MEMORY) as second:
            until_watched(second)
            assert 'quality="unavailable"} 1' not in agent.get()[1]


def test_memcached_without_watchers(root: Path) -> None:
    with memcached(root, free_port(), "--disable-watch") as live, running(live.port, "--insight") as agent:
        until_unavailable(agent)
        assert value(agent.get()[1], "memcached_up") == 1
        assert agent.get("/healthz") == (200, "ok\n")


def test_connection_limit(root: Path) -> None:
    """The connection for the metrics takes the last free one, and the watcher waits for another."""
    with memcached(root, free_port(), "-c", str(LIMIT)) as live, ExitStack() as stack:
        served = live.connect()
        stack.callback(served.close)
        while (client := live.connect()).request(b"version\r\n").startswith(b"VERSION"):
            stack.callback(client.close)
        client.close()
        served.close()
        with running(live.port, "--insight") as agent:
            agent.wait_for(200, "ok")
            until_unavailable(agent)
            assert value(agent.get()[1], "memcached_up") == 1
            stack.close()
            until_watched(live)
