"""The warm gate beside real memcached processes that are restarted with and without their items."""

import signal
import time
from pathlib import Path

from corners.server import Server
from memcached_agent.memcached.stats import Gets, parse_stats
from memcached_agent.pod import record
from memcached_agent.pod.record import ProcessRecord, Seen
from support.memcacheds import memcached
from support.ports import free_port
from unit.agent.processes import Agent, running
from unit.agent.samples import value
from unit.agent.warming import annotations

GETS = 50
"""Gets between two looks at /readyz."""
PAUSE = 0.1
"""Seconds between two looks."""
WHOLE_MINUTE = 45.0
"""Seconds; a decision after 10 s of samples takes at most 15 s, also on a busy machine less than this."""
MIN_CPU = 300
"""Milliseconds: more than memcached needs to start."""
RESTART = 1.1
"""Seconds between the end of memcached and its next start: within the same second, it drops its items."""


def seen(live: Server) -> Seen:
    """The process in its statistics."""
    client = live.connect()
    with client.socket:
        return record.seen(parse_stats(client.request(b"stats\r\n", b"END\r\n")))


def get(live: Server, key: str) -> bytes:
    """The replies to many gets of a key."""
    client = live.connect()
    with client.socket:
        return b"".join(client.request(f"get {key}\r\n".encode(), b"END\r\n") for _ in range(GETS))


def get_until(agent: Agent, live: Server, key: str, status: int, text: str, seconds: float = 60) -> float:
    """Get a key until /readyz has this status and text; returns the seconds that this took."""
    began, found = time.monotonic(), agent.get("/readyz")
    while found[0] != status or text not in found[1]:
        assert time.monotonic() < began + seconds, found
        get(live, key)
        time.sleep(PAUSE)
        found = agent.get("/readyz")
    return time.monotonic() - began


def test_clock_and_cpu_time_of_a_memcached_that_keeps_its_items(root: Path, items: str) -> None:
    """Its clock continues, so that `uptime` does not tell it from the one before; its CPU time starts again."""
    port = free_port()
    with memcached(root, port, "-e", f"{items}/memory") as live:
        while seen(live).cpu < MIN_CPU:
            get(live, "missing")
        first = seen(live)
        live.process.send_signal(signal.SIGUSR1)
        assert live.process.wait(30) == 0
    time.sleep(RESTART)
    with memcached(root, port, "-e", f"{items}/memory") as live:
        second = seen(live)
    assert abs(second.started - first.started) <= record.START_TOLERANCE
    assert second.cpu < first.cpu
    assert second.gets == Gets()
    before = ProcessRecord(second.pid, first.started, first.cpu, first.started, warm=True)
    assert record.follow(before, second) == ProcessRecord(second.pid, second.started, second.cpu, second.time, kept=1)


def test_gate_of_a_memcached_that_is_restarted(root: Path, items: str, tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "annotations"
    file.write_bytes(annotations("hitRatio=80,timeout=900,minRequests=100"))
    with running(port, f"--annotations-file={file}", f"--state-directory={tmp_path}") as agent:
        with memcached(root, port, "-e", f"{items}/memory") as live:
            client = live.connect()
            assert client.request(b"set key 0 0 1\r\na\r\n") == b"STORED\r\n"
            client.close()
            get_until(agent, live, "key", 200, "ok")
            live.process.send_signal(signal.SIGUSR1)
            assert live.process.wait(30) == 0
        agent.wait_for(503, "memcached at", "/readyz")
        time.sleep(RESTART)
        with memcached(root, port, "-e", f"{items}/memory") as live:
            agent.wait_for(503, "not warm yet: memcached has been observed for", "/readyz")
            assert get(live, "key").startswith(b"VALUE key 0 1")
            taken = get_until(agent, live, "key", 200, "ok")
            assert taken < WHOLE_MINUTE, "a memcached with its items waits for a whole minute"
        agent.wait_for(503, "memcached at", "/readyz")
        with memcached(root, port, "-e", f"{items}/memory") as live:
            assert b"VALUE" not in get(live, "key"), "SIGKILL leaves no items"
            get_until(agent, live, "key", 503, "hit ratio 0 % of")


def restarting(items: str, directory: Path, arguments: str) -> list[str]:
    """The options of an agent whose memcached must run with these arguments."""
    (directory / "args").write_text(arguments)
    files = {"annotations-file": "annotations", "state-directory": "", "arguments-file": "args"}
    return [*(f"--{name}={directory / path}" for name, path in files.items()), f"--items-file={items}/memory"]


def test_memcached_is_restarted_with_its_items_when_its_arguments_change(
    root: Path, items: str, tmp_path: Path
) -> None:
    port = free_port()
    (tmp_path / "annotations").write_bytes(annotations(None))
    with running(port, *restarting(items, tmp_path, "-c 100")) as agent:
        with memcached(root, port, "-e", f"{items}/memory", "-c", "100") as live:
            client = live.connect()
            assert client.request(b"set key 0 0 1\r\na\r\n") == b"STORED\r\n"
            client.close()
            agent.wait_for(200, "ok", "/readyz")
            (tmp_path / "args").write_text("-c 200")
            assert live.process.wait(30) == 0
        agent.wait_for(503, "no process of memcached with -e", "/readyz")
        time.sleep(RESTART)
        with memcached(root, port, "-e", f"{items}/memory", "-c", "200") as live:
            assert get(live, "key").startswith(b"VALUE key 0 1")
            agent.wait_for(200, "ok", "/readyz")
            agent.wait_for(200, 'memcached_agent_memcached_restarts_total{items="kept"} 1', "/metrics")
            text = agent.get()[1]
            assert value(text, "memcached_agent_memcached_signals_total") == 1
            assert value(text, "memcached_agent_arguments_in_effect") == 1
            assert live.process.poll() is None
