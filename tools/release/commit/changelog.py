"""CHANGELOG.md: the section of unreleased changes becomes the section of a release."""

import re
from typing import Final

from release.errors import ReleaseError

UNRELEASED: Final = "## [Unreleased]"
_SECTION: Final = re.compile(r"^## \[(?P<name>[^\]]+)\].*$", re.MULTILINE)
_LINKS: Final = re.compile(r"^\[Unreleased\]: (?P<url>\S+)/compare/v(?P<last>\S+)\.\.\.HEAD$", re.MULTILINE)
_LINK: Final = re.compile(r"^\[[^\]]+\]: \S+$", re.MULTILINE)


def released(text: str) -> list[str]:
    """The released versions, newest first."""
    return [name for name in _SECTION.findall(text) if name != "Unreleased"]


def notes(text: str, name: str) -> str:
    """The text of a section, such as `0.2.0`, without its heading. Raises ReleaseError if the section is missing."""
    sections = list(_SECTION.finditer(text))
    for section, after in zip(sections, [*sections[1:], None], strict=True):
        if section["name"] == name:
            body = text[section.end() : after.start() if after else len(text)]
            return _LINK.sub("", body).strip() + "\n"
    raise ReleaseError(f"CHANGELOG.md has no section [{name}]: add it")


def repository(text: str) -> str:
    """The URL of the project. Raises ReleaseError if the links at the end are missing."""
    return _links(text)["url"]


def _links(text: str) -> re.Match[str]:
    found = _LINKS.search(text)
    if not found:
        raise ReleaseError("CHANGELOG.md: the link [Unreleased] must end with /compare/vX.Y.Z...HEAD")
    return found


def release(text: str, version: str, date: str) -> str:
    """The text with the unreleased changes as the section of this version, and an empty section for the next ones.

    Raises ReleaseError if nothing is unreleased, or the links at the end are missing.
    """
    if not notes(text, "Unreleased").strip():
        raise ReleaseError("CHANGELOG.md: the section [Unreleased] is empty: describe what users get")
    links = _links(text)
    url, last = links["url"], links["last"]
    lines = f"[Unreleased]: {url}/compare/v{version}...HEAD\n[{version}]: {url}/compare/v{last}...v{version}"
    linked = text[: links.start()] + lines + text[links.end() :]
    return linked.replace(UNRELEASED, f"{UNRELEASED}\n\n## [{version}] - {date}", 1)
