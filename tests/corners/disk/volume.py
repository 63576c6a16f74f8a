"""The volume of extstore of confined servers."""

import os
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from corners.server import USER, copy_root
from memcached_operator.memcached.desired.extstore import FILE, PATH
from support import file_systems

IMAGE: Final = "image"


@dataclass(frozen=True)
class Volume:
    """A mounted file system. `path`: as this process sees it."""

    path: Path

    def frozen(self) -> AbstractContextManager[None]:
        """Let every write to the disk wait during the block."""
        return file_systems.frozen(self.path)


def own_file(command: Sequence[str], number: int) -> list[str]:
    """A command with another file in the volume: memcached locks its file, so servers cannot share one."""
    return [word.replace(f"{FILE}:", f"{FILE}-{number}:") for word in command]


@contextmanager
def directory(root: Path) -> Generator[Path]:
    """A copy of a server's root directory with an empty directory for files of extstore, for several servers."""
    with TemporaryDirectory(prefix="corners-") as name:
        copy = Path(name)
        copy.chmod(0o755)
        copy_root(root, copy)
        target = copy / PATH.lstrip("/")
        target.mkdir()
        os.chown(target, USER, USER)
        yield copy


@contextmanager
def prepared(root: Path, size: int) -> Generator[tuple[Path, Volume]]:
    """A copy of a server's root directory with a file system of so many bytes, which can be frozen."""
    with directory(root) as copy:
        target = copy / PATH.lstrip("/")
        with file_systems.mounted(copy / IMAGE, target, size, USER):
            yield copy, Volume(target)
