"""The changes of a release, from its section of CHANGELOG.md, as Artifact Hub shows them."""

import re
from collections.abc import Iterator
from typing import Final

from bundle.errors import BundleError

KINDS: Final = {name.title(): name for name in ("added", "changed", "deprecated", "removed", "fixed", "security")}
"""The headings of the changelog, and Artifact Hub's names for them."""


def changes(changelog: str, version: str) -> list[dict[str, str]]:
    """Kind and description of each change. Raises BundleError if the changelog has no section for the version."""
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |^\[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found:
        raise BundleError(f"CHANGELOG.md has no section for {version}: write it before you generate the chart")
    return list(_changes(found[1]))


def _changes(section: str) -> Iterator[dict[str, str]]:
    parts = re.split(r"^### (.+)\n", section, flags=re.MULTILINE)[1:]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        for item in re.findall(r"^- (.*?)(?=^- |^#|\Z)", text, re.MULTILINE | re.DOTALL):
            yield {"kind": KINDS[heading.strip()], "description": _plain(item)}


def _plain(item: str) -> str:
    """The item in one line, without bold type, and with the text of links: paths lead nowhere on other sites."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)|\*\*", lambda match: match[1] or "", " ".join(item.split()))
