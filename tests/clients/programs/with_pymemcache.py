"""A client with pymemcache."""

# The library is installed only where `make test-clients` runs this program.
# pyright: reportMissingImports=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import importlib
import os

from commands import Many, serve
from pymemcache.client.hash import HashClient

if os.environ.get("MEMCACHED_TLS") == "true":
    importlib.import_module("pymemcache_tls")

client = HashClient(
    os.environ["MEMCACHED_SERVERS"].split(","),
    connect_timeout=0.5,
    timeout=0.5,
    ignore_exc=True,  # a failed request is a miss
    retry_attempts=10**9,  # a failed slot keeps its keys
    retry_timeout=1,  # seconds without requests to a failed slot: they are misses
    use_pooling=True,  # for several threads
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
