"""Versions of releases: `MAJOR.MINOR.PATCH`."""

import re
from typing import Final, NamedTuple

from release.errors import ReleaseError

_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class Version(NamedTuple):
    """A version; the order of the tuples is that of the releases."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        """As it is written everywhere: `0.2.0`."""
        return f"{self.major}.{self.minor}.{self.patch}"


def parse(text: str) -> Version:
    """The version of a text. Raises ReleaseError for anything but three numbers, such as `v0.2.0` or `0.2`."""
    found = _VERSION.fullmatch(text)
    if not found:
        raise ReleaseError(f"VERSION={text!r} must be three numbers, such as 0.2.0")
    return Version(*map(int, found.groups()))


def check_newer(version: str, released: list[str]) -> None:
    """Raise ReleaseError unless the version is newer than every released one."""
    newest = max(map(parse, released), default=None)
    if newest is not None and parse(version) <= newest:
        raise ReleaseError(f"VERSION={version} is not newer than {newest}: a release cannot be made again")
