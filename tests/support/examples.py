"""The folders of `examples/`: their objects, and what their READMEs say about them."""

import re
from collections.abc import Sequence
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any

import yaml

import goldens
from memcached_api.images import Images
from memcached_api.memcached.memory import MEBIBYTE
from memcached_api.memcached.types import MEMCACHED
from memcached_api.quantity import parse_quantity
from memcached_webhooks.kinds.memcached import defaults
from memcached_webhooks.patches import merge_operations
from support.reviewing import patched

Object = dict[str, Any]

ROOT = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(path for path in ROOT.iterdir() if path.is_dir())
IMAGES = Images(agent="example.com/agent:1")
"""The images that admission sets in objects that name none."""
KUSTOMIZATION = "kustomization.yaml"
FOREIGN_GROUPS = {"cert-manager.io"}
"""The groups of objects in the examples that need another operator."""


def readme(folder: Path) -> str:
    """The text of the README of an example."""
    return (folder / "README.md").read_text()


def objects(folder: Path) -> list[Object]:
    """All objects of an example."""
    paths = sorted(path for path in folder.glob("*.yaml") if path.name != KUSTOMIZATION)
    return [obj for path in paths for obj in yaml.safe_load_all(path.read_text())]


def memcacheds(folder: Path) -> list[Object]:
    """The Memcacheds of an example."""
    return [obj for obj in objects(folder) if obj["kind"] == MEMCACHED.name]


def needs_operator(obj: Object) -> bool:
    """Whether an object is of a kind of another operator, which an API server alone does not serve."""
    return str(obj["apiVersion"]).partition("/")[0] in FOREIGN_GROUPS


def admitted(obj: Object) -> Object:
    """A Memcached as admission stores it."""
    return patched(obj, merge_operations(obj["spec"], defaults(obj["spec"], None, IMAGES)))


def children(obj: Object, namespace: str = "default") -> list[Object]:
    """The children that the controller plans for a new Memcached in a namespace."""
    stored = admitted(obj)
    metadata = {**stored["metadata"], "namespace": namespace, "uid": "uid", "generation": 1}
    return goldens.children({**stored, "metadata": metadata})


def namespace_of(folder: Path) -> str:
    """The namespace in the README's command that applies the example. Fails if there is no command."""
    found = re.search(rf"^kubectl apply -n (\S+) -[fk] examples/{folder.name}/$", readme(folder), flags=re.MULTILINE)
    assert found, "no command that applies the example"
    return found[1]


def needs(found: Sequence[Object]) -> tuple[str, str]:
    """The memory and the CPU that the pods of Memcacheds request from the nodes, as the READMEs write them."""
    pods = [pods_of(children(obj)) for obj in found]
    memory = " + ".join(f"{size} × {ceil(requests['memory'] / MEBIBYTE)}Mi" for size, requests in pods)
    return memory, " + ".join(f"{size} × {ceil(requests['cpu'] * 1000)}m" for size, requests in pods)


def pods_of(planned: Sequence[Object]) -> tuple[int, dict[str, Decimal]]:
    """The number of pods of the workload among children, and the requests of each."""
    (spec,) = [child["spec"] for child in planned if child["kind"] in ("Deployment", "StatefulSet")]
    requests = [container["resources"]["requests"] for container in spec["template"]["spec"]["containers"]]
    return spec["replicas"], {
        name: sum((parse_quantity(each[name]) for each in requests), Decimal()) for name in ("memory", "cpu")
    }
