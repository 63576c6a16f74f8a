"""The agent as a process, and what its parts do together."""

import asyncio
import errno
import json
import os
import resource
import signal
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memcached_agent import app
from memcached_agent.addresses import Address
from memcached_agent.memcached import connection
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.errors import REASONS
from memcached_agent.metrics.exporter import Exporter
from memcached_agent.options import AgentOptions
from memcached_agent.shared import SingleFlight
from memcached_agent.version import version
from memcached_agent.web import server
from memcached_agent.web.exhaustion import Exhaustion
from memcached_agent.web.health import healthz
from memcached_agent.web.server import BACKLOG, MAX_CONNECTIONS
from support.pki import CA
from support.ports import free_port
from support.streams import HELLO, status, until

from .memcacheds import HANG, FakeMemcached, replies_again, with_client
from .processes import PROBES, finished, running
from .samples import COMMANDS, types, value

METRICS = HELLO.replace(b"/hello", b"/metrics")


def test_signal_ends_a_busy_process() -> None:
    """memcached hangs, a scrape waits for it, and a half request is open."""
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        agent = stack.enter_context(running(silent.getsockname()[1]))
        for data in (b"GET /metrics HTTP/1.1\r\n", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port)))
            client.sendall(data)
        code, log = agent.end(signal.SIGTERM)
        assert (code, "Traceback" in log) == (0, False), log


@pytest.mark.parametrize("option", ["--metrics-bind-address", "--probes-bind-address"])
def test_port_in_use_exits_1_with_one_sentence(option: str) -> None:
    others = (f"{each}=:{free_port()}" for each in ("--metrics-bind-address", "--probes-bind-address"))
    with socket.create_server(("", 0)) as used:
        port = used.getsockname()[1]
        done = finished(*others, f"{option}=:{port}", "--log-format=json")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["msg"] == f"cannot listen on :{port}: Address already in use"


def test_agent_without_memcached_serves_its_own_metrics() -> None:
    port = free_port()
    with running(port) as agent:
        agent.wait_for(503, f"memcached: memcached at 127.0.0.1:{port} refuses the connection: nothing listens on")
        for path in PROBES:
            assert agent.get(path) == (200, "ok\n"), path
        status, text = agent.get()
        assert status == 200
        assert value(text, "memcached_up") == 0
        assert value(text, "memcached_agent_connection_errors_total", reason="refused") >= 1
        assert types(text).keys() == {
            "memcached_up",
            "memcached_agent_connection_errors_total",
            "memcached_agent_info",
            "memcached_agent_request_duration_seconds",
            "memcached_agent_uptime_seconds",
        }
        code, log = agent.end(signal.SIGINT)
        assert (code, "Traceback" in log) == (0, False), log


def test_each_path_has_one_port() -> None:
    with running(free_port()) as agent:
        ports = {"/metrics": agent.port, "/healthz": agent.port, **dict.fromkeys(PROBES, agent.probes)}
        for path, port in ports.items():
            other = replace(agent, port=agent.probes, probes=agent.port)
            paths = ", ".join(each for each in ports if ports[each] != port)
            assert other.get(path) == (404, f"not found; the paths are {paths}\n")


def test_probes_need_no_certificate(tmp_path: Path) -> None:
    """An agent that starts while the Secret is bad would be restarted again and again."""
    options = (f"--tls-directory={tmp_path}", f"--tls-port={free_port()}", "--metrics-tls")
    with running(free_port(), *options, tls=True, certified=False) as agent:
        for path in PROBES:
            assert agent.get(path) == (200, "ok\n"), path
        with pytest.raises((ConnectionError, ssl.SSLError)):
            agent.get()
        pair = CA().issue()
        (tmp_path / "tls.crt").write_bytes(pair.cert)
        (tmp_path / "tls.key").write_bytes(pair.key)
        agent.wait_for(200, "memcached_agent_info", "/metrics")


def test_clients_of_the_metrics_do_not_displace_probes() -> None:
    """As many clients of one port would: they close the oldest connection."""
    with running(free_port()) as agent, ExitStack() as stack:

        def get(client: socket.socket, path: str) -> bytes:
            with suppress(ConnectionError):
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                return client.recv(2**16).partition(b"\r\n")[0]
            return b""

        def opened(port: int) -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port)))

        probe = opened(agent.probes)
        assert get(probe, "/livez") == b"HTTP/1.1 200 OK"
        for _ in range(2 * MAX_CONNECTIONS):
            assert get(opened(agent.port), "/healthz") == b"HTTP/1.1 503 Service Unavailable"
        assert get(probe, "/livez") == b"HTTP/1.1 200 OK"


def test_error_in_the_background_ends_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: MemcachedClient) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(MemcachedClient, "run", broken)
    memcached, metrics, probes = (Address("127.0.0.1", port) for port in (1, free_port(), free_port()))
    parsed = AgentOptions(memcached, metrics, probes, "info", "text")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(app.run(parsed))


