"""All places of the tree that name the version or the images of a release. Another place is one more line of PLACES."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pages.figures import FIGURES
from release.errors import ReleaseError


@dataclass(frozen=True)
class Place:
    """What names a value in a file: the matches of `pattern`, whose group `value` is the value.

    `value`: `version`; `operator` or `agent`: the repository of an image; `agent-image`: with its tag; `base`: the base
    image; `charts`: what contains the Helm chart in the registry. `count`: how many matches there must be; 0: any,
    but one at least.
    """

    file: str
    value: str
    pattern: str
    count: int = 1


PLACES: Final = (
    Place("pyproject.toml", "version", r'^version = "(?P<value>.+)"$'),
    Place("config/base/kustomization.yaml", "version", r"^  newTag: (?P<value>\S+)$", 2),
    Place("config/base/kustomization.yaml", "operator", r"^- name: controller\n  newName: (?P<value>\S+)$"),
    Place("config/base/kustomization.yaml", "agent", r"^- name: agent\n  newName: (?P<value>\S+)$"),
    Place("api/memcached_api/images.py", "agent-image", r'^DEFAULT_AGENT_IMAGE: Final = "(?P<value>.+)"$'),
    *(
        Place(file, "version", r"/memcached-operator(?:-\w+)?:v?(?P<value>\d+\.\d+\.\d+)", 0)
        for file in (
            "docs/install.md",
            "docs/install-olm.md",
            "docs/air-gap.md",
            "docs/placing.md",
            "examples/private-registry/memcached.yaml",
        )
    ),
    Place("docs/install-kubectl.md", "version", r"^  newTag: (?P<value>\S+)$", 0),
    Place("docs/install-kubectl.md", "operator", r"^- name: (?P<value>\S+)\n  newName: \S+/memcached-operator$"),
    Place("docs/install-kubectl.md", "agent", r"^- name: (?P<value>\S+)\n  newName: \S+/memcached-operator-agent$"),
    *(
        Place(file, "charts", r"oci://(?P<value>\S+)/memcached-operator\b", 0)
        for file in ("docs/helm.md", "tools/chart/files/README.md")
    ),
    Place("docs/helm.md", "version", r"--version (?P<value>\d+\.\d+\.\d+)", 0),
    *(Place(each.file, "version", r'^ "release": "(?P<value>.+)"$') for each in FIGURES.values()),
    Place("Dockerfile", "base", r"^ARG BASE_IMAGE=(?P<value>\S+)$"),
)


def current(files: Mapping[str, str], value: str) -> str:
    """The value in the first of its places; empty if that has none."""
    place = next(each for each in PLACES if each.value == value)
    found = re.search(place.pattern, files[place.file], re.MULTILINE)
    return found["value"] if found else ""


def edited(files: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The files with these values, by path. A value that is not given stays.

    `files`: the texts of PLACES. Raises ReleaseError if a place is not found as often as it says.
    """
    texts = dict(files)
    for place in PLACES:
        if place.file not in texts:
            raise ReleaseError(f"{place.file} is missing, which names the release's {place.value}")
        texts[place.file] = _edit(texts[place.file], place, values.get(place.value))
    return texts


def _edit(text: str, place: Place, value: str | None) -> str:
    matches = list(re.finditer(place.pattern, text, re.MULTILINE))
    if not matches or place.count not in (0, len(matches)):
        wanted = place.count or "at least 1"
        raise ReleaseError(
            f"{place.file} names the release's {place.value} {len(matches)} times instead of {wanted}: "
            "change the file, or its line in tools/release/commit/places.py"
        )
    for match in reversed(matches if value is not None else []):
        start, end = match.span("value")
        text = text[:start] + str(value) + text[end:]
    return text


def table(version: str, entries: Mapping[str, str | list[str]]) -> str:
    """The table of a release in pyproject.toml."""
    lines = [f'[tool.memcached-operator.releases."{version}"]']
    for key, value in entries.items():
        quoted = f'"{value}"' if isinstance(value, str) else "[" + ", ".join(f'"{each}"' for each in value) + "]"
        lines.append(f"{key} = {quoted}")
    return "\n".join([*lines, ""])


_TABLE: Final = re.compile(r'^\[tool\.memcached-operator\.releases\."[^"]+"\]\n(?:[^\[\n].*\n)+', re.MULTILINE)


def with_table(text: str, added: str) -> str:
    """pyproject.toml with the table of a release below the others. Raises ReleaseError if there is no other."""
    tables = list(_TABLE.finditer(text))
    if not tables:
        raise ReleaseError("pyproject.toml has no table [tool.memcached-operator.releases.…] to write this one below")
    return f"{text[: tables[-1].end()]}\n{added}{text[tables[-1].end() :]}"
