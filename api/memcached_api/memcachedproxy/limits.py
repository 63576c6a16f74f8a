"""The settings of memcached's proxy that a spec may set, with their limits and defaults."""

import re
from decimal import Decimal
from typing import Final, NamedTuple

from memcached_api.image import Release

MIN_RELEASE: Final[Release] = (1, 6, 45)
"""The first release whose proxy has no known problem that loses requests or memory."""

MIN_SERVER_RELEASE: Final[Release] = (1, 6, 40)
"""The first release whose servers accept the proxy's `noreplY`: an earlier one keeps a key that a client deletes."""

DEFAULT_SIZE: Final = 2
DEFAULT_PORT: Final = 11211  # memcached's own default
DEFAULT_THREADS: Final = 2
"""With one thread, a blocking DNS look-up would stall the whole proxy."""
MAX_THREADS: Final = 64
DEFAULT_CONNECTIONS: Final = 4096
MIN_CONNECTIONS: Final = 15  # the lowest of a Memcached
MAX_CONNECTIONS: Final = 65536
DESCRIPTORS_PER_THREAD: Final = 7
"""File descriptors that each thread opens besides its connection to each server, measured with memcached 1.6.45."""
DESCRIPTORS: Final = 20
"""File descriptors of the process itself: 14 were measured without an agent and without TLS. The other 6 are for the
agent's connections, its listener and the kubelet's probes."""

DEFAULT_TIMEOUT: Final = "500ms"
MIN_TIMEOUT_TEXT, MAX_TIMEOUT_TEXT = "10ms", "60s"
TIMEOUT: Final = "^(([1-9][0-9]{1,3}|[1-5][0-9]{4}|60000)ms|([1-9]|[1-5][0-9]|60)s)$"
"""From 10 ms to 60 s."""

REQUEST_CPU: Final = "100m"
"""Default CPU request of each container."""
PROCESS_MEMORY: Final = 16384
"""KiB of a proxy without clients, with a margin: 7 MiB were measured with 2 threads."""
THREAD_MEMORY: Final = 256
"""KiB of each thread: with 64 threads, 20.6 MiB were measured without clients."""
CONNECTION_MEMORY: Final = 8
"""KiB of one connection with one request in flight, as measured. An idle connection takes 0.6 KiB."""
REQUESTS_PER_THREAD: Final = 2000
"""Requests in flight of each thread besides one for each connection: each key of a multi-get is one."""
REQUEST_MEMORY: Final = 5
"""KiB of a further request in flight: 4.0 to 4.8 were measured."""
BUFFERS: Final = 65536
"""KiB of values in flight that a proxy can hold at least, by default: 30 clients that store 1 MB each at the same time
need 30 MiB."""
THREAD_BUFFERS: Final = 8192
"""KiB of values in flight that each thread can hold at least, by default. memcached divides the limit by threads."""
ITEMS_PER_THREAD, MIN_ITEMS_PER_THREAD = 4, 2
"""Values of `maxItemSize` that each thread can hold: by default, and at least. With less, a value that the server
stores can make the proxy fail all requests on the connection to that server."""
DEFAULT_ITEM_SIZE, MAX_ITEM_SIZE = 2**20, 2**30
"""Bytes. The default and the highest `maxItemSize` of a Memcached."""
SERVER_CONNECTIONS, SERVER_THREADS = 1024, 4
"""The defaults of a Memcached."""
BUFFER_OVERHEAD: Final = 5, 4
"""The memory for values in flight relative to their sizes, as a fraction: 1.1 to 1.25 were measured."""
MAX_BUFFERS: Final = 2**30
"""KiB of values in flight at most, whatever the memory limit is."""
TLS_CONNECTION_MEMORY: Final = 88
"""KiB of one connection with TLS, as of a Memcached (docs/sizing.md)."""
TLS_MEMORY: Final = 6144
"""KiB of TLS besides the connections, as of a Memcached."""


