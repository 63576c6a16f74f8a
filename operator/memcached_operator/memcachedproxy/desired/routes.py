"""The routes of memcached's proxy, in Lua, as routelib reads them from a file.

They are part of the pod template: a change replaces the pods. Their size does not depend on the number of slots.
"""

from collections.abc import Mapping

from memcached_api.memcachedproxy.limits import requests
from memcached_api.memcachedproxy.resolved import Settings
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.parts.ring import Phase

RETRY_SECONDS, FAILURES = 1, 1
"""A server is marked as unreachable after more than FAILURES failures in a row, and then tried again every
RETRY_SECONDS. Each try looks up the name, which blocks a thread for 2 s if the name server is silent, 1 s for each type
of address: the three tries of a limit of 3 would stop all keys for 6 s."""


def routes(slots: Slots, servers: int, settings: Settings, buffers: int) -> str:
    """The text of the file, for the first `servers` slots. `buffers`: KiB of values in flight.

    memcached divides both limits by threads.

    All names in it match DNS-1123. A name ends with a dot: otherwise, each look-up would try the search list, and a
    look-up blocks a thread. jump, the default, moves no key of another slot if a slot is replaced.
    """
    return _file(slots, {"main": servers}, 'route_direct{ child = "main" }', settings, buffers)


def phase_routes(slots: Slots, old: int, new: int, phase: Phase, settings: Settings, buffers: int) -> str:
    """The text of the file in a phase of a change from `old` to `new` slots, for the handler of `handler()`.

    `buffers`: KiB of values in flight. A slot of both pools has the same label, host and port in both, so memcached has
    one backend for it.
    """
    arguments = f'child_old = "old", child_new = "new", old = {old}, new = {new}, phase = "{phase.lower()}"'
    return _file(slots, {"old": old, "new": new}, f"route_scale{{ {arguments} }}", settings, buffers)


def _file(slots: Slots, pools: Mapping[str, int], route: str, settings: Settings, buffers: int) -> str:
    """The text of the file, for pools of the first slots: their sizes by name."""
    server = f'label = "{slots.name}-" .. i, host = "{slots.name}-" .. i .. ".{slots.domain}.", port = "{slots.port}"'
    lines = [f"settings{{ {', '.join(f'{name} = {value}' for name, value in _options(settings, buffers).items())} }}"]
    for name, size in pools.items():
        lines += [f"local {name} = {{}}", f"for i = 0, {size - 1} do {name}[i + 1] = {{ {server} }} end"]
    lines.append(f"pools{{ {', '.join(f'{name} = {{ backends = {name} }}' for name in pools)} }}")
    lines.append(f"routes{{ default = {route} }}")
    return "".join(f"{line}\n" for line in lines)


def _options(settings: Settings, buffers: int) -> dict[str, str]:
    """The settings of the proxy, as Lua."""
    return {
        "backend_connect_timeout": f"{settings.connect_timeout.normalize():f}",
        "backend_read_timeout": f"{settings.read_timeout.normalize():f}",
        "backend_retry_waittime": str(RETRY_SECONDS),
        "backend_failure_limit": str(FAILURES),
        "active_req_limit": str(requests(settings.connections, settings.threads)),
        "buffer_memory_limit": str(buffers),
        "tcp_keepalive": "true",
    }
