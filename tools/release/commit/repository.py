"""The git repository: what must hold before a release, and the release's commit and tag."""

from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.shell import run, succeeds
from release.errors import ReleaseError


@dataclass(frozen=True)
class Repository:
    """A working tree. The methods raise ClusterError if git fails."""

    root: Path

    def git(self, *words: str, stdin: str | None = None) -> str:
        """The output of a git command."""
        return run(["git", *words], cwd=self.root, stdin=stdin).strip()

    def check_clean(self) -> None:
        """Raise ReleaseError if files differ from the last commit."""
        if changed := self.git("status", "--porcelain"):
            names = ", ".join(line.split()[-1] for line in changed.splitlines()[:5])
            raise ReleaseError(f"the tree has uncommitted changes ({names}): commit or remove them")

    def check_not_tagged(self, version: str) -> None:
        """Raise ReleaseError if the version has a tag."""
        if self.git("tag", "--list", f"v{version}"):
            raise ReleaseError(f"the tag v{version} exists: the version is released, choose the next one")

    def check_at_tag(self, version: str) -> None:
        """Raise ReleaseError unless the last commit is that of the version's tag."""
        words = ["git", "-C", self.root, "rev-parse", "--verify", "--quiet", f"v{version}^{{commit}}"]
        if not succeeds(words) or run(words).strip() != self.commit():
            raise ReleaseError(f"the last commit is not that of the tag v{version}: check out the tag")

    def commit(self) -> str:
        """The hash of the last commit."""
        return self.git("rev-parse", "HEAD")

    def diff(self, other: Path) -> str:
        """The changes from the last commit to the files of another directory, as a patch for `git apply`."""
        index = other.with_suffix(".index")
        environment = {"GIT_INDEX_FILE": str(index), "GIT_DIR": self.git("rev-parse", "--absolute-git-dir")}
        try:
            run(["git", "read-tree", "HEAD"], env=environment, cwd=other)
            run(["git", f"--work-tree={other}", "add", "--all", "."], env=environment, cwd=other)
            return run(["git", "diff", "--cached", "--binary", "HEAD"], env=environment, cwd=other)
        finally:
            index.unlink(missing_ok=True)

    def release(self, version: str, patch: str) -> None:
        """Apply the patch, commit it, and tag the commit. Raises ReleaseError if the patch does not apply."""
        try:
            self.git("apply", "--index", "-", stdin=patch)
        except ClusterError as error:
            raise ReleaseError(f"the changes of the release do not apply: {error}") from error
        self.git("commit", "--quiet", f"--message=Release {version}")
        self.git("tag", "--annotate", f"v{version}", f"--message=Release {version}")
