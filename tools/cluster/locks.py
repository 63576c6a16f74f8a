"""Locks between processes: files in the cache, released by the kernel when their holder ends."""

import fcntl
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

from cluster.errors import ClusterError
from cluster.paths import cache_dir


@contextmanager
def waiting_for(name: str) -> Generator[None, None, None]:
    """Hold a lock; waits for its holder, with a message."""
    with opened(name) as file:
        if not taken(file):
            print(f"waiting for another process that holds the lock {name}", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def at_once(name: str) -> Generator[None, None, None]:
    """Hold a lock; raises ClusterError if another process holds it."""
    with opened(name) as file:
        if not taken(file):
            raise ClusterError(f"another process holds the lock {name}: wait for it, or end it")
        yield


def opened(name: str) -> IO[str]:
    """The file of a lock."""
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / name).open("w")


def taken(file: IO[str]) -> bool:
    """Take the lock if it is free."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
