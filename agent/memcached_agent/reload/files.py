"""Read the files of a mounted Secret."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from memcached_agent.errors import InvalidError

MAX_SIZE: Final = 2**18
"""Bytes of a file. A bundle of all public certificate authorities has 230 KB; a Secret has at most 1 MiB."""
CURRENT: Final = "..data"
"""The symbolic link in a mounted volume that the kubelet replaces to change all files at once."""
ATTEMPTS: Final = 3


class File(NamedTuple):
    """A file. `content` is None if it does not exist."""

    path: str
    content: bytes | None

    def __repr__(self) -> str:
        return f"File({self.path!r})"  # neither in the log nor in a traceback


class TlsFiles(NamedTuple):
    """The files in a directory of certificates: those of a Secret of the type kubernetes.io/tls, and clients' CAs."""

    certificate: File
    key: File
    ca: File
    client_ca: File


def read_tls(directory: str) -> TlsFiles:
    """The files of one state of the directory. Raises InvalidError if a file cannot be read or is too large."""

    def all_files() -> TlsFiles:
        names = ("tls.crt", "tls.key", "ca.crt", "client-ca.crt")
        return TlsFiles(*(read(f"{directory}/{name}") for name in names))

    return _consistent(directory, all_files)


def read(path: str) -> File:
    """A file. Raises InvalidError if it cannot be read or is too large."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib needs 0.6 MiB
            content = file.read(MAX_SIZE + 1)
    except FileNotFoundError:
        return File(path, None)
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_SIZE:
        raise InvalidError(f"{path} is larger than {MAX_SIZE} bytes; use a smaller file")
    return File(path, content)


def _consistent(directory: str, work: Callable[[], TlsFiles]) -> TlsFiles:
    """The result of `work`, repeated if the kubelet replaces the files meanwhile."""
    for _ in range(ATTEMPTS - 1):
        before = _current(directory)
        content = work()
        if _current(directory) == before:
            return content
    return work()


def _current(directory: str) -> str:
    """The version of the mounted volume; empty if the directory is not one."""
    with suppress(OSError):
        return os.readlink(f"{directory}/{CURRENT}")  # noqa: PTH115 - as above
    return ""
