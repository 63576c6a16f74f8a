"""The files of this tree that a release reads."""

from pathlib import Path

from release.commit.plan import FILES
from release.commit.tree import Tree
from unit.config.rendered import ROOT


def files() -> dict[str, str]:
    """The texts, by path."""
    return Tree(ROOT, Path("python3")).read(set(FILES))
