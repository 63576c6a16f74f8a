"""The catalogue: that this bundle is in it as it is, and the way from one release to the next."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from bundle.catalog import BUNDLE, CATALOG, bundle_blob, channel_entry
from bundle.checks.subject import Finding, Subject, of_csv
from bundle.release import PACKAGE

_ANY_IMAGE: Final = "localhost/any"
"""In place of the bundle's own, which only the catalogue knows."""


def published(subject: Subject) -> Iterator[Finding]:
    """3: the catalogue says of this bundle what the bundle says itself, in the channels it names and no others."""
    name = subject.csv["metadata"]["name"]
    known = sorted(str(blob.get("name")) for blob in subject.catalog if blob["schema"] == BUNDLE)
    replaced = subject.spec.get("replaces")
    if replaced is not None and replaced not in known:
        yield of_csv("spec.replaces", replaced, f"must be one of the releases in {CATALOG}: {', '.join(known)}")
    yield from _entries(subject, name)
    for blob in subject.catalog:
        if (blob["schema"], blob.get("name")) == (BUNDLE, name):
            yield from _blob(subject, blob)


def _entries(subject: Subject, name: str) -> Iterator[Finding]:
    """Channel entries say what the bundle says: catalogues read the entries, people the bundle."""
    named, wanted = subject.packed.channels(), channel_entry(subject.packed)
    channels = {blob.get("name"): blob["entries"] for blob in subject.catalog if blob["schema"] == "olm.channel"}
    for channel in sorted({*named, *map(str, channels)}):
        found = [entry for entry in channels.get(channel, []) if entry["name"] == name]
        if found != ([wanted] if channel in named else []):
            remedy = f"must be {f'the one entry {wanted}' if channel in named else 'none'}: run `make catalog`"
            yield Finding(CATALOG, f"entries of {name} in channel {channel}", found, remedy)


def _blob(subject: Subject, blob: dict[str, Any]) -> Iterator[Finding]:
    """Key by key what `make catalog` would write; of the images, only that of the bundle is the catalogue's own."""
    inline = any(each.get("type") == "olm.bundle.object" for each in blob.get("properties", []))
    wanted = bundle_blob(subject.packed, "" if inline else blob.get("image") or _ANY_IMAGE, inline=inline)
    for key in sorted({*wanted, *blob} - {"image"}):
        if blob.get(key) != wanted.get(key):
            yield Finding(
                CATALOG, f"{key} of {blob['name']}", blob.get(key), "must be as the bundle says: run `make catalog`"
            )


def graph(subject: Subject) -> Iterator[Finding]:
    """12: the catalogue has one package, every channel leads to one head, and every entry has its bundle."""
    blobs = subject.catalog
    packages = [blob for blob in blobs if blob["schema"] == "olm.package"]
    channels = [blob for blob in blobs if blob["schema"] == "olm.channel"]
    bundles = [blob for blob in blobs if blob["schema"] == BUNDLE]
    if [blob.get("name") for blob in packages] != [PACKAGE]:
        yield Finding(CATALOG, "olm.package", len(packages), f"must be one, named {PACKAGE}: run `make catalog`")
        return
    if packages[0].get("defaultChannel") not in {blob.get("name") for blob in channels}:
        yield Finding(CATALOG, "olm.package.defaultChannel", packages[0].get("defaultChannel"), "must be a channel")
    names = [blob["name"] for blob in bundles]
    for before, after in pairwise(sorted(names)):
        if before == after:
            yield Finding(CATALOG, "olm.bundle.name", before, "must stand once")
    listed = {entry["name"] for blob in channels for entry in blob["entries"]}
    for name in sorted(listed.symmetric_difference(names)):
        yield Finding(CATALOG, "olm.channel.entries", name, "must have its olm.bundle, and each bundle an entry")
    for blob in bundles:
        yield from _version(blob)
    for blob in channels:
        yield from _channel(blob)


def _version(blob: dict[str, Any]) -> Iterator[Finding]:
    properties = [each for each in blob.get("properties", []) if each["type"] == "olm.package"]
    if [f"{PACKAGE}.v{each['value']['version']}" for each in properties] != [blob["name"]]:
        yield Finding(
            CATALOG, f"properties of {blob['name']}", len(properties), "must hold one olm.package of this version"
        )
    inline = any(each["type"] == "olm.bundle.object" for each in blob.get("properties", []))
    if not blob.get("image") and not inline:
        yield Finding(CATALOG, f"image of {blob['name']}", blob.get("image"), "must be the bundle's image: BUNDLE_IMG")


def _channel(blob: dict[str, Any]) -> Iterator[Finding]:
    """As opm checks it: exactly one entry that no other replaces or skips, from which all others are reached."""
    place = f"entries of channel {blob['name']}"
    entries = {entry["name"]: entry for entry in blob["entries"]}
    passed = {name for entry in blob["entries"] for name in [entry.get("replaces"), *entry.get("skips", [])]}
    heads = sorted(entries.keys() - passed)
    if len(heads) != 1:
        yield Finding(CATALOG, place, ", ".join(heads), "must have exactly one head: give REPLACES or SKIPS")
        return
    reached: set[str] = set()
    skipped: set[str] = set()
    current: str = heads[0]
    while current in entries:
        if current in reached:
            yield Finding(CATALOG, place, current, "must not be replaced in a circle")
            return
        reached.add(current)
        skipped |= set(entries[current].get("skips", []))
        current = entries[current].get("replaces", "")
    for name in sorted(entries.keys() - reached - skipped):
        yield Finding(CATALOG, place, name, f"must be reached from {heads[0]} by replaces or skips")