def descriptors(connections: int, threads: int, servers: int) -> int:
    """The value of `-c` with which a proxy serves this number of clients.

    memcached also limits its open files to it, so that it includes the connections to the servers.
    """
    return connections + (DESCRIPTORS_PER_THREAD + servers) * threads + DESCRIPTORS


def server_connections(connections: int | None, threads: int | None) -> int:
    """The clients that a server with these settings of a Memcached accepts; None: the default.

    memcached subtracts 5 file descriptors of each thread and 10 others from `-c`.
    """
    return (connections or SERVER_CONNECTIONS) - (5 * (threads or SERVER_THREADS) + 10) + 1


def requests(connections: int, threads: int) -> int:
    """The number of requests in flight. memcached divides it by threads."""
    return connections + REQUESTS_PER_THREAD * threads


def seconds(timeout: str) -> Decimal:
    """A timeout in seconds. Raises ValueError if it does not match TIMEOUT."""
    match = re.fullmatch(r"([0-9]{1,5})(ms|s)", timeout, re.ASCII)
    if match is None:
        raise ValueError(f"{timeout!r}: not a timeout")
    return Decimal(match[1]) / (1000 if match[2] == "ms" else 1)


class Load(NamedTuple):
    """The settings on which the memory of a proxy depends."""

    connections: int
    threads: int
    tls: bool


def default_memory(load: Load, item_size: int) -> str:
    """The default memory request and limit, as a quantity in whole mebibytes. `item_size`: `maxItemSize` in bytes."""
    return mebibytes(_with_buffers(load, max(BUFFERS, load.threads * _share(item_size))))


def memory_for(load: Load, item_size: int) -> int:
    """The memory limit, in KiB, with which each thread can hold MIN_ITEMS_PER_THREAD values of this size in bytes."""
    return _with_buffers(load, load.threads * -(-MIN_ITEMS_PER_THREAD * item_size // 1024))


def minimum_memory(load: Load) -> int:
    """The lowest memory limit, in KiB, that admission accepts.

    It is lower than `memory_for` the default size: only one thread has all of its requests in flight.
    """
    less = (load.threads - 1) * REQUESTS_PER_THREAD * REQUEST_MEMORY
    return memory_for(load, DEFAULT_ITEM_SIZE) - less


def buffers(load: Load, limit: Decimal) -> int:
    """The values in flight, in KiB, that a memory limit in bytes leaves space for.

    At least those for which `minimum_memory` has space: a stored object can have a lower limit.
    """
    factor, divisor = BUFFER_OVERHEAD
    least = load.threads * MIN_ITEMS_PER_THREAD * DEFAULT_ITEM_SIZE // 1024
    available = (limit / 1024 - _without_buffers(load)) * divisor / factor
    return max(least, int(min(available, Decimal(MAX_BUFFERS))))


def mebibytes(kibibytes: int) -> str:
    """An amount as a quantity in whole mebibytes, rounded up."""
    return f"{-(-kibibytes // 1024)}Mi"


def _share(item_size: int) -> int:
    """The default of KiB of values in flight for each thread. `item_size`: `maxItemSize` in bytes."""
    return max(THREAD_BUFFERS, ITEMS_PER_THREAD * item_size // 1024)


def _with_buffers(load: Load, kibibytes: int) -> int:
    factor, divisor = BUFFER_OVERHEAD
    return _without_buffers(load) + -(-kibibytes * factor // divisor)


def _without_buffers(load: Load) -> int:
    """The memory besides values in flight, in KiB."""
    fixed, each = (TLS_MEMORY, TLS_CONNECTION_MEMORY) if load.tls else (0, CONNECTION_MEMORY)
    thread = THREAD_MEMORY + REQUESTS_PER_THREAD * REQUEST_MEMORY
    return PROCESS_MEMORY + fixed + thread * load.threads + each * load.connections
