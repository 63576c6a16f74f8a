"""Image references, by the grammar of github.com/distribution/reference v0.6.0 as container runtimes apply it."""

import re
from functools import lru_cache
from typing import Final

# The patterns are used by Python here and by CEL (RE2) in the CRD. The digests are those that go-digest supports.
_HOST_PART: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_NAME_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_PATH: Final = rf"{_NAME_PART}(?:/{_NAME_PART})*"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})"
PATTERN: Final = rf"^(?:{_HOST}/)?{_PATH}(?::{_TAG})?(?:@{_DIGEST})?$"

MAX_LENGTH: Final = 1024  # characters; more than the longest host, path, tag and digest together
MAX_PATH_LENGTH: Final = 255  # characters: distribution's RepositoryNameTotalLengthMax

# MAX_PATH_LENGTH in CEL: a reference that matches PATTERN must match PATH_WITHIN_LIMIT, which recognizes unambiguous
# hosts, and must not match LIBRARY_PATH_TOO_LONG, for names that get the prefix `library/`.
_UNAMBIGUOUS_HOST: Final = r"(?:localhost|[a-zA-Z0-9:\[\]-]*[.:A-Z][a-zA-Z0-9.:\[\]-]*)"
_TAG_AND_DIGEST: Final = "(?::[^/@]*)?(?:@.*)?$"
PATH_WITHIN_LIMIT: Final = rf"^(?:{_UNAMBIGUOUS_HOST}/)?[^:@]{{1,{MAX_PATH_LENGTH}}}{_TAG_AND_DIGEST}"
LIBRARY_PATH_TOO_LONG: Final = (
    rf"^(?:(?:index\.)?docker\.io/)?[^/:@]{{{MAX_PATH_LENGTH - len('library/') + 1},}}{_TAG_AND_DIGEST}"
)

_REFERENCE: Final = re.compile(
    rf"(?P<host>{_HOST}/)?(?P<path>{_PATH})(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?", re.ASCII
)
IMAGE_ID: Final = r"^[a-f0-9]{64}$"  # an image ID, which cannot be pulled
_VERSION: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*(?![\w.])", re.ASCII)
_DOCKER_HUB: Final = ("", "docker.io/", "index.docker.io/")

Release = tuple[int, int, int]
"""A release with three numbers, such as (1, 6, 45)."""


def is_reference(text: str) -> bool:
    """Whether the text is a valid image reference: `memcached`, `host:5000/a/b:1.6`, `a/b@sha256:…`."""
    if len(text) > MAX_LENGTH or re.fullmatch(IMAGE_ID, text):
        return False
    match = _REFERENCE.fullmatch(text)
    return match is not None and len(_path(match)) <= MAX_PATH_LENGTH


def repository(text: str) -> str:
    """A reference without tag and digest; the text itself if it is not a reference."""
    match = _REFERENCE.fullmatch(text)
    return text if match is None else f"{match['host'] or ''}{match['path']}"


def has_fixed_version(text: str) -> bool:
    """Whether the reference has a fixed version: a digest, or a tag other than `latest`."""
    match = _REFERENCE.fullmatch(text)
    return match is not None and bool(match["digest"] or (match["tag"] or "latest") != "latest")


def is_older(new: str | None, old: str | None) -> bool | None:
    """Whether the version with which the tag of `new` begins is lower than that of `old`: 1.6.9 is below 1.6.10.

    None if this is unknown: 1.6 can be any 1.6.x, `latest` and other repositories anything.
    """
    if new == old:
        return False
    after, before = (_REFERENCE.fullmatch(text or "") for text in (new, old))
    if after is None or before is None or repository(new or "") != repository(old or ""):
        return None
    later, earlier = (_version(match["tag"] or "") for match in (after, before))
    if later and later == earlier:
        return False
    common = min(len(later), len(earlier))
    return None if later[:common] == earlier[:common] else later < earlier


@lru_cache(256)  # called for each reconcile; a cluster uses few images
def official_release(text: str, name: str) -> Release | None:
    """The release in the tag of Docker Hub's official image `name`: (1, 6, 38) of `memcached:1.6.38-alpine`.

    None for another image, for a tag with fewer numbers, which can become any release, and for a digest.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None or match["digest"]:
        return None
    host, path = _host_and_path(match)
    numbers = _version(match["tag"] or "")
    if host not in _DOCKER_HUB or path != f"library/{name}" or len(numbers) != 3:
        return None
    return numbers[0], numbers[1], numbers[2]


def variant(text: str) -> str:
    """What follows the version in a tag: `-alpine` of `memcached:1.6.38-alpine`. Empty without a version."""
    match = _REFERENCE.fullmatch(text)
    tag = (match["tag"] or "") if match else ""
    version = _VERSION.match(tag)
    return tag[version.end() :] if version else ""


def _version(tag: str) -> list[int]:
    match = _VERSION.match(tag)
    return [int(part) for part in match[0].split(".")] if match else []


def _path(match: re.Match[str]) -> str:
    """The repository's path in the registry."""
    return _host_and_path(match)[1]


def _host_and_path(match: re.Match[str]) -> tuple[str, str]:
    """The registry and the path there. A first part without dot, colon or upper-case letter is not a registry."""
    host, path = match["host"] or "", match["path"]
    is_host = host == "localhost/" or host != host.lower() or any(character in host for character in ".:")
    if not is_host:
        host, path = "", f"{host}{path}"
    return host, f"library/{path}" if host in _DOCKER_HUB and "/" not in path else path
