"""Names and versions, and the way through the catalogue from one to the next."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from bundle.catalog import CATALOG
from bundle.checks.subject import Fault, Subject, of_csv
from bundle.release import PACKAGE, PREFIX
from bundle.service_version import SKIP_RANGE

SEMVER: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_LONGEST_NAME: Final = 63
"""Characters: OLM writes the name into labels."""
_RANGE: Final = re.compile(r"([<>=!]{0,2} ?\d+\.\d+\.\d+\S*)( (\|\| )?[<>=!]{0,2} ?\d+\.\d+\.\d+\S*)*")


def versions(subject: Subject) -> Iterator[Fault]:
    """3: the name tells package and version, and what is replaced is older and in the catalogue."""
    version, name = str(subject.spec.get("version", "")), subject.csv["metadata"]["name"]
    if not SEMVER.fullmatch(version):
        yield of_csv("spec.version", version, "must be a semantic version such as 0.1.0")
    if name != f"{PACKAGE}.v{version}":
        yield of_csv("metadata.name", name, f"must be {PACKAGE}.v{version}")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        yield of_csv("metadata.name", name, f"must be a DNS name of at most {_LONGEST_NAME} characters")
    if not re.fullmatch(r"\d+\.\d+\.\d+", str(subject.spec.get("minKubeVersion", ""))):
        yield of_csv("spec.minKubeVersion", subject.spec.get("minKubeVersion"), "must have three numbers: 1.30.0")
    skip_range = subject.annotations.get(SKIP_RANGE)
    if skip_range is not None and not _RANGE.fullmatch(skip_range):
        yield of_csv(f"metadata.annotations[{SKIP_RANGE}]", skip_range, "must be a range such as '>=0.1.0 <0.2.0'")
    yield from _predecessors(subject, name)
    yield from _entries(subject, name)


def _predecessors(subject: Subject, name: str) -> Iterator[Fault]:
    known = {blob.get("name") for blob in subject.catalog if blob["schema"] == "olm.bundle"}
    replaced = subject.spec.get("replaces")
    for field, before in [
        ("spec.replaces", replaced),
        *(("spec.skips", each) for each in subject.spec.get("skips", [])),
    ]:
        if before is not None and (before == name or not before.startswith(f"{PACKAGE}.v")):
            yield of_csv(field, before, f"must be another release, such as {PACKAGE}.v0.1.0")
        elif before is not None and field == "spec.replaces" and known and before not in known:
            yield of_csv(
                field, before, f"must be one of the releases in {CATALOG}: {', '.join(sorted(map(str, known)))}"
            )


def _entries(subject: Subject, name: str) -> Iterator[Fault]:
    """Channel entries say what the bundle says: catalogues read the entries, people the bundle."""
    wanted: dict[str, Any] = {"name": name}
    wanted |= {key: subject.spec[key] for key in ("replaces", "skips") if subject.spec.get(key)}
    wanted |= {"skipRange": subject.annotations[SKIP_RANGE]} if subject.annotations.get(SKIP_RANGE) else {}
    channels = {
        blob.get("name"): blob.get("entries", []) for blob in subject.catalog if blob["schema"] == "olm.channel"
    }
    if not channels:
        return
    for channel in str(subject.packed.annotations().get(f"{PREFIX}.bundle.channels.v1")).split(","):
        found = [entry for entry in channels.get(channel, []) if entry["name"] == name]
        if found != [wanted]:
            remedy = f"must be the one entry {wanted}: run `make catalog`"
            yield Fault(CATALOG, f"entries of {name} in channel {channel}", str(found), remedy)


def graph(subject: Subject) -> Iterator[Fault]:
    """12: the catalogue has one package, every channel leads to one head, and every entry has its bundle."""
    blobs = subject.catalog
    packages = [blob for blob in blobs if blob["schema"] == "olm.package"]
    channels = [blob for blob in blobs if blob["schema"] == "olm.channel"]
    bundles = [blob for blob in blobs if blob["schema"] == "olm.bundle"]
    if [blob.get("name") for blob in packages] != [PACKAGE]:
        yield Fault(CATALOG, "olm.package", len(packages), f"must be one, named {PACKAGE}: run `make catalog`")
        return
    if packages[0].get("defaultChannel") not in {blob.get("name") for blob in channels}:
        yield Fault(CATALOG, "olm.package.defaultChannel", packages[0].get("defaultChannel"), "must be a channel")
    names = [blob["name"] for blob in bundles]
    for before, after in pairwise(sorted(names)):
        if before == after:
            yield Fault(CATALOG, "olm.bundle.name", before, "must stand once")
    listed = {entry["name"] for blob in channels for entry in blob["entries"]}
    for name in sorted(listed.symmetric_difference(names)):
        yield Fault(CATALOG, "olm.channel.entries", name, "must have its olm.bundle, and each bundle an entry")
    for blob in bundles:
        yield from _bundle(blob)
    for blob in channels:
        yield from _channel(blob)


def _bundle(blob: dict[str, Any]) -> Iterator[Fault]:
    properties = [each for each in blob.get("properties", []) if each["type"] == "olm.package"]
    if [f"{PACKAGE}.v{each['value']['version']}" for each in properties] != [blob["name"]]:
        yield Fault(
            CATALOG, f"properties of {blob['name']}", len(properties), "must hold one olm.package of this version"
        )
    inline = any(each["type"] == "olm.bundle.object" for each in blob.get("properties", []))
    if not blob.get("image") and not inline:
        yield Fault(CATALOG, f"image of {blob['name']}", blob.get("image"), "must be the bundle's image: BUNDLE_IMG")


def _channel(blob: dict[str, Any]) -> Iterator[Fault]:
    """As opm checks it: exactly one entry that no other replaces or skips, from which all others are reached."""
    place = f"entries of channel {blob['name']}"
    entries = {entry["name"]: entry for entry in blob["entries"]}
    passed = {name for entry in blob["entries"] for name in [entry.get("replaces"), *entry.get("skips", [])]}
    heads = sorted(entries.keys() - passed)
    if len(heads) != 1:
        yield Fault(CATALOG, place, ", ".join(heads), "must have exactly one head: give REPLACES or SKIPS")
        return
    reached: set[str] = set()
    skipped: set[str] = set()
    current: str = heads[0]
    while current in entries:
        if current in reached:
            yield Fault(CATALOG, place, current, "must not be replaced in a circle")
            return
        reached.add(current)
        skipped |= set(entries[current].get("skips", []))
        current = entries[current].get("replaces", "")
    for name in sorted(entries.keys() - reached - skipped):
        yield Fault(CATALOG, place, name, f"must be reached from {heads[0]} by replaces or skips")