def test_first_scrape_reports_the_error_that_it_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        began = time.monotonic()
        exporter = Exporter(client)
        text = (await exporter.metrics()).body.decode()
        assert 0 < value(text, "memcached_agent_uptime_seconds") <= time.monotonic() - began
        assert (value(text, "memcached_up"), value(text, "memcached_current_items")) == (1, 19999)
        assert value(text, "memcached_agent_info", version=version()) == 1
        memcached.replies["stats items"] = HANG
        monkeypatch.setattr(connection, "REPLY_TIMEOUT", 0.3)
        text = (await exporter.metrics()).body.decode()
        assert value(text, "memcached_up") == 0
        assert "memcached_current_items" not in types(text)
        found = {each: value(text, "memcached_agent_connection_errors_total", reason=each) for each in REASONS}
        assert found == {**dict.fromkeys(REASONS, 0), "timeout": 1}

    with_client(scenario)


def test_concurrent_scrapes_share_one_sequence_of_commands() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.commands.clear()
        memcached.delay = 0.05
        scrape = SingleFlight(Exporter(client).metrics)
        first = asyncio.create_task(scrape())
        await until(lambda: memcached.commands)
        others = [asyncio.create_task(scrape()) for _ in range(20)]
        first.cancel()
        found = await asyncio.gather(*others)
        assert len({id(each.body) for each in found}) == 1
        assert memcached.commands == list(COMMANDS)
        await scrape()
        assert memcached.commands == list(COMMANDS) * 2

    with_client(scenario)


def test_parallel_scrapes_of_the_process_share_commands() -> None:
    """Many clients cost memcached little. The probes succeed although it replies to nothing."""

    async def run() -> None:
        memcached = FakeMemcached()
        async with memcached.running():
            with ExitStack() as stack:
                agent = await asyncio.to_thread(stack.enter_context, running(memcached.port))
                await asyncio.to_thread(agent.wait_for, 200, "ok")
                memcached.delay = 0.1
                memcached.commands.clear()
                clients = [await asyncio.open_connection("127.0.0.1", agent.port) for _ in range(10)]
                await asyncio.gather(*(status(client, METRICS) for client in clients))
                for _, writer in clients:
                    writer.transport.abort()
                assert len(memcached.commands) <= 3 * len(COMMANDS)
                memcached.replies["stats"] = HANG
                for path in PROBES:
                    assert await asyncio.to_thread(agent.get, path) == (200, "ok\n"), path

    asyncio.run(run())


def test_healthz_names_each_problem() -> None:
    async def works() -> str:
        return ""

    async def fails() -> str:
        return "the sentence"

    async def run() -> None:
        good = await healthz({"one": works, "two": works})
        assert (good.status, good.body) == (200, b"ok\n")
        bad = await healthz({"one": works, "two": fails, "three": fails})
        assert (bad.status, bad.body) == (503, b"two: the sentence\nthree: the sentence\n")

    asyncio.run(run())


def test_exhausted_file_descriptors_are_one_line() -> None:
    """The log had hundreds of tracebacks within seconds."""
    with running(free_port()) as agent:
        used = len(list(Path(f"/proc/{agent.process.pid}/fd").iterdir()))
        limits = resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        with ExitStack() as stack:
            for _ in range(BACKLOG):
                stack.enter_context(socket.create_connection(("127.0.0.1", agent.port)))
            with pytest.raises(TimeoutError):
                agent.get(timeout=3)
        resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, limits)
        agent.wait_for(200, "ok", "/livez")
        code, log = agent.end()
    found = [line for line in log.splitlines() if "no connection can be accepted: Too many open files" in line]
    assert (code, len(found), "Traceback" in log) == (0, 1, False), log


class Exhausted(socket.socket):
    """A listener without a file descriptor for a connection."""

    def accept(self) -> tuple[socket.socket, object]:
        """Fail."""
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_stop_while_file_descriptors_are_exhausted_logs_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio listens again after a delay, whether or not the listener is closed by then."""
    listener = server._listener  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.05)
    address = Address("127.0.0.1", free_port())

    def exhausted(at: Address) -> Exhausted:
        return Exhausted(fileno=listener(at).detach())

    monkeypatch.setattr(server, "_listener", exhausted)

    handled: list[object] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        exhaustion = Exhaustion(loop.time)

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            handled.append(context.get("exception"))
            exhaustion.handle(loop, context)

        loop.set_exception_handler(handle)
        with socket.socket() as client:
            async with server.listen(server.Server({}), address):
                client.connect((address.host, address.port))
                await until(lambda: caplog.records)
            # asyncio has tried to listen on the closed listener.
            await until(lambda: any(isinstance(error, ValueError) for error in handled))

    asyncio.run(run())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["no connection can be accepted"]
