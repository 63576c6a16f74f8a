"""Fake programs on the PATH, which record their command lines."""

from pathlib import Path

import pytest

from cluster.binaries import packages
from cluster.images import build


class FakePrograms:
    """An environment whose only programs, besides those of a basic system, are fake. The cache is empty."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.directory = directory / "bin"
        self.directory.mkdir()
        self.log = directory / "calls"
        for name in ("sh", "tail"):
            (self.directory / name).symlink_to(f"/bin/{name}")
        monkeypatch.setenv("PATH", str(self.directory))
        monkeypatch.setattr(packages, "SYSTEM_PATH", str(self.directory))
        monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "cache"))
        monkeypatch.delenv("CONTAINER_TOOL", raising=False)
        # It runs pip, which takes half a second.
        monkeypatch.setattr(build, "build_home", Path)

    def add(self, name: str, script: str = "") -> None:
        """Add a program; by default it succeeds. `$1` of its shell script is the first word of its command line."""
        program = self.directory / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {self.log}\n{script}\n')
        program.chmod(0o755)

    def calls(self) -> list[str]:
        """The command lines so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []
