"""Reading and writing the generated files; the only part of this package that touches the disk."""

import sys
from collections.abc import Mapping
from pathlib import Path

from bundle.catalog import Packed
from bundle.errors import BundleError
from bundle.release import DOCKERFILE


def read_tree(root: Path, *places: str) -> dict[str, str]:
    """Every file at or below some places, by its path below `root`. Raises BundleError for what is no text."""
    found = [path for place in places for path in sorted([root / place, *(root / place).rglob("*")]) if path.is_file()]
    return {path.relative_to(root).as_posix(): _text(path) for path in found}


def read_bundle(root: Path, image: str = "") -> Packed:
    """The bundle below a directory that holds bundle/ and bundle.Dockerfile, as `generate` writes it."""
    return Packed(read_tree(root, "bundle", DOCKERFILE), image)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path} is no text in UTF-8: a bundle holds YAML only") from error


def write(root: Path, files: Mapping[str, str], *owned: str, check: bool, command: str) -> None:
    """Make the files, and no others below the directories `owned`, what they are to be.

    With `check` nothing is written: ends with exit code 1, naming what differs and the command that mends it.
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
