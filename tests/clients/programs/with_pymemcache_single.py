"""A client with pymemcache for one address, such as that of a MemcachedProxy."""

# The library is installed only where `make test-clients` runs this program.
# pyright: reportMissingImports=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import os

from commands import Many, serve
from pymemcache.client.base import PooledClient

client = PooledClient(
    os.environ["MEMCACHED_SERVERS"],
    connect_timeout=0.5,
    timeout=1,  # more than the time-out of the proxy: it answers for a server that does not
    default_noreply=False,
)


def read(key: str) -> str:
    """The value of a key."""
    value = client.get(key)
    return value.decode() if value else ""


many = Many(
    lambda items: len(items) - len(client.set_many(items)),  # it returns the keys that failed
    lambda keys: {key: value.decode() for key, value in client.get_many(keys).items()},
    lambda keys: len(keys) if client.delete_many(keys) else 0,
)

serve("pymemcache", lambda key: client.set(key, key), read, many)
