"""The rules of community catalogs that OLM's validators do not check. Pure functions.

They are those of the pipelines of community-operators: docs/releasing.md lists each with the command that checks it.
OLM's validator operatorhub, which `make catalogue-check` also runs, checks the values of capabilities and categories.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bundle.catalog import Packed, blobs
from bundle.release import OPENSHIFT_LABEL, PACKAGE, PREFIX
from memcached_api.values import nested_field

CI_FILE: Final = "config/community-operators/ci.yaml"

UPDATE_GRAPHS: Final = ("replaces-mode", "semver-mode")
_SEMVER: Final = r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
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


_TEXTS: Final = {
    "metadata.annotations.capabilities": (r".+", "a level of capabilities"),
    "metadata.annotations.categories": (r".+", "a list of categories, separated by commas"),
    "metadata.annotations.containerImage": (
        r"([^/]+/)+[^/:@]+[:@].+",
        "an image with its registry and a tag or digest",
    ),
    "metadata.annotations.createdAt": (r"\d{4}(-\d\d){2}T(\d\d:){2}\d\dZ", "a time as 2006-01-02T15:04:05Z"),
    "metadata.annotations.repository": (r"https?://.+", "the URL of the sources"),
    "metadata.annotations.support": (r".{3,}", "a name of at least 3 characters"),
    "metadata.annotations.description": (r".{10,135}", "a text of 10 to 135 characters"),
    "spec.displayName": (r".{3,50}", "a text of 3 to 50 characters"),
    "spec.description": (r".{20,}", "a text of at least 20 characters"),
    "spec.version": (_SEMVER, "a semantic version"),
    "spec.minKubeVersion": (_SEMVER, "a semantic version"),
    "spec.provider.name": (r".{3,}", "a text of at least 3 characters"),
}
"""Required texts of the ClusterServiceVersion: a regular expression, and the same in words."""
_LISTS: Final = ("spec.icon", "spec.maintainers", "spec.links", "spec.keywords")
"""Required lists of the ClusterServiceVersion. The validator operatorhub checks the items of all but keywords."""


def _fields(csv: Mapping[str, Any]) -> Iterator[str]:
    for path, (pattern, wanted) in _TEXTS.items():
        value = nested_field(csv, *path.split("."))
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
            yield f"{path} of the ClusterServiceVersion must be {wanted}"
    for path in _LISTS:
        if not _is_filled_list(nested_field(csv, *path.split("."))):
            yield f"{path} of the ClusterServiceVersion must be a list that is not empty"


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and value != []


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
    if not re.fullmatch(_SEMVER, kubernetes):
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
    if not _is_filled_list(content.get("reviewers")):
        yield f"{CI_FILE}: reviewers must be a list of GitHub user names"
