"""Images for tests only: the memcached stand-in with another program as `memcached`."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cluster.public.images import LOCAL, PATH, Image, layer, load, pack_files, rootfs_file, tool_with, write_archive
from cluster.public.lifecycle import running
from cluster.public.releases import PROGRAM, ensure
from support import programs

TOOLS = Path(__file__).parents[2] / "tools"


def load_program(name: str, program: str | bytes) -> str:
    """Load an image whose `memcached` is a shell script or a binary into the local cluster; return its full name."""
    image = Image((f"{LOCAL}/{name}:test",), {"Env": [PATH]})
    content = program if isinstance(program, bytes) else f"#!/bin/sh\n{program}\n".encode()
    with _archive(image, content) as archive:
        programs.output(
            [sys.executable, "-m", "cluster", "load", str(archive)], env={**os.environ, "PYTHONPATH": str(TOOLS)}
        )
    return image.names[0]


def load_release(version: str) -> str:
    """Load an image with this release of memcached, and the libraries of the stand-in; return its full name."""
    return load_program(f"memcached-{version}", (ensure(version) / PROGRAM.removeprefix("/")).read_bytes())


def load_copy(image: str) -> str:
    """Load a local image with another name into the local cluster; return that name."""
    other = f"{image}-other"
    programs.output(tool_with(image).command("tag", image, other))
    load(*running(), other)
    return other


@contextmanager
def _archive(image: Image, program: bytes) -> Generator[Path]:
    with TemporaryDirectory(dir=rootfs_file().parent) as scratch:
        files = {"usr/local/bin/memcached": program}
        archive = Path(scratch) / "image.tar"
        write_archive(archive, [(image, [layer(rootfs_file()), pack_files(Path(scratch) / "files.tar", files)])])
        yield archive
