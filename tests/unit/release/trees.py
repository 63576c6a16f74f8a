"""The files of this tree that a release reads."""

from pathlib import Path

from release.commit.changelog import UNRELEASED
from release.commit.plan import CHANGELOG, FILES
from release.commit.tree import Tree
from unit.config.rendered import ROOT


def files() -> dict[str, str]:
    """The texts, by path. Something is unreleased, even right after a release."""
    texts = Tree(ROOT, Path("python3")).read(set(FILES))
    return {**texts, CHANGELOG: texts[CHANGELOG].replace(UNRELEASED, f"{UNRELEASED}\n\n- A change.\n", 1)}
