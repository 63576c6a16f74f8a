"""Growth of memory of real memcached processes, which keep their items."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from corners.client import Client
from corners.server import Server
from memcached_agent.memory.decision import HOLD
from support.memcacheds import memcached
from support.ports import free_port
from unit.agent.processes import Agent, running
from unit.agent.samples import value
from unit.agent.warming import MEBIBYTE, annotations

VALUE = b"x" * 500_000
FEW, MANY = 100, 200
"""Items of half a MB: those that fit into 64 MiB, and those that fit only into 128 MiB."""
TOLERANCE = 1.0
"""Seconds from the notice of a target to the first look at /readyz, and between two looks."""


def limit(live: Server) -> int:
    """The limit of the items in MiB."""
    client = live.connect()
    with client.socket:
        return int(client.stats()["limit_maxbytes"]) // MEBIBYTE


def store(client: Client, keys: range) -> None:
    """Store items, whose values are large."""
    for key in keys:
        assert client.request(b"set %d 0 0 %d\r\n%b\r\n" % (key, len(VALUE), VALUE)) == b"STORED\r\n"


def found(client: Client, keys: range) -> int:
    """How many of these items there are."""
    return sum(client.request(b"mg %d\r\n" % key).startswith(b"HD") for key in keys)


@contextmanager
def agent_of(port: int, directory: Path) -> Generator[Agent]:
    """An agent that reads `annotations` in a directory."""
    with running(port, f"--annotations-file={directory}/annotations", f"--state-directory={directory}") as agent:
        yield agent


def test_memcached_grows_with_its_items(root: Path, tmp_path: Path) -> None:
    """A connection of a client stays open meanwhile. A restart of the agent does not repeat the hold."""
    port, file = free_port(), tmp_path / "annotations"
    file.write_bytes(annotations(None, memory="64"))
    with memcached(root, port) as live:
        with agent_of(port, tmp_path) as agent:
            agent.wait_for(200, "ok", "/readyz")
            client = live.connect()
            store(client, range(FEW))
            file.write_bytes(annotations(None, memory="128"))
            agent.wait_for(503, "memory was raised to 128 MiB; ready in", "/readyz")
            began = time.monotonic()
            assert limit(live) == 128
            assert found(client, range(FEW)) == FEW
            assert value(agent.get()[1], "memcached_agent_memory_target_bytes") == 128 * MEBIBYTE
            assert value(agent.get()[1], "memcached_limit_bytes") == 128 * MEBIBYTE
            agent.wait_for(200, "ok", "/readyz")
            assert time.monotonic() - began > HOLD - TOLERANCE
            assert agent.get("/healthz") == (200, "ok\n")
        store(client, range(FEW, MANY))
        assert found(client, range(MANY)) == MANY, "memcached uses the memory"
        with agent_of(port, tmp_path) as agent:
            began = time.monotonic()
            agent.wait_for(200, "ok", "/readyz")
            assert time.monotonic() - began < HOLD / 2
        client.close()


def test_memcached_grows_again_after_a_restart(root: Path, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "annotations").write_bytes(annotations(None, memory="128"))
    with agent_of(port, tmp_path) as agent:
        for _ in range(2):
            agent.wait_for(503, "memcached: ")
            with memcached(root, port) as live:
                agent.wait_for(200, "ok")
                agent.wait_for(200, "memcached_agent_memory_target_reached 1", "/metrics")
                assert agent.get("/readyz") == (200, "ok\n"), "there is no hold"
                assert limit(live) == 128


def test_memcached_that_cannot_grow_is_reported(root: Path, items: str, tmp_path: Path) -> None:
    """With -e, memcached maps a file of a fixed size."""
    port = free_port()
    (tmp_path / "annotations").write_bytes(annotations(None, memory="128"))
    with memcached(root, port, "-e", f"{items}/memory") as live, agent_of(port, tmp_path) as agent:
        agent.wait_for(503, "memory: the memory of memcached cannot be raised to 128 MiB: it replied 'MEMLIMIT_ADJUST")
        agent.wait_for(503, "memory not raised yet: memcached has 64 MiB, 128 MiB needed", "/readyz")
        assert limit(live) == 64
        code, log = agent.end()
        assert (code, log.count("cannot be raised")) == (0, 1), log
