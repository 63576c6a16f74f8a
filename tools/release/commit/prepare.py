"""The commit of a release: its changes, made and generated in a copy of the tree."""

import tempfile
from pathlib import Path
from typing import Final

from cluster.shell import succeeds
from release.commit import groups
from release.commit import plan as plans
from release.commit.groups import Groups
from release.commit.plan import FILES, Plan
from release.commit.repository import Repository
from release.commit.tree import Tree, copied

TARGETS: Final = {
    "manifests": "config",
    "generate": "docs",
    "bundle": "config",
    "catalog": "config",
    "build-installer": "config",
    "chart": "charts",
}
"""What `make` generates from the version and the images: target and the directory without which there is none."""
CATALOG: Final = "catalog/memcached-operator/catalog.yaml"
PATCH: Final = "release.patch"
NOTES: Final = "notes.md"


def prepare(repository: Repository, plan: Plan, target: Path, python: Path) -> Tree:
    """Write the tree of the release into `target`/source, and its difference to the last commit beside it.

    Raises ReleaseError, and ClusterError if a generator fails or a check finds something.
    """
    tree = copied(repository.root, target / "source", python)
    tree.write(plans.changes(tree.read(set(FILES)), plan))
    if plan.groups:
        change_groups(tree, plan.groups)
    tree.make(*targets(tree.root), f"BUNDLE_IMG={plan.bundle_image}")
    tree.run("-m", "goldens")  # those of today name the default image of the agent
    tree.make("generated", f"BUNDLE_IMG={plan.bundle_image}")
    _check_compatible(repository, tree, plan)
    (target / PATCH).write_text(repository.diff(tree.root))
    (target / NOTES).write_text(plans.changelog.notes(tree.read({plans.CHANGELOG})[plans.CHANGELOG], plan.version))
    return tree


def targets(root: Path) -> list[str]:
    """The targets that generate files in this tree."""
    return [target for target, folder in TARGETS.items() if (root / folder).exists()]


def change_groups(tree: Tree, chosen: Groups) -> None:
    """Change the API groups of a tree, without the generated files. Raises ReleaseError, and ClusterError.

    Its catalog is empty then: no release of other groups upgrades to it.
    """
    groups.regroup(tree.root, groups.current(tree.read(set(FILES))), chosen)
    (tree.root / CATALOG).unlink(missing_ok=True)
    for words in (("goldens",), ("goldens", "digests")):
        tree.run("-m", *words)


def _check_compatible(repository: Repository, tree: Tree, plan: Plan) -> None:
    """Check the CustomResourceDefinitions against those of the replaced release, if its tag is here."""
    replaced = plans.tables(tree.read(set(FILES)))[plan.version].get("replaces", "").partition(".")[2]
    if not replaced or not succeeds(
        ["git", "-C", repository.root, "rev-parse", "--verify", "--quiet", f"{replaced}^{{commit}}"]
    ):
        print(f"not compared with {replaced or 'an earlier release'}: this repository has no such tag", flush=True)
        return
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        before = copied(repository.root, Path(folder) / "before", tree.python, replaced)
        tree.make("bundle-check", f"PREVIOUS={before.root}")
