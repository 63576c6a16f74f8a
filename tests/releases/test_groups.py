"""The product with other API groups: generated, and tested as far as no cluster is needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.shell import run
from release.commit.tree import Tree

GROUP, APP_GROUP = "cache.acme.io", "web.acme.io"
DOTTED = ("cache.example.com", "app.example.com", "memcached-operator.example.com")
BEFORE = (*DOTTED, "cache-example-com", "app-example-com")
SUITES = ("tests/unit/api", "tests/unit/config", "tests/unit/bundle", "tests/unit/crds", "tests/unit/memcached",
          "tests/unit/memcachedproxy",
          "tests/unit/appservice", "tests/unit/webhooks", "tests/unit/agent", "tests/unit/test_goldens.py")  # fmt: skip
"""The unit tests of what names a group."""


@pytest.fixture(scope="module")
def tree(repository: Tree, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The tree with other groups."""
    target = tmp_path_factory.mktemp("group") / "tree"
    options = [f"--group={GROUP}", f"--app-group={APP_GROUP}", f"--output={target}"]
    repository.run("-m", "release", "group", *options)
    return Tree(target, repository.python)


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Each text file with its path."""
    for path in root.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path.read_text(errors="replace")


def test_no_file_names_the_old_groups(tree: Tree) -> None:
    found = {path for path, text in texts(tree.root) for name in BEFORE if name in path or name in text}
    assert found - {"tests/releases/test_groups.py"} == set()


def test_crds_and_catalog_have_the_new_groups(tree: Tree) -> None:
    crds = [yaml.safe_load(path.read_text()) for path in sorted((tree.root / "config/crd/bases").glob("*.yaml"))]
    assert {each["metadata"]["name"] for each in crds} == {
        f"memcacheds.{GROUP}",
        f"memcachedproxies.{GROUP}",
        f"appservices.{APP_GROUP}",
    }
    catalog = list(yaml.safe_load_all((tree.root / "catalog/memcached-operator/catalog.yaml").read_text()))
    kinds = {
        item["value"]["group"] for entry in catalog for item in entry.get("properties", []) if item["type"] == "olm.gvk"
    }
    assert kinds == {GROUP, APP_GROUP}


def test_unit_tests_pass(tree: Tree) -> None:
    run(["git", "init", "--quiet"], cwd=tree.root)
    tree.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *SUITES)
