"""The digest of the product's sources: results are published together only if they have the same one.

Pages say of their figures whether it is that of the tree.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from faults.process import ROOT, ROOTS

CONFIG = ("certificates", "crd", "rbac", "webhook")
"""The directories of config/ that the fault tests use."""
RELEASED = re.compile(rb'^(DEFAULT_AGENT_IMAGE: Final = )".+"$', re.MULTILINE)
"""The line that each release changes (tools/release/commit/places.py). It does not change the figures."""
AS_MEASURED = rb'\1"localhost/memcached-operator/memcached-operator-agent:0.1.0"'
LENGTH = 12
"""Characters of a digest."""


def digest(sources: Path = ROOT, config: Path = ROOT / "config") -> str:
    """The digest of the paths and contents of the product's files, without those of tests, tools and documents.

    `sources`: a directory with copies of ROOTS. `config`: the fault tests read the manifests of the tree itself.
    """
    found = sha256()
    for base, path in [*_files(sources, ROOTS), *_files(config, CONFIG)]:
        content = RELEASED.sub(AS_MEASURED, path.read_bytes())
        found.update(f"{path.relative_to(base)} {len(content)}\n".encode() + content)
    return found.hexdigest()[:LENGTH]


def measured(sources: str, date: str, figures: str = "The figures") -> str:
    """A sentence: when figures were measured, and whether with the present sources."""
    version = "the present" if sources == digest() else "an earlier version of the"
    return f"{figures} were measured on {date} with {version} sources (digest `{sources}`)."


def _files(base: Path, names: tuple[str, ...]) -> Iterator[tuple[Path, Path]]:
    """The files of these directories in a fixed order, each with the base; compiled ones depend on the machine."""
    for path in sorted(path for name in names for path in (base / name).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield base, path
