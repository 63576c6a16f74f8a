"""What a release is made of: version, date, images and base image; and the changes of its commit."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bundle.images import repository as untagged
from cluster.public.images import BUILD
from release.commit import changelog, groups, places
from release.commit.groups import Groups
from release.commit.versions import check_newer, parse
from release.errors import ReleaseError
from release.output.images import ARCHITECTURES, LOCAL, LOCAL_BASES, Names, Recipe

PACKAGE: Final = "memcached-operator"
PYPROJECT, CHANGELOG, DOCKERFILE = "pyproject.toml", "CHANGELOG.md", "Dockerfile"
FILES: Final = frozenset(
    {place.file for place in places.PLACES}
    | {file for file, _ in groups.SETTINGS.values()}
    | {PYPROJECT, CHANGELOG, DOCKERFILE}
)
"""The files that a release reads and changes."""


@dataclass(frozen=True)
class Plan:
    """One release. `date`: as `2006-01-02`. `base`: the base image of both images, or empty: those of this machine.

    `groups`: new API groups, or None: those of the tree. A release with new groups replaces no other.
    """

    version: str
    date: str
    names: Names
    base: str
    groups: Groups | None = None

    @property
    def epoch(self) -> int:
        """Midnight of the date, in seconds since 1970: the date of every file in the images."""
        return int(datetime.strptime(self.date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())

    @property
    def bundle_image(self) -> str:
        """The image of the bundle, with its tag."""
        return self.names.tagged(self.version)["bundle"]

    def recipe(self, *, fresh: bool) -> Recipe:
        """How to build the images on this machine. `fresh`: use no cached layer."""
        bases = dict.fromkeys(ARCHITECTURES, self.base) if self.base else LOCAL_BASES
        return Recipe(self.version, self.epoch, bases, self.base or BUILD, fresh)

    def check_publishable(self) -> None:
        """Raise ReleaseError unless others can pull the images, and build them again from the same base image."""
        if self.names.local:
            raise ReleaseError("the images have no registry: set IMG=registry.example.com/memcached-operator")
        if "@sha256:" not in self.base:
            raise ReleaseError(
                f"BASE_IMAGE={self.base or '(not set)'} has no digest: "
                "set BASE_IMAGE=docker.io/library/python:3.13-slim@sha256:…"
            )


def project(files: Mapping[str, str]) -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads(files[PYPROJECT])


def tables(files: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The tables of the releases in pyproject.toml."""
    return project(files)["tool"][PACKAGE]["releases"]


def dockerfile_base(files: Mapping[str, str]) -> str:
    """The base image in the Dockerfile. Raises ReleaseError if it names none."""
    if found := places.current(files, "base"):
        return found
    raise ReleaseError("the Dockerfile has no line ARG BASE_IMAGE=…: add it")


def names(files: Mapping[str, str], operator: str = "", agent: str = "") -> Names:
    """The names of the images: the given ones, else those in config/base. A tag is left out.

    Raises ReleaseError for a digest.
    """
    if "@" in operator + agent:
        raise ReleaseError("IMG and AGENT_IMG of a release have no digest: its images are built now")
    operator, agent = untagged(operator), untagged(agent)
    beside = f"{operator}-agent" if operator else places.current(files, "agent")
    return Names(operator or places.current(files, "operator"), agent or beside)


def planned(
    files: Mapping[str, str], version: str, date: str, made: Names, base: str, chosen: Groups | None = None
) -> Plan:
    """The plan of a new release. Raises ReleaseError if the version is not newer than the released ones."""
    parse(version)
    check_newer(version, [*changelog.released(files[CHANGELOG]), *(name for name in tables(files) if name != version)])
    default = "" if made.local else dockerfile_base(files)
    new = chosen if chosen != groups.current(files) else None
    return Plan(version, tables(files).get(version, {}).get("date") or date, made, base or default, new)


def released(files: Mapping[str, str], version: str, base: str) -> Plan:
    """The plan of the release whose commit these files are from. Raises ReleaseError if they are not."""
    current: str = project(files)["project"]["version"]
    if version != current or version not in tables(files):
        raise ReleaseError(f"this tree is that of version {current}, not of {version}: check out the tag v{version}")
    made = names(files)
    return Plan(version, tables(files)[version]["date"], made, base or ("" if made.local else dockerfile_base(files)))


def changes(files: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """The files of the release's commit, but for the generated ones. Raises ReleaseError."""
    values = {
        "version": plan.version,
        "operator": plan.names.operator,
        "agent": plan.names.agent,
        "agent-image": plan.names.tagged(plan.version)["agent"],
        "charts": plan.names.charts,
    }
    if plan.base and not plan.base.startswith(LOCAL):
        values["base"] = plan.base
    texts = {name: text for name, text in files.items() if name in {place.file for place in places.PLACES}}
    edited = places.edited(texts, values)
    if plan.version not in tables(files):
        edited[PYPROJECT] = places.with_table(edited[PYPROJECT], _table(files, plan))
    edited[CHANGELOG] = changelog.release(files[CHANGELOG], plan.version, plan.date)
    return edited


def _table(files: Mapping[str, str], plan: Plan) -> str:
    """The table of the new release: in the channels of the newest one, which it replaces unless its groups are new."""
    newest = max(tables(files), key=parse)
    entries: dict[str, str | list[str]] = {
        "date": plan.date,
        "channels": tables(files)[newest].get("channels", ["stable"]),
    }
    if not plan.groups:
        entries["replaces"] = f"{PACKAGE}.v{newest}"
    if not plan.names.local:
        tagged = plan.names.tagged(plan.version)
        entries |= {"image": tagged["operator"], "agent-image": tagged["agent"]}
    return places.table(plan.version, entries)
