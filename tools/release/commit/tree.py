"""A copy of the committed tree, for changes and generators that must not touch the working tree."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.shell import run

SOURCES: Final = ("tools", "tests", "measure", "agent", "api", "operator", "webhooks")
"""Directories with Python packages."""


@dataclass(frozen=True)
class Tree:
    """A directory with the project's files, and the Python that has its dependencies."""

    root: Path
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Python imports this tree, and not the one that .venv was made for."""
        return {"PYTHONPATH": os.pathsep.join(str(self.root / name) for name in SOURCES)}

    def make(self, *words: str) -> str:
        """Run make in this tree without making .venv; returns its output. Raises ClusterError."""
        python = f"env PYTHONPATH={self.environment['PYTHONPATH']} {self.python}"
        return run(["make", "--no-print-directory", "-o", "venv", f"PYTHON={python}", f"PYTHON3={python}", *words],
                   cwd=self.root, env=self.environment)  # fmt: skip

    def run(self, *words: str | Path, stdin: str | None = None) -> str:
        """Run Python in this tree; returns its output. Raises ClusterError."""
        return run([self.python, *words], cwd=self.root, env=self.environment, stdin=stdin)

    def read(self, names: set[str]) -> dict[str, str]:
        """The texts of those files that exist."""
        return {name: (self.root / name).read_text() for name in sorted(names) if (self.root / name).exists()}

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by path below the root."""
        for name, text in files.items():
            (self.root / name).write_text(text)


def copied(repository: Path, target: Path, python: Path, commit: str = "HEAD") -> Tree:
    """Copy a commit's files into a directory, which is emptied first. Raises ClusterError."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    archive = target.with_suffix(".tar")
    run(["git", "archive", f"--output={archive}", commit], cwd=repository)
    # Python 3.11.2, that of Debian 12, has no filters for extractall.
    run(["tar", "--extract", "--no-same-owner", f"--file={archive}", f"--directory={target}"])
    archive.unlink()
    return Tree(target, python)
