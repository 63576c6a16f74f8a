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
    """Hold a lock; waits for whoever has it, and says so."""
    with opened(name) as file:
        if not taken(file):
            print(f"waiting for another process that is at work on the same ({name})", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def at_once(name: str) -> Generator[None, None, None]:
    """Hold a lock; raises ClusterError where somebody else has it."""
    with opened(name) as file:
        if not taken(file):
            raise ClusterError(f"another process is at work on the same ({name}): wait for it, or end it")
        yield


def opened(name: str) -> IO[str]:
    """The file that stands for a lock."""
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
