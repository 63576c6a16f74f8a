"""Versions of releases: `MAJOR.MINOR.PATCH`."""

import re
from typing import Final

from release.errors import ReleaseError

_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def parse(text: str) -> tuple[int, ...]:
    """The numbers of a version, by which releases are ordered. Raises ReleaseError for any other text, such as
    `v0.2.0` or `0.2`.
    """
    found = _VERSION.fullmatch(text)
    if not found:
        raise ReleaseError(f"VERSION={text!r} must be three numbers, such as 0.2.0")
    return tuple(map(int, found.groups()))


def check_newer(version: str, released: list[str]) -> None:
    """Raise ReleaseError unless the version is newer than every released one."""
    newest = max(released, key=parse, default="")
    if newest and parse(version) <= parse(newest):
        raise ReleaseError(f"VERSION={version} is not newer than {newest}: a release cannot be made again")
