"""Memory of real memcached processes, which keep their items."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from corners.client import Client
from corners.server import Server
from support.kube import eventually
from support.memcacheds import memcached
from support.ports import free_port
from unit.agent.processes import START, Agent, running
from unit.agent.warming import MEBIBYTE, annotations

VALUE = b"x" * 500_000
FEW, MANY = 100, 200
"""Items of half a MB: those that fit into 64 MiB, and those that fit only into 128 MiB."""


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


def test_memory_follows_the_target_and_items_stay(root: Path, tmp_path: Path) -> None:
    """A connection of a client stays open meanwhile, and the pod stays ready. A client cannot change the limit."""
    port, file = free_port(), tmp_path / "annotations"
    file.write_bytes(annotations(None, memory="64"))
    with memcached(root, port) as live, agent_of(port, tmp_path) as agent:
        agent.wait_for(200, "memcached_agent_memory_target_reached 1", "/metrics")
        client = live.connect()
        store(client, range(FEW))
        file.write_bytes(annotations(None, memory="128"))
        wait_until_limited(agent, live, 128)
        assert found(client, range(FEW)) == FEW
        store(client, range(FEW, MANY))
        assert found(client, range(MANY)) == MANY, "memcached uses the memory"
        assert client.request(b"cache_memlimit 256\r\n") == b"OK\r\n"
        wait_until_limited(agent, live, 128)
        assert found(client, range(MANY)) == MANY
        for direction in ("raised", "lowered"):
            agent.wait_for(200, f'memcached_agent_memory_changes_total{{direction="{direction}"}} 1', "/metrics")
        client.close()


def wait_until_limited(agent: Agent, live: Server, memory: int) -> None:
    """Wait until memcached has this limit. The pod is ready all the time."""

    seen: set[tuple[int, str]] = set()

    def is_limited() -> bool:
        seen.add(agent.get("/readyz"))
        return limit(live) == memory

    eventually(is_limited, START, f"memcached has {memory} MiB")
    assert seen == {(200, "ok\n")}


def test_memory_that_memcached_refuses_is_reported(root: Path, items: str, tmp_path: Path) -> None:
    """With -e, memcached maps a file of a fixed size."""
    port = free_port()
    (tmp_path / "annotations").write_bytes(annotations(None, memory="128"))
    with memcached(root, port, "-e", f"{items}/memory") as live, agent_of(port, tmp_path) as agent:
        agent.wait_for(503, "memory: the memory of memcached cannot be set to 128 MiB: it replied 'MEMLIMIT_ADJUST")
        agent.wait_for(200, "memcached_agent_memory_target_reached 0", "/metrics")
        assert agent.get("/readyz") == (200, "ok\n")
        assert limit(live) == 64
        code, log = agent.end()
        assert (code, log.count("cannot be set")) == (0, 1), log
