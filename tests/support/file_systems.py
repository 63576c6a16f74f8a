"""File systems in images, which a test can freeze and let fail."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cluster.public.programs import find, install
from support import programs


def create_image(path: Path, size: int) -> None:
    """Create an image of `size` bytes, for an ext4 file system."""
    install([] if find("mkfs.ext4") else ["e2fsprogs"])
    with path.open("wb") as file:
        file.truncate(size)


@contextmanager
def device(image: Path, size: int) -> Generator[Path]:
    """A block device of `size` bytes in a new image during the block."""
    create_image(image, size)
    found = Path(programs.output(["losetup", "--find", "--show", image]).strip())
    try:
        yield found
    finally:
        programs.output(["losetup", "--detach", found])


@contextmanager
def mounted(image: Path, directory: Path, size: int, user: int) -> Generator[None]:
    """An ext4 file system in a new image, mounted at a directory, which belongs to a user, during the block.

    Without blocks for root, as drivers of volumes make it. After an error, the kernel makes it read-only.
    """
    create_image(image, size)
    programs.output(["mkfs.ext4", "-q", "-m0", image])
    programs.output(["mount", "-o", "loop,errors=remount-ro", image, directory])
    try:
        os.chown(directory, user, user)
        yield
    finally:
        programs.output(["umount", directory])


@contextmanager
def frozen(directory: Path) -> Generator[None]:
    """Let each write to the file system that is mounted at a directory wait during the block."""
    programs.output(["fsfreeze", "--freeze", directory])
    try:
        yield
    finally:
        programs.output(["fsfreeze", "--unfreeze", directory])


def device_of(directory: Path) -> Path:
    """The device of the file system that is mounted at a directory, in /sys."""
    number = directory.stat().st_dev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def fail(found: Path) -> None:
    """Let the kernel report an error of the ext4 file system of a device. It has a switch for tests of programs."""
    Path(f"/sys/fs/ext4/{found.name}/trigger_fs_error").write_text("a test\n")
