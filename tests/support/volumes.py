"""A mounted Secret: files behind symbolic links, which the kubelet replaces all at once."""

import itertools
import shutil
from collections.abc import Mapping
from pathlib import Path

_versions = itertools.count()


class Volume:
    """A directory that looks and changes like a mounted Secret."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Replace all files, as the kubelet's atomic writer does: everything changes with one rename of `..data`."""
        data = self.directory / "..data"
        version = self.directory / f"..{next(_versions)}"
        version.mkdir()
        for name, content in files.items():
            (version / name).write_bytes(content)
        old = data.readlink() if data.is_symlink() else None
        link = self.directory / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(data)
        self._link(files)
        if old:
            shutil.rmtree(self.directory / old)

    def _link(self, files: Mapping[str, bytes]) -> None:
        """One link for each file; links without a file are removed."""
        for each in self.directory.iterdir():
            if not each.name.startswith("..") and each.name not in files:
                each.unlink()
        for name in files:
            link = self.directory / name
            if not link.is_symlink():
                link.symlink_to(Path("..data") / name)
