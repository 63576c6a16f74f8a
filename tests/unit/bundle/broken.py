"""Bundles with one thing wrong in each, made from the one in the tree."""

import base64
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from bundle.catalog import CATALOG
from bundle.files import read_tree
from bundle.objects import documents as parsed
from bundle.release import (
    ANNOTATIONS,
    CSV_FILE,
    DOCKERFILE,
    MANIFESTS,
    PACKAGE,
    PREFIX,
    ROOT,
    SCORECARD,
    project_version,
)

Files = dict[str, str]
Document = Any
Change = Callable[[Document], object]

GOOD = read_tree(ROOT, "bundle", DOCKERFILE, "catalog")
CONFIG = read_tree(ROOT, "config")
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
CRD = f"{MANIFESTS}/cache.example.com_memcacheds.yaml"
NAME = f"{PACKAGE}.v{project_version()}"
SERVICE = f"{MANIFESTS}/memcached-operator-webhook-metrics-service_v1_service.yaml"


class Broken(NamedTuple):
    """`told`: what the message must name: file or field, value, or remedy."""

    check: str
    told: tuple[str, ...]
    files: Files


def changed(path: str, change: Change) -> Files:
    """The good files with one YAML document of one of them changed in place."""
    document = parsed(GOOD[path], path)[0]
    change(document)
    return GOOD | {path: yaml.dump(document, Dumper=DUMPER)}


def csv(change: Change) -> Files:
    return changed(CSV_FILE, change)


def spec(**fields: Any) -> Files:
    return csv(lambda document: document["spec"].update(fields))


def annotation(key: str, value: str) -> Files:
    return csv(lambda document: document["metadata"]["annotations"].update({key: value}))


def webhook(**fields: Any) -> Files:
    """The first webhook with other fields; None takes one away."""

    def change(document: Document) -> None:
        first = document["spec"]["webhookdefinitions"][0]
        first.update(fields)
        for key in [key for key, value in first.items() if value is None]:
            del first[key]

    return csv(change)


def rule(**fields: Any) -> Files:
    return csv(lambda document: document["spec"]["webhookdefinitions"][0]["rules"][0].update(fields))


def deployment(change: Change, index: int = 1) -> Files:
    """A change of the webhook's Deployment, or of the controller's, which is number 0."""
    return csv(lambda document: change(document["spec"]["install"]["spec"]["deployments"][index]))


def pod(index: int = 1, **fields: Any) -> Files:
    return deployment(lambda found: found["spec"]["template"]["spec"].update(fields), index)


def container(index: int = 1, **fields: Any) -> Files:
    return deployment(lambda found: found["spec"]["template"]["spec"]["containers"][0].update(fields), index)


def containers_env(variables: list[dict[str, Any]]) -> Files:
    """Other variables in both Deployments."""

    def change(document: Document) -> None:
        for each in document["spec"]["install"]["spec"]["deployments"]:
            each["spec"]["template"]["spec"]["containers"][0]["env"] = variables

    return csv(change)


def permission(change: Change) -> Files:
    return csv(lambda document: change(document["spec"]["install"]["spec"]))


def example(change: Change) -> Files:
    """A change of the list of examples."""

    def edit(document: Document) -> None:
        annotations = document["metadata"]["annotations"]
        found = json.loads(annotations["alm-examples"])
        change(found)
        annotations["alm-examples"] = json.dumps(found)

    return csv(edit)


def owned(change: Change) -> Files:
    """A change of the list of owned kinds."""
    return csv(lambda document: change(document["spec"]["customresourcedefinitions"]["owned"]))


def labels(**fields: str | None) -> Files:
    """Other annotations, in the file only; `_` stands for what comes before the last parts of a key."""

    def change(document: Document) -> None:
        for key, value in fields.items():
            document["annotations"][f"{PREFIX}.bundle.{key.replace('_', '.')}.v1"] = value

    return changed(ANNOTATIONS, change)


def catalog(change: Change) -> Files:
    """A change of the catalogue's documents: package, channel, bundle."""
    documents = parsed(GOOD[CATALOG], CATALOG)
    change(documents)
    return GOOD | {CATALOG: yaml.dump_all(documents, Dumper=DUMPER)}


def icon(data: bytes, mediatype: str = "image/svg+xml") -> Files:
    return spec(icon=[{"base64data": base64.b64encode(data).decode(), "mediatype": mediatype}])


def file(path: str, **fields: Any) -> Files:
    """One more object in the bundle."""
    return GOOD | {f"{MANIFESTS}/{path}": yaml.dump({"apiVersion": "v1", "metadata": {"name": "more"}, **fields})}


def scorecard(change: Change) -> Files:
    return changed(SCORECARD, lambda document: change(document["stages"][0]["tests"]))
