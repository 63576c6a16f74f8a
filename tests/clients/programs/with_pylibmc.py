"""A client with pylibmc."""

# The library is installed only where `make test-clients` runs this program.
# pyright: reportMissingImports=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import os

import pylibmc
from commands import Many, serve

client = pylibmc.Client(
    os.environ["MEMCACHED_SERVERS"].split(","),
    behaviors={
        "ketama": True,
        "tcp_nodelay": True,
        "connect_timeout": 500,  # ms
        "_poll_timeout": 500,  # ms
        "send_timeout": 500_000,  # µs
        "receive_timeout": 500_000,  # µs
        "retry_timeout": 1,  # seconds without requests to a failed slot: they raise pylibmc.Error
    },
)

many = Many(
    lambda items: len(items) - len(client.set_multi(items)),  # it returns the keys that failed
    client.get_multi,
    lambda keys: len(keys) if client.delete_multi(keys) else 0,
)

serve("pylibmc", lambda key: client.set(key, key), client.get, many)
