"""Image references, and the releases in their tags."""

import re
from typing import Final

_RELEASE: Final = re.compile(r"([^@]+):(\d+)\.(\d+)\.(\d+)((?:[-_a-zA-Z][\w.-]*)?)")
"""An image with a release in its tag, and what follows the release: `-alpine`."""
_NAME: Final = r"(?:[\w.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
_DIGEST: Final = r"@sha(?:256|384|512):[a-f0-9]+"
_FIXED: Final = re.compile(rf"{_NAME}(?::\w[\w.-]{{0,127}}(?:{_DIGEST})?|{_DIGEST})", re.ASCII)
"""An image with a tag or a digest."""

OFFICIAL: Final = "docker.io/library/memcached"


def is_fixed(image: str) -> bool:
    """Whether this is an image with a tag or a digest. The API server checks the rest."""
    return _FIXED.fullmatch(image) is not None


def repository(image: str) -> str:
    """An image without tag and digest: `docker.io/library/memcached`. The short names of Docker Hub are completed."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    host, _, path = name.partition("/")
    if not path or not (host == "localhost" or host != host.lower() or any(letter in host for letter in ".:")):
        host, path = "docker.io", name
    host = "docker.io" if host == "index.docker.io" else host
    return f"{host}/library/{path}" if host == "docker.io" and "/" not in path else f"{host}/{path}"


def release(image: str) -> tuple[int, ...]:
    """The numbers of a tag with three of them and nothing else: (1, 6, 45). Otherwise, and for a digest, empty."""
    numbers, suffix = tag(image)
    return () if suffix else numbers


def tag(image: str) -> tuple[tuple[int, ...], str]:
    """The release with which a tag begins, and the rest of the tag; both empty without a release, and for a digest."""
    found = _RELEASE.fullmatch(image)
    return (tuple(map(int, found.group(2, 3, 4))), found[5]) if found else ((), "")


def official_release(image: str) -> tuple[int, ...]:
    """The release in the tag of Docker Hub's official image of memcached; empty for another image or tag."""
    numbers, suffix = tag(image)
    return numbers if suffix[:1] in ("", "-") and repository(image) == OFFICIAL else ()


def is_older(new: str, old: str) -> bool | None:
    """Whether the release in the tag of an image is lower than that of another one; None if this is not known."""
    if new == old:
        return False
    later, earlier = tag(new)[0], tag(old)[0]
    return later < earlier if later and earlier and repository(new) == repository(old) else None


def with_release(image: str, numbers: str) -> str:
    """An image with another release, and the rest of its tag: `memcached:1.6.45-alpine`."""
    found = _RELEASE.fullmatch(image)
    return f"{found[1]}:{numbers}{found[5]}" if found else f"{repository(image)}:{numbers}"
