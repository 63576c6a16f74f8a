"""The rules of community catalogs that OLM's validators do not check. Pure functions.

They are those of the pipelines of community-operators: docs/releasing.md lists each with the command that checks it.
The lists of values are those of operator-framework/api and of the pipelines' static checks.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, cast

from bundle.catalog import Packed, blobs
from bundle.release import OPENSHIFT_LABEL, PACKAGE, PREFIX
from memcached_api.values import is_object, nested_field

CI_FILE: Final = "config/community-operators/ci.yaml"

CAPABILITIES: Final = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")
CATEGORIES: Final = frozenset(
    {
        "AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Database", "Developer Tools",
        "Integration & Delivery", "Logging & Tracing", "Modernization & Migration", "Monitoring", "Networking",
        "OpenShift Optional", "Security", "Storage", "Streaming & Messaging",
    }
)  # fmt: skip
MEDIA_TYPES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/svg+xml"})
UPDATE_GRAPHS: Final = ("replaces-mode", "semver-mode")
_SEMVER: Final = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_FIRST_OPENSHIFT: Final = 13
"""OpenShift 4.x is Kubernetes 1.(x + 13)."""


def findings(bundle: Packed, catalog: str, ci: Mapping[str, Any]) -> list[str]:
    """One sentence for each violated rule. `catalog`: the text of catalog.yaml. `ci`: the content of CI_FILE."""
    return [
        *_fields(bundle.csv()),
        *_names(bundle),
        *_examples(bundle.csv()),
        *_manifests(bundle),
        *_openshift(bundle),
        *_catalog(catalog),
        *_ci(ci),
    ]


def _matches(pattern: str) -> Callable[[Any], bool]:
    expression = re.compile(pattern, re.DOTALL)
    return lambda value: isinstance(value, str) and expression.fullmatch(value) is not None


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        return False
    return True


def _is_icon(value: Any) -> bool:
    icons = cast("list[dict[str, str]]", value) if _have(value, "base64data", "mediatype") else []
    if len(icons) != 1:
        return False
    try:
        base64.b64decode(icons[0]["base64data"], validate=True)
    except binascii.Error:
        return False
    return icons[0]["mediatype"] in MEDIA_TYPES


def _have(value: Any, *fields: str) -> bool:
    """True for a list of at least one object, each with these texts."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        is_object(each) and all(isinstance(each.get(field), str) and each[field] for field in fields)
        for each in cast("list[Any]", value)
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(each, str) for each in cast("list[Any]", value))


_ANNOTATIONS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "capabilities": (lambda value: value in CAPABILITIES, f"one of {', '.join(CAPABILITIES)}"),
    "categories": (
        lambda value: isinstance(value, str) and {each.strip() for each in value.split(",")} <= CATEGORIES,
        f"of {', '.join(sorted(CATEGORIES))}, separated by commas",
    ),
    "containerImage": (_matches(r"([^/]+/)+[^/:@]+[:@].+"), "an image with its registry and a tag or digest"),
    "createdAt": (_is_time, "a time as 2006-01-02T15:04:05Z"),
    "repository": (_matches(r"https?://.+"), "the URL of the sources"),
    "support": (_matches(r".{3,}"), "a name of at least 3 characters"),
    "description": (_matches(r".{10,135}"), "a text of 10 to 135 characters"),
}
_SPEC: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "displayName": (_matches(r".{3,50}"), "a text of 3 to 50 characters"),
    "description": (_matches(r".{20,}"), "a text of at least 20 characters"),
    "icon": (_is_icon, f"one image of {', '.join(sorted(MEDIA_TYPES))}, encoded with base64"),
    "version": (lambda value: isinstance(value, str) and _SEMVER.fullmatch(value) is not None, "a semantic version"),
    "maintainers": (lambda value: _have(value, "name", "email"), "a list of objects with name and email"),
    "links": (lambda value: _have(value, "name", "url"), "a list of objects with name and url"),
    "keywords": (_are_texts, "a list of texts"),
    "minKubeVersion": (lambda value: isinstance(value, str) and bool(_SEMVER.fullmatch(value)), "a semantic version"),
}
_PROVIDER: Final = (_matches(r".{3,}"), "a text of at least 3 characters")


def _fields(csv: Mapping[str, Any]) -> Iterator[str]:
    rules = {("metadata", "annotations", name): rule for name, rule in _ANNOTATIONS.items()}
    rules |= {("spec", name): rule for name, rule in _SPEC.items()} | {("spec", "provider", "name"): _PROVIDER}
    for path, (is_valid, wanted) in rules.items():
        if not is_valid(nested_field(csv, *path)):
            yield f"{'.'.join(path)} of the ClusterServiceVersion must be {wanted}"


def _names(bundle: Packed) -> Iterator[str]:
    csv, package = bundle.csv(), bundle.annotations().get(f"{PREFIX}.bundle.package.v1")
    name, version = csv["metadata"]["name"], csv["spec"].get("version")
    if package != PACKAGE:
        yield f"the package is {package!r}, but the directory in a catalog is {PACKAGE!r}"
    if name != f"{package}.v{version}":
        yield f"the ClusterServiceVersion {name!r} must be named {package}.v{version}"


def _examples(csv: Mapping[str, Any]) -> Iterator[str]:
    try:
        examples = json.loads(csv["metadata"]["annotations"].get("alm-examples", ""))
    except json.JSONDecodeError:
        yield "the annotation alm-examples must be a list of objects as JSON"
        return
    shown = {(each.get("apiVersion"), each.get("kind")) for each in examples}
    for owned in csv["spec"]["customresourcedefinitions"]["owned"]:
        group = owned["name"].partition(".")[2]
        if (f"{group}/{owned['version']}", owned["kind"]) not in shown:
            yield f"the annotation alm-examples has no {owned['kind']} of {group}/{owned['version']}"
        if not owned.get("description"):
            yield f"{owned['kind']} of {group}/{owned['version']} has no description"


def _manifests(bundle: Packed) -> Iterator[str]:
    for each in bundle.objects():
        if each["kind"] == "NetworkPolicy":
            yield f"NetworkPolicy {each['metadata']['name']}: the pipelines reject NetworkPolicies in a bundle"


def _openshift(bundle: Packed) -> Iterator[str]:
    kubernetes = str(bundle.csv()["spec"].get("minKubeVersion", ""))
    if not _SEMVER.fullmatch(kubernetes):
        return
    expected = f"v4.{int(kubernetes.split('.')[1]) - _FIRST_OPENSHIFT}"
    found = bundle.annotations().get(OPENSHIFT_LABEL)
    if found != expected:
        yield f"{OPENSHIFT_LABEL} is {found!r}, but minKubeVersion {kubernetes} is that of OpenShift {expected}"


def _catalog(text: str) -> Iterator[str]:
    for blob in blobs(text):
        if any(each["type"] == "olm.bundle.object" for each in blob.get("properties", ())):
            yield f"{blob['name']} has the property olm.bundle.object, which catalogs from OpenShift 4.17 on reject"


def _ci(content: Mapping[str, Any]) -> Iterator[str]:
    if content.get("updateGraph") not in UPDATE_GRAPHS:
        yield f"{CI_FILE}: updateGraph must be one of {', '.join(UPDATE_GRAPHS)}"
    if not _are_texts(content.get("reviewers")):
        yield f"{CI_FILE}: reviewers must be a list of GitHub user names"
