"""The settings of memcached's proxy that a spec may set, with their limits and defaults."""

import re
from decimal import Decimal
from typing import Final

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
MAX_CONNECTIONS: Final = 65536
CONNECTIONS_PER_THREAD: Final = 5  # file descriptors that memcached subtracts from `-c`
INTERNAL_CONNECTIONS: Final = 10

DEFAULT_TIMEOUT: Final = "500ms"
MIN_TIMEOUT_TEXT, MAX_TIMEOUT_TEXT = "10ms", "60s"
TIMEOUT: Final = "^(([1-9][0-9]{1,3}|[1-5][0-9]{4}|60000)ms|([1-9]|[1-5][0-9]|60)s)$"
"""From 10 ms to 60 s."""

REQUEST_CPU: Final = "100m"
"""Default CPU request of each container."""
BUFFERS: Final = 16384
"""KiB of requests and responses that memcached buffers at most."""
PROCESS_MEMORY: Final = 16384
"""KiB of a proxy without clients, with a margin: 7 MiB were measured."""
CONNECTION_MEMORY: Final = 8
"""KiB of one connection, with a margin: 0.6 KiB of an idle one were measured."""
TLS_CONNECTION_MEMORY: Final = 88
"""KiB of one connection with TLS, as of a Memcached (docs/sizing.md)."""
TLS_MEMORY: Final = 6144
"""KiB of TLS besides the connections, as of a Memcached."""


def lowest_connections(threads: int) -> int:
    """The lowest `-c` with which memcached serves clients."""
    return CONNECTIONS_PER_THREAD * threads + INTERNAL_CONNECTIONS


def seconds(timeout: str) -> Decimal:
    """A timeout in seconds. Raises ValueError if it does not match TIMEOUT."""
    match = re.fullmatch(r"([0-9]{1,5})(ms|s)", timeout, re.ASCII)
    if match is None:
        raise ValueError(f"{timeout!r}: not a timeout")
    return Decimal(match[1]) / (1000 if match[2] == "ms" else 1)


def memory(connections: int, *, tls: bool) -> str:
    """The default memory request and limit, as a quantity in whole mebibytes."""
    fixed, each = (TLS_MEMORY, TLS_CONNECTION_MEMORY) if tls else (0, CONNECTION_MEMORY)
    kibibytes = PROCESS_MEMORY + BUFFERS + fixed + each * connections
    return f"{-(-kibibytes // 1024)}Mi"
