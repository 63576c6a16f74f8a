"""Real memcacheds and proxies on loopback, with the routes and the handler of the operator."""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from corners.server import Server
from memcached_api.memcachedproxy.resolved import settings
from memcached_api.memcachedproxy.types import decode_spec
from memcached_operator.memcachedproxy.desired.handler import handler
from memcached_operator.memcachedproxy.desired.routes import phase_routes, routes
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.parts.ring import Phase
from support.memcacheds import memcached
from support.ports import free_port
from unit.builders import memcachedproxy

SLOTS: Final = Slots("cache", "cache.test.svc.cluster.local", 11211)
SETTINGS: Final = settings(decode_spec(memcachedproxy()))
BUFFERS: Final = 65536
"""KiB of values in flight."""


def plain(ports: Sequence[int], size: int) -> str:
    """The routes of the first `size` servers. `ports`: of all servers on loopback, by slot."""
    return _on_loopback(routes(SLOTS, size, SETTINGS, BUFFERS), ports)


def phased(ports: Sequence[int], old: int, new: int, phase: Phase) -> str:
    """The routes of a phase of a change from `old` to `new` servers."""
    return _on_loopback(phase_routes(SLOTS, old, new, phase, SETTINGS, BUFFERS), ports)


def _on_loopback(text: str, ports: Sequence[int]) -> str:
    """Routes with these ports of loopback instead of the names of slots."""
    listed = ", ".join(map(str, ports))
    text = text.replace(f'"{SLOTS.name}-" .. i .. ".{SLOTS.domain}."', '"127.0.0.1"')
    return text.replace(f'port = "{SLOTS.port}"', f"port = tostring(({{ {listed} }})[i + 1])")


@contextmanager
def proxy(root: Path, text: str, program: str = handler(), port: int | None = None) -> Generator[Server]:
    """A proxy with these routes during the block. `program`: the handler. `port`: a free one by default."""
    with ExitStack() as stack:
        program_file, routes_file = (stack.enter_context(_file(root, each)) for each in (program, text))
        option = f"proxy_config=routelib:{program_file},proxy_arg={routes_file}"
        yield stack.enter_context(memcached(root, port or free_port(), "-c", "4096", "-o", option))


@contextmanager
def memcacheds(root: Path, size: int) -> Generator[list[Server]]:
    """Empty servers during the block."""
    with ExitStack() as stack:
        yield [stack.enter_context(memcached(root, free_port())) for _ in range(size)]


@contextmanager
def _file(root: Path, text: str) -> Generator[str]:
    """A file in the root directory of memcached during the block: its path there."""
    with tempfile.NamedTemporaryFile("w", dir=root, prefix="routes-") as file:
        file.write(text)
        file.flush()
        Path(file.name).chmod(0o644)
        yield f"/{Path(file.name).name}"
