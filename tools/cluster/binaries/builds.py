"""Builds program families into the cache, with progress, and links their programs into one directory."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cluster.binaries.families import Family
from cluster.binaries.toolchain import GO_ENV, ensure_go
from cluster.console.progress import Progress
from cluster.locks import waiting_for
from cluster.paths import cache_dir
from cluster.shell import run

Families = list[tuple[Family, tuple[str, ...]]]
BUILD_ENV: Final = {**GO_ENV, "GOGC": "300"}
"""Compilers that collect garbage less often: 8 % of a build's processor time."""


def directory(family: Family) -> Path:
    """The cache directory of a family's programs."""
    return cache_dir() / "programs" / f"{family.name}-{family.key()}"


def missing(family: Family, programs: Sequence[str]) -> list[str]:
    """The programs that are not built yet."""
    return [name for name in programs if not (directory(family) / name).exists()]


def build(go: Path, family: Family, programs: Sequence[str]) -> None:
    """Build programs of one family. Each appears in the cache complete or not at all.

    Raises ClusterError with the compiler's last lines.
    """
    target = directory(family)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".building-") as scratch:
        packages = [family.programs[name] for name in programs]
        output = f"{scratch}/{programs[0] if len(programs) == 1 else ''}"
        run([go, "build", *family.flags, "-o", output, *packages], env=BUILD_ENV, cwd=family.module)
        for name in programs:
            (Path(scratch) / name).replace(target / name)


def link_programs(families: Families) -> Path:
    """Return a directory of links to the programs; the same directory while their keys do not change."""
    key = hashlib.sha256("".join(directory(family).name for family, _ in families).encode()).hexdigest()[:12]
    folder = cache_dir() / "bin" / key
    folder.mkdir(parents=True, exist_ok=True)
    for family, programs in families:
        for name in programs:
            link(folder / name, directory(family) / name)
    return folder


def link(place: Path, target: Path) -> None:
    """Make `place` a symbolic link to `target`, atomically."""
    if place.is_symlink() and place.readlink() == target:
        return
    scratch = place.with_name(f".{place.name}-{os.getpid()}")
    scratch.symlink_to(target)
    scratch.replace(place)


def clear_partial(family: Family) -> None:
    """Remove the temporary files of an interrupted build."""
    for leftover in directory(family).glob(".building-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def build_programs(families: Families, progress: Progress | None = None) -> Path:
    """Build missing programs; return the directory of links. Without `progress`, silent if nothing is missing."""
    if progress is None and not any(missing(family, names) for family, names in families):
        return link_programs(families)
    shown = progress or Progress(len(families))
    for family, names in families:
        with shown.step(f"build {family.title}") as notes:
            notes.append("built" if ensure_built(family, names) else "cached")
    return link_programs(families)


def ensure_built(family: Family, names: Sequence[str]) -> bool:
    """Build a family's missing programs, after any build of another process; returns whether programs were missing."""
    if not missing(family, names):
        return False
    go = ensure_go()
    with waiting_for(f"build-{family.name}"):
        clear_partial(family)
        if absent := missing(family, names):
            build(go, family, absent)
    return True
