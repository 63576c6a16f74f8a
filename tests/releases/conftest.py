"""A small repository with this tree's files, a release that is built from it, and where it is published."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.shell import run
from release.commit.tree import Tree
from release.output.artifacts import Artifacts
from support.installed import ROOT
from support.registries import open_registry

VERSION = "7.8.9"
DATE = "2030-01-02"


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A repository whose only commit is this tree with its uncommitted changes, without tags and without .venv."""
    root = tmp_path_factory.mktemp("repository")
    names = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes((ROOT / name).read_bytes())
            (root / name).chmod((ROOT / name).stat().st_mode)
    run(["git", "init", "--quiet"], cwd=root)
    run(["git", "config", "user.name", "test"], cwd=root)
    run(["git", "config", "user.email", "test@example.com"], cwd=root)
    run(["git", "add", "--all"], cwd=root)
    run(["git", "commit", "--quiet", "--message=Tree"], cwd=root)
    return Tree(root, Path(sys.executable))


@pytest.fixture(scope="session")
def release(repository: Tree, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """A release of the repository, as a dry run writes it, with every layer built again."""
    target = tmp_path_factory.mktemp("first")
    options = [f"--version={VERSION}", f"--date={DATE}", f"--output={target}", "--fresh"]
    repository.run("-m", "release", "make", *options)
    return Artifacts(target / "artifacts")


@pytest.fixture(scope="session")
def programs(repository: Tree) -> Path:
    """The directory of crane and cosign."""
    return Path(repository.run("-m", "release", "programs").strip())


@pytest.fixture
def registry(programs: Path, tmp_path: Path) -> Iterator[str]:
    """The address of an empty registry."""
    with open_registry(programs / "crane", tmp_path / "registry") as address:
        yield address


@pytest.fixture
def keys(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with cosign.key and cosign.pub, without password."""
    monkeypatch.setenv("COSIGN_PASSWORD", "")
    folder = tmp_path / "keys"
    folder.mkdir()
    run([programs / "cosign", "generate-key-pair"], cwd=folder)
    return folder
