"""Generated files: written, compared with those of the tree, or packed."""

import gzip
import io
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click

from cluster.errors import ClusterError

ROOT: Final = Path(__file__).resolve().parents[2]
check_option: Final = click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is outdated.")


def read_tree(root: Path, *places: str) -> dict[str, str]:
    """All files at or below some paths, by path below `root`. Raises ClusterError if one is not text."""
    found = [path for place in places for path in sorted([root / place, *(root / place).rglob("*")]) if path.is_file()]
    return {path.relative_to(root).as_posix(): _text(path) for path in found}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ClusterError(f"{path} is not UTF-8 text, and no generated file: delete it") from None


def write(root: Path, files: Mapping[str, str], *owned: str, check: bool, command: str = "make generate") -> None:
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


def packed(files: Iterable[tuple[str, bytes, int]]) -> bytes:
    """A .tgz of files: path, content and mode, without times and owners. The same files give the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, content, mode in files:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), compresslevel=9, mtime=0)
