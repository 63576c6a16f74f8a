"""A client with pymemcache whose keys have the type bytes."""

# The library is installed only where `make test-clients` runs this program.
# pyright: reportMissingImports=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

import os

from commands import serve
from pymemcache.client.hash import HashClient

client = HashClient(os.environ["MEMCACHED_SERVERS"].split(","), connect_timeout=0.5, timeout=0.5, default_noreply=False)

serve("bytes", lambda key: client.set(key.encode(), key), lambda key: (client.get(key.encode()) or b"").decode())
