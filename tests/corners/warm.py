"""Memory tests with `spec.cache.warmRestart`: the items are in a file in memory, which counts towards the container."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cluster.shell import run
from corners.server import copy_root

ITEMS: Final = "/cache/items"
"""The file with the items, below the root directory of a server."""
RESERVE: Final = 16 * 2**20
"""Bytes of the file system beyond the cache, as in a pod: for the file that describes the items."""


@contextmanager
def prepared(root: Path, cache: int) -> Generator[Path]:
    """A copy of a server's root directory with a file system in memory for a cache of so many bytes."""
    with TemporaryDirectory(prefix="corners-") as directory:
        copy = Path(directory)
        copy.chmod(0o755)
        copy_root(root, copy)
        mounted = copy / ITEMS.lstrip("/").partition("/")[0]
        mounted.mkdir()
        run(["mount", "-t", "tmpfs", "-o", f"size={cache + RESERVE},mode=0777", "tmpfs", mounted])
        try:
            yield copy
        finally:
            run(["umount", mounted])
