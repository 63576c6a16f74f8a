"""The routes of memcached's proxy, in Lua, as routelib reads them from a file.

They are part of the pod template: a change replaces the pods. Their size does not depend on the number of slots.
"""

from memcached_api.memcachedproxy.limits import requests
from memcached_api.memcachedproxy.resolved import Settings
from memcached_operator.memcachedproxy.references import Slots

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
    options = {
        "backend_connect_timeout": f"{settings.connect_timeout.normalize():f}",
        "backend_read_timeout": f"{settings.read_timeout.normalize():f}",
        "backend_retry_waittime": str(RETRY_SECONDS),
        "backend_failure_limit": str(FAILURES),
        "active_req_limit": str(requests(settings.connections, settings.threads)),
        "buffer_memory_limit": str(buffers),
        "tcp_keepalive": "true",
    }
    server = f'label = "{slots.name}-" .. i, host = "{slots.name}-" .. i .. ".{slots.domain}.", port = "{slots.port}"'
    lines = (
        f"settings{{ {', '.join(f'{name} = {value}' for name, value in options.items())} }}",
        "local main = {}",
        f"for i = 0, {servers - 1} do main[i + 1] = {{ {server} }} end",
        "pools{ main = { backends = main } }",
        'routes{ default = route_direct{ child = "main" } }',
    )
    return "".join(f"{line}\n" for line in lines)
