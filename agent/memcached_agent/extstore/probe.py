"""Writes, reads and removes a file on a volume. The calls block, for as long as the disk hangs."""

import errno
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from memcached_agent.extstore.decision import Result

NAME: Final = ".probe"
ITEMS: Final = "items"
"""The file of memcached's option `ext_path`."""
SIZE: Final = 4096
"""Bytes of a probe: a block of most file systems."""
BLOCK: Final = 512
"""Bytes of the unit in which stat(2) counts."""
RESULTS: Final[Mapping[int | None, Result]] = {
    **dict.fromkeys((errno.EROFS, errno.EIO, errno.EUCLEAN), "broken"),
    **dict.fromkeys((errno.EPERM, errno.EACCES), "denied"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "full"),
    errno.ENOMEM: "failed",
}
"""The result by the error. Any other error of a file that is open is one of the disk: a sync passes on the errors of
devices, of paths to them and of servers."""


class Probe(NamedTuple):
    """A probe that has ended. `reason`: why it has not worked. `seconds`: its duration.

    `free`: bytes of the volume that memcached can still use. `used`: bytes of the volume that memcached's file uses;
    None: not known.
    """

    result: Result
    reason: str
    seconds: float
    free: int | None
    used: int | None


def probe(directory: str) -> Probe:
    """Probe the volume that is mounted at a directory."""
    began = time.monotonic()
    result, reason = _attempt(f"{directory}/{NAME}")
    seconds = time.monotonic() - began
    return Probe(result, reason, seconds, _free(directory), _used(f"{directory}/{ITEMS}"))


def _attempt(path: str) -> tuple[Result, str]:
    """The result, and why it is not `works`."""
    content = os.urandom(SIZE)
    try:
        file = _opened(path)
    except OSError as error:
        return RESULTS.get(error.errno, "failed"), os.strerror(error.errno or 0)
    try:
        same = _exchange(file, path, content) == content
    except OSError as error:
        return RESULTS.get(error.errno, "broken"), os.strerror(error.errno or 0)
    return ("works", "") if same else ("broken", "Other bytes were read than written")


def _opened(path: str) -> int:
    """A new file; one that an ended agent left is removed first. Raises OSError.

    Links are not followed: what they name is not the agent's.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - pathlib needs 0.6 MiB
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _exchange(file: int, path: str, content: bytes) -> bytes:
    """Write to a file and sync it; returns what is read from it. Closes and removes it. Raises OSError."""
    try:
        if os.write(file, content) != len(content):
            raise OSError(errno.ENOSPC, "")
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # the kernel must read the disk
        return os.pread(file, SIZE, 0)
    finally:
        os.close(file)
        os.unlink(path)  # noqa: PTH108 - as above


def _free(directory: str) -> int | None:
    try:
        volume = os.statvfs(directory)
    except OSError:
        return None
    return volume.f_bavail * volume.f_frsize


def _used(path: str) -> int | None:
    try:
        return os.stat(path, follow_symlinks=False).st_blocks * BLOCK  # noqa: PTH116 - as above
    except OSError:
        return None
