"""Memory limits for processes of tests, as a container has them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
MIB = 2**20


@contextmanager
def memory_cgroup(name: str, limit: int) -> Generator[Path]:
    """A group whose processes may use `limit` MiB; yields its file for their ids. Raises OSError without root."""
    is_v2 = (V2 / "cgroup.controllers").exists()
    group = (V2 if is_v2 else V1) / name
    group.mkdir()
    try:
        (group / ("memory.max" if is_v2 else "memory.limit_in_bytes")).write_text(str(limit * MIB))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()
