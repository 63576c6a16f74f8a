"""All programs of a mode: built family by family, with progress."""

from collections.abc import Sequence
from pathlib import Path

from cluster.binaries import builds
from cluster.binaries.families import Family
from cluster.binaries.toolchain import ensure_go
from cluster.console.progress import Progress
from cluster.locks import waiting_for

Families = list[tuple[Family, tuple[str, ...]]]


def build_programs(families: Families, progress: Progress | None = None) -> Path:
    """Build missing programs; return the directory of links. Without `progress`, silent if nothing is missing."""
    if progress is None and not any(builds.missing(family, names) for family, names in families):
        return builds.link_programs(families)
    shown = progress or Progress(len(families))
    for family, names in families:
        with shown.step(f"build {family.title}") as notes:
            notes.append("built" if ensure_built(family, names) else "cached")
    return builds.link_programs(families)


def ensure_built(family: Family, names: Sequence[str]) -> bool:
    """Build a family's missing programs, after any build of another process; returns whether programs were missing."""
    if not builds.missing(family, names):
        return False
    go = ensure_go()
    with waiting_for(f"build-{family.name}"):
        builds.clear_partial(family)
        if missing := builds.missing(family, names):
            builds.build(go, family, missing)
    return True
