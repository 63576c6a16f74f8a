"""The repository of a release: refusals, and the commit with its tag."""

from pathlib import Path

import pytest

from cluster.shell import run
from release.commit.repository import Repository
from release.commit.tree import copied
from release.errors import ReleaseError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "test")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "test@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    root = tmp_path / "repository"
    root.mkdir()
    made = Repository(root)
    run(["git", "init", "--quiet", root])
    (root / "version").write_text("0.1.0\n")
    (root / ".gitignore").write_text("ignored\n")
    made.git("add", ".")
    made.git("commit", "--quiet", "--message=First")
    return made


def test_uncommitted_changes_are_an_error(repository: Repository) -> None:
    (repository.root / "ignored").write_text("")
    repository.check_clean()
    (repository.root / "new").write_text("")
    with pytest.raises(ReleaseError, match=r"^the tree has uncommitted changes \(new\)"):
        repository.check_clean()


def test_release_is_a_commit_with_a_tag_and_not_made_twice(repository: Repository, tmp_path: Path) -> None:
    tree = copied(repository.root, tmp_path / "source", Path("python3"))
    (tree.root / "version").write_text("0.2.0\n")
    (tree.root / "added").write_text("new\n")
    (tree.root / "ignored").write_text("cache\n")
    patch = repository.diff(tree.root)
    repository.check_not_tagged("0.2.0")
    repository.check_clean()
    repository.release("0.2.0", patch)
    repository.check_clean()
    repository.check_at_tag("0.2.0")
    assert repository.git("log", "-1", "--format=%s") == "Release 0.2.0"
    assert repository.git("show", "--format=", "--name-only", "HEAD").split() == ["added", "version"]
    with pytest.raises(ReleaseError, match=r"^the tag v0\.2\.0 exists"):
        repository.check_not_tagged("0.2.0")
    (repository.root / "version").write_text("0.3.0\n")
    repository.git("commit", "--all", "--quiet", "--message=Later")
    with pytest.raises(ReleaseError, match=r"^the last commit is not that of the tag v0\.2\.0"):
        repository.check_at_tag("0.2.0")


def test_patch_of_another_tree_is_an_error(repository: Repository, tmp_path: Path) -> None:
    tree = copied(repository.root, tmp_path / "source", Path("python3"))
    (tree.root / "version").write_text("0.2.0\n")
    patch = repository.diff(tree.root)
    (repository.root / "version").write_text("0.1.1\n")
    repository.git("commit", "--all", "--quiet", "--message=Other")
    with pytest.raises(ReleaseError, match=r"^the changes of the release do not apply"):
        repository.release("0.2.0", patch)
