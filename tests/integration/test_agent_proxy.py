"""A real proxy of memcached: the servers that it cannot reach, and the slot of each key."""

import tempfile
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from cluster.public import releases
from corners import server
from corners.server import Server
from kubectl_memcached.ring.proxies import slot_of
from support.memcacheds import memcached_root
from support.ports import free_port
from unit.agent.processes import running

SLOTS: Final = 3
METRIC: Final = "memcached_agent_proxy_servers_unreachable"
KEYS: Final = [f"user:{number}" for number in range(60)]
ROUTES: Final = """\
settings{{ backend_connect_timeout = 0.5, backend_read_timeout = 0.5, backend_failure_limit = 3 }}
pools{{ main = {{ backends = {{ {backends} }} }} }}
routes{{ default = route_direct{{ child = "main" }} }}
"""


@pytest.fixture(scope="module")
def root() -> Path:
    """The root directory of the newest release: earlier ones of the tests have no proxy, or an unsuitable one."""
    return memcached_root(releases.VERSIONS[-1])


@contextmanager
def listening(root: Path, port: int, *options: str) -> Generator[Server]:
    """A memcached on this port of loopback, during the block."""
    words = [releases.PROGRAM, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "2", *options]
    with server.started(root, words, port) as process:
        process.wait_until_started()
        yield process


@contextmanager
def proxy(root: Path, ports: list[int]) -> Generator[Server]:
    """A proxy in front of servers at these ports, in the order of the slots."""
    backends = (f'{{ label = "cache-{slot}", host = "127.0.0.1", port = "{port}" }}' for slot, port in enumerate(ports))
    with tempfile.NamedTemporaryFile("w", dir=root, prefix="routes-") as file:
        file.write(ROUTES.format(backends=", ".join(backends)))
        file.flush()
        Path(file.name).chmod(0o644)
        option = f"proxy_config=routelib,proxy_arg=/{Path(file.name).name}"
        with listening(root, free_port(), "-m", "2", "-o", option) as process:
            yield process


def ask(process: Server, request: str) -> str:
    """The reply of a server on a new connection, in one line."""
    with closing(process.connect()) as client:
        return client.request(f"{request}\r\n".encode()).decode()


def test_server_that_a_proxy_cannot_reach_is_counted_until_it_is_back(root: Path) -> None:
    ports = [free_port() for _ in range(SLOTS)]
    with ExitStack() as stack:
        servers = [stack.enter_context(listening(root, port)) for port in ports]
        front = stack.enter_context(proxy(root, ports))
        agent = stack.enter_context(running(front.port))
        agent.wait_for(200, f"{METRIC} 0\n", "/metrics")
        for key in KEYS:
            assert ask(front, f"ms {key} 1 T0\r\nv") == "HD\r\n"
        found = {
            key: [slot for slot, each in enumerate(servers) if ask(each, f"me {key}").startswith("ME ")] for key in KEYS
        }
        assert found == {key: [slot_of(key.encode(), SLOTS)] for key in KEYS}
        servers[1].process.kill()
        servers[1].process.wait()
        agent.wait_for(200, f"{METRIC} 1\n", "/metrics")
        key = next(key for key in KEYS if slot_of(key.encode(), SLOTS) == 1)
        assert ask(front, f"mg {key}").startswith("SERVER_ERROR")
        stack.enter_context(listening(root, ports[1]))
        agent.wait_for(200, f"{METRIC} 0\n", "/metrics")


def test_server_has_no_metric_of_a_proxy(root: Path) -> None:
    with listening(root, free_port()) as process, running(process.port) as agent:
        agent.wait_for(200, "memcached_up 1\n", "/metrics")
        assert METRIC not in agent.get()[1]
