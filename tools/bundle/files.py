"""Reads and writes the generated files; the only module of this package that accesses the disk."""

import sys
from collections.abc import Mapping
from pathlib import Path

from bundle.catalog import Packed
from bundle.errors import BundleError
from bundle.release import DOCKERFILE


def read_tree(root: Path, *places: str) -> dict[str, str]:
    """All files at or below some paths, by path below `root`. Raises BundleError for binary files."""
    found = [path for place in places for path in sorted([root / place, *(root / place).rglob("*")]) if path.is_file()]
    return {path.relative_to(root).as_posix(): _text(path) for path in found}


def read_bundle(root: Path, image: str = "") -> Packed:
    """The bundle in a directory that contains bundle/ and bundle.Dockerfile, as `generate` writes them."""
    return Packed(read_tree(root, "bundle", DOCKERFILE), image)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path} is not UTF-8 text: a bundle contains only YAML") from error


def write(root: Path, files: Mapping[str, str], *owned: str, check: bool, command: str) -> None:
    """Write the files, and delete all others below the directories `owned`.

    With `check`, write nothing; if a file differs, exit with 1, its name and the command that updates it.
    """
    before = read_tree(root, *owned, *files)
    leftover = sorted(before.keys() - files.keys())
    outdated = sorted(path for path, text in files.items() if before.get(path) != text)
    if check and (outdated or leftover):
        sys.exit(f"not as generated: {', '.join([*outdated, *leftover])}; run `{command}`")
    for path in outdated:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(files[path], encoding="utf-8")
        print(f"wrote {path}")
    for path in leftover:
        (root / path).unlink()
        print(f"removed {path}")
