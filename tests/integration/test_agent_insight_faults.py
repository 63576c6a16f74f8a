"""Faults of an agent that watches, and of memcached while it is watched. Clients notice none of the agent's."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from corners.server import Server
from integration.relay import relay
from integration.reloading import Machine, cache, log_in, machine
from integration.traffic import traffic
from integration.watching import (
    FITTING,
    MEMORY,
    SECONDS,
    ended,
    metrics,
    predictions,
    stat,
    store,
    until_quality,
    until_watched,
    wait_until,
    watching,
)
from support.memcacheds import RELEASES, memcached
from support.ports import free_port
from unit.agent.processes import PROBES, running
from unit.agent.samples import types, value

LIMIT = 24
"""A small connection limit."""


@pytest.fixture
def live(root: Path) -> Iterator[Server]:
    """A memcached with little memory."""
    with memcached(root, free_port(), *MEMORY) as found:
        yield found


@pytest.fixture(params=RELEASES)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """A machine with a release of memcached."""
    return machine(request.param, tmp_path)


def test_agent_is_killed_during_a_window(live: Server) -> None:
    """It leaves no watcher behind."""
    with traffic(live.connect()) as client, running(live.port, "--insight") as agent:
        until_watched(live)
        client.until_served()
        agent.process.kill()
        client.until_served()
        until_watched(live, 0)


def test_agent_that_reads_nothing_does_not_delay_clients(live: Server) -> None:
    """memcached drops its lines, and counts them."""
    store(live, range(2 * FITTING))
    with running(live.port, "--insight") as agent:
        until_watched(live)
        agent.process.send_signal(signal.SIGSTOP)
        before, deadline = stat(live, "cmd_set"), time.monotonic() + SECONDS
        while not stat(live, "log_watcher_skipped"):
            assert time.monotonic() < deadline
            store(live, range(20 * FITTING))
        assert (stat(live, "cmd_set") - before) % (20 * FITTING) == 0
        agent.process.send_signal(signal.SIGCONT)
        agent.wait_for(200, "ok")


def test_watcher_is_cut_in_the_middle_of_a_line(live: Server) -> None:
    """The metrics keep their connection, and the next window is good."""
    with traffic(live.connect()), relay(live.port) as between, watching(between.port) as agent:
        until_watched(live)
        between.cut()
        wait_until(lambda: not between.cutting.is_set())
        watchers = between.watchers
        wait_until(lambda: between.watchers > watchers)
        until_quality(agent, "good")
        assert value(metrics(agent), "memcached_agent_connection_errors_total", reason="closed") == 0
        assert "no prediction of hit ratios: memcached" in ended(agent)


def test_memcached_hangs(live: Server) -> None:
    """The agent responds as it does without insight. Clients get their replies once memcached continues."""
    with running(live.port) as plain, watching(live.port) as agent, traffic(live.connect()):
        until_quality(agent, "good")
        live.process.send_signal(signal.SIGSTOP)
        try:
            until_quality(agent, "unavailable")
            for path in PROBES:
                assert agent.get(path) == plain.get(path) == (200, "ok\n")
            found, expected = metrics(agent), metrics(plain)
            assert value(found, "memcached_up") == value(expected, "memcached_up") == 0
            assert agent.get("/healthz")[0] == plain.get("/healthz")[0] == 503
            assert types(found).keys() > types(expected).keys()
            assert "2" in predictions(found), "those of the last good window stay"
        finally:
            live.process.send_signal(signal.SIGCONT)
        until_quality(agent, "good")
        assert value(metrics(agent), "memcached_up") == 1


def test_memcached_is_restarted(root: Path) -> None:
    """Predictions stay until the new process has a good window. Nothing watches it between two windows."""
    port = free_port()
    with memcached(root, port, *MEMORY) as first, watching(port) as agent:
        with traffic(first.connect()):
            until_quality(agent, "good")
            until_watched(first, 0)
            until_watched(first)
        first.process.kill()
        until_quality(agent, "unavailable")
        assert predictions(metrics(agent))
        with memcached(root, port, *MEMORY) as second, traffic(second.connect()):
            until_quality(agent, "good")
            until_watched(second, 0)


def test_connection_limit(root: Path) -> None:
    """The connection for the metrics takes the last free one, and the watcher waits for another."""
    with memcached(root, free_port(), *MEMORY, "-c", str(LIMIT)) as live, traffic(live.connect()), ExitStack() as stack:
        served = live.connect()
        while (client := live.connect()).request(b"version\r\n").startswith(b"VERSION"):
            stack.callback(client.close)
        client.close()
        served.close()
        with watching(live.port) as agent:
            agent.wait_for(200, "ok")
            wait_until(lambda: value(metrics(agent), "memcached_connections_rejected_total") > 1)
            until_quality(agent, "unavailable")
            assert value(metrics(agent), "memcached_up") == 1
            stack.close()
            until_quality(agent, "good")


def test_password_is_replaced_while_the_agent_watches(node: Machine, tmp_path: Path) -> None:
    """The file of the agent is replaced after that of memcached. Until then, memcached rejects the watcher."""
    users = tmp_path / "users"
    users.write_bytes(b"u:first-secret\n")
    node.auth.write({"users": users.read_bytes()})
    with cache(node, tls=None, auth=True, options=MEMORY) as live:
        assert log_in(live.client, b"u first-secret")
        with traffic(live.client), watching(live.server.port, f"--users-file={users}") as agent:
            until_quality(agent, "good")
            node.auth.write({"users": b"u:second-secret\n"})
            until_quality(agent, "unavailable")
            assert value(metrics(agent), "memcached_up") == 1, "it keeps its connection"
            users.write_bytes(b"u:second-secret\n")
            until_quality(agent, "good")
            log = ended(agent)
        assert "no prediction of hit ratios: memcached" in log
        assert "secret" not in log
