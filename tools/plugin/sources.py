"""The files of the plugin: its sources, and the packages that requirements/plugin.txt locks."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from cluster.errors import ClusterError
from plugin.archives import PACKAGE

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = ROOT / "requirements/plugin.txt"
SOURCES: Final = ROOT / "plugin"
_KEPT: Final = ("METADATA", "licenses", "entry_points.txt")
"""Of the directories *.dist-info: what is not about the installation."""


def sources(root: Path = SOURCES) -> dict[str, bytes]:
    """The plugin's own modules, by path."""
    found = sorted(
        path for path in (root / PACKAGE).rglob("*") if path.is_file() and path.suffix in ("", ".py", ".typed")
    )
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found if "__pycache__" not in path.parts}


def packages() -> dict[str, bytes]:
    """The locked packages, by path. Raises ClusterError if one cannot be installed, or is not pure Python."""
    with tempfile.TemporaryDirectory(prefix="plugin-") as folder:
        options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", "3.11"]
        command = [sys.executable, "-m", "uv", "pip", "install", *options, "--target", folder, "-r", str(LOCK)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"the packages in {LOCK.name} cannot be installed: {done.stderr.strip()}")
        found = {path.relative_to(folder): path for path in sorted(Path(folder).rglob("*")) if path.is_file()}
        files = {name.as_posix(): path.read_bytes() for name, path in found.items() if is_kept(name)}
    return pure(files)


def is_kept(path: Path) -> bool:
    """Whether a file of an installed package belongs to the executable."""
    top = path.parts[0]
    if top.endswith(".dist-info"):
        return path.parts[1] in _KEPT
    return len(path.parts) > 1 and top != "bin" and "__pycache__" not in path.parts


def pure(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same files. Raises ClusterError if one is machine code, which Python cannot import from an archive."""
    if native := sorted(name for name in files if Path(name).suffix in (".so", ".pyd", ".dylib")):
        raise ClusterError(f"{native[0]} is not pure Python: choose another package")
    return files
