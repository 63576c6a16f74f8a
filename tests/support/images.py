"""Images for tests only: the memcached stand-in with another program as `memcached`."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cluster.images.archive import layer, pack_files, write_archive
from cluster.images.recipes import LOCAL, PATH, Image
from cluster.images.rootfs import rootfs_file

TOOLS = Path(__file__).parents[2] / "tools"


def load_program(name: str, program: str) -> str:
    """Load an image whose `memcached` is a shell script into the local cluster; return its full name."""
    image = Image((f"{LOCAL}/{name}:test",), {"Env": [PATH]})
    with _archive(image, program) as archive:
        subprocess.run(
            [sys.executable, "-m", "cluster", "load", str(archive)],
            env={**os.environ, "PYTHONPATH": str(TOOLS)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return image.names[0]


@contextmanager
def _archive(image: Image, program: str) -> Generator[Path]:
    with TemporaryDirectory(dir=rootfs_file().parent) as scratch:
        files = {"usr/local/bin/memcached": f"#!/bin/sh\n{program}\n".encode()}
        archive = Path(scratch) / "image.tar"
        write_archive(archive, [(image, [layer(rootfs_file()), pack_files(Path(scratch) / "files.tar", files)])])
        yield archive
