"""Locks between processes: files in the cache, released by the kernel when their holder ends."""

import fcntl
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from cluster.errors import ClusterError
from cluster.paths import cache_dir


@contextmanager
def waiting_for(name: str) -> Generator[None, None, None]:
    """Hold a lock; waits for whoever has it."""
    yield from hold(name, fcntl.LOCK_EX)


@contextmanager
def at_once(name: str) -> Generator[None, None, None]:
    """Hold a lock; raises ClusterError where somebody else has it."""
    yield from hold(name, fcntl.LOCK_EX | fcntl.LOCK_NB)


def hold(name: str, how: int) -> Iterator[None]:
    """Take a lock of this name, give it back at the end."""
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as file:
        try:
            fcntl.flock(file, how)
        except BlockingIOError as error:
            raise ClusterError(f"another `up` or `down` is at work ({name}): wait for it") from error
        yield
