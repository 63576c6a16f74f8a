"""The version of the installed distribution."""

import os
import sys
from contextlib import suppress

PREFIX = "memcached_operator-"
SUFFIX = ".dist-info"


def version() -> str:
    """The version of the distribution memcached-operator, or `unknown` if it is not installed.

    The name of its directory contains it. `importlib.metadata` reads the same directory, but needs 3 MiB of memory.
    """
    for folder in sys.path:
        with suppress(OSError):  # not a directory
            for name in os.listdir(folder or "."):  # noqa: PTH208 - pathlib needs 0.6 MiB
                if name.startswith(PREFIX) and name.endswith(SUFFIX):
                    return name[len(PREFIX) : -len(SUFFIX)]
    return "unknown"
