"""The digest depends on every file of the product, and on nothing else."""

import re
import shutil
from pathlib import Path

import pytest

from faults.campaigns.mutants import copy_sources
from faults.process import ROOT
from faults.sources import CONFIG, digest
from memcached_api.images import DEFAULT_AGENT_IMAGE, DEFAULT_IMAGE

READERS = [*(ROOT / "tests/faults").rglob("*.py"), ROOT / "tests/integration/control_plane.py"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources, and of config/."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    return copy_sources(tmp_path)


def test_copy_has_the_digest_of_the_tree(tree: Path) -> None:
    assert digest(tree, tree / "config") == digest(tree) == digest()
    assert re.fullmatch("[0-9a-f]{12}", digest())


@pytest.mark.parametrize(
    "path",
    [
        "api/memcached_api/kinds.py",
        "operator/memcached_process/new.py",
        "webhooks/memcached_webhooks/py.typed",
        "config/rbac/role.yaml",
    ],
)
def test_change_of_the_product_changes_the_digest(path: str, tree: Path) -> None:
    before = digest(tree, tree / "config")
    with (tree / path).open("a") as file:
        file.write("# changed\n")
    assert digest(tree, tree / "config") != before


@pytest.mark.parametrize("path", ["api/memcached_api/__pycache__/kinds.pyc", "config/samples/new.yaml", "tests/new.py"])
def test_other_files_do_not_change_the_digest(path: str, tree: Path) -> None:
    before = digest(tree, tree / "config")
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text("changed\n")
    assert digest(tree, tree / "config") == before


def test_image_that_a_release_writes_does_not_change_the_digest(tree: Path) -> None:
    """Otherwise, the pages of every release would say that its figures are those of an earlier version."""
    before, file = digest(tree, tree / "config"), tree / "api/memcached_api/images.py"
    file.write_text(file.read_text().replace(DEFAULT_AGENT_IMAGE, "registry.example.com/agent:9.9.9"))
    assert digest(tree, tree / "config") == before
    file.write_text(file.read_text().replace(DEFAULT_IMAGE, "registry.example.com/memcached:9.9.9"))
    assert digest(tree, tree / "config") != before


def test_digest_covers_every_manifest_that_the_fault_tests_read() -> None:
    read = {name for path in READERS for name in re.findall(r'ROOT / f?"config/(\w+)', path.read_text())}
    assert read == set(CONFIG)
