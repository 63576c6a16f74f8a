"""What a catalogue shows of the operator."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree

from bundle.checks.subject import Finding, Subject, of_csv

CAPABILITIES: Final = ("Basic Install", "Seamless Upgrades")
"""The levels that are built, of five. The next, Full Lifecycle, asks for backups: a cache has none."""
_DRAWN: Final = frozenset({"svg", "g", "path", "rect", "circle", "ellipse", "line", "polygon", "title"})
"""Elements of an icon: none that runs, or fetches, something in the browser that shows it."""
CATEGORIES: Final = (
    "AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Developer Tools", "Database",
    "Integration & Delivery", "Logging & Tracing", "Monitoring", "Modernization & Migration", "Networking",
    "OpenShift Optional", "Security", "Storage", "Streaming & Messaging", "Observability",
)  # fmt: skip
_LARGEST_ICON: Final = 32 * 1024
"""Bytes; the icon is in every copy of the catalogue's metadata."""
_LONGEST_SUMMARY: Final = 135
"""Characters that a catalogue shows on a tile."""
_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_NEEDED: Final = ("containerImage", "repository", "support")


def presentation(subject: Subject) -> Iterator[Finding]:
    """10: icon, categories, capability level and texts are what catalogues accept."""
    yield from _icon(subject.spec.get("icon", []))
    yield from _annotations(subject.annotations)
    yield from _texts(subject.spec)


def _icon(icons: list[dict[str, str]]) -> Iterator[Finding]:
    if len(icons) != 1:
        yield of_csv("spec.icon", len(icons), "must be one")
        return
    if icons[0].get("mediatype") != "image/svg+xml":
        yield of_csv("spec.icon.mediatype", icons[0].get("mediatype"), "must be image/svg+xml, as icon.svg is")
    try:
        data = base64.b64decode(icons[0].get("base64data", ""), validate=True)
        root = ElementTree.fromstring(data)  # noqa: S314 (our own file)
    except (binascii.Error, ElementTree.ParseError) as error:
        yield of_csv("spec.icon.base64data", str(error), "must be an SVG in base64: run `make bundle`")
        return
    if not root.tag.endswith("svg") or len(data) > _LARGEST_ICON:
        yield of_csv("spec.icon.base64data", len(data), f"must be an SVG of at most {_LARGEST_ICON} bytes")
    box = root.get("viewBox", "").split()
    if root.get("width") != root.get("height") or len(box) != 4 or box[2] != box[3]:
        yield of_csv("spec.icon.base64data", root.get("viewBox"), "must be square, by width, height and viewBox")
    for each in root.iter():
        name = each.tag.rpartition("}")[2]
        if name not in _DRAWN or any(key.lower().startswith("on") or key.endswith("href") for key in each.attrib):
            yield of_csv("spec.icon.base64data", name, "must go: an icon only draws")


def _annotations(annotations: dict[str, str]) -> Iterator[Finding]:
    level = annotations.get("capabilities")
    if level not in CAPABILITIES:
        yield _annotation("capabilities", level, f"must be one of {', '.join(CAPABILITIES)}: more is not built")
    for category in re.split(r", ?", annotations.get("categories", "")):
        if category not in CATEGORIES:
            yield _annotation("categories", category, f"must be some of {', '.join(CATEGORIES)}")
    if not _MOMENT.fullmatch(annotations.get("createdAt", "")):
        yield _annotation("createdAt", annotations.get("createdAt"), "must be the release's day: 2006-01-02T00:00:00Z")
    summary = annotations.get("description", "")
    if not 20 <= len(summary) <= _LONGEST_SUMMARY:
        yield _annotation("description", summary, f"must be a sentence of 20 to {_LONGEST_SUMMARY} characters")
    for key in _NEEDED:
        if not annotations.get(key):
            yield _annotation(key, annotations.get(key), "must be there")
    for key in annotations:
        if key.lower().startswith("olm.") and key != "olm.skipRange":
            yield _annotation(key, annotations[key], "is none that OLM knows here: mind the case of olm.skipRange")


def _annotation(key: str, value: Any, remedy: str) -> Finding:
    return of_csv(f"metadata.annotations[{key}]", value, remedy)


def _texts(spec: dict[str, Any]) -> Iterator[Finding]:
    if not 3 <= len(spec.get("displayName", "")) <= 50:
        yield of_csv("spec.displayName", spec.get("displayName"), "must have 3 to 50 characters")
    if len(spec.get("description", "")) < 200:
        yield of_csv("spec.description", spec.get("description"), "must tell enough to decide by")
    if not spec.get("provider", {}).get("name"):
        yield of_csv("spec.provider.name", None, "must be there")
    if not spec.get("keywords"):
        yield of_csv("spec.keywords", None, "must be there")
    people = spec.get("maintainers", [])
    if not people or not all(each.get("name") and _ADDRESS.fullmatch(each.get("email", "")) for each in people):
        yield of_csv("spec.maintainers", people, "must have name and e-mail address, all of them")
    links = spec.get("links", [])
    if not links or not all(each.get("name") and each.get("url", "").startswith("https://") for each in links):
        yield of_csv("spec.links", links, "must have name and https:// address, all of them")
