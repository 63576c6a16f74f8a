"""What the chart is made of: the rendered directories of config/, and the registered kinds."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from bundle.objects import Object, parse
from bundle.release import ROOT
from memcached_api.registry import KINDS
from project.environment import kubectl, use_kubectl

LEADING: Final = tuple({kind.group: kind for kind in reversed(KINDS)}.values())[::-1]
"""The first kind of each group, by whose name a user chooses all kinds of the group."""


Sources = Mapping[str, Sequence[Object]]
"""The objects of each of DIRECTORIES, and those of `certmanager_alone`."""
DIRECTORIES: Final = {
    "operator": "config/default",
    "operator_alone": "config/overlays/memcached-only",
    "certmanager": "config/overlays/certmanager",
    "namespaced": "config/overlays/namespaced",
    "network": "config/network-policy",
    "monitoring": "config/prometheus",
    "dashboards": "config/grafana",
    "manifests": "config/manifests",
}
"""Variants of the same installation, add-ons, and the manifests of the bundle with the description and the samples."""
ALONE: Final = "config/components/memcached-only"
BUILD: Final = "build/chart"


def rendered() -> Sources:
    """What kustomize renders. Raises ClusterError with kustomize's message."""
    use_kubectl()
    found = {name: _rendered(place) for name, place in DIRECTORIES.items()}
    return {**found, "certmanager_alone": _rendered(_combined(DIRECTORIES["certmanager"], ALONE))}


def _rendered(place: str) -> list[Object]:
    return parse(kubectl("kustomize", place), place)


def _combined(base: str, component: str) -> str:
    """A directory in build/ with the objects of a variant and a component."""
    folder = ROOT / BUILD
    folder.mkdir(parents=True, exist_ok=True)
    content = {"resources": [f"../../{base}"], "components": [f"../../{component}"]}
    (folder / "kustomization.yaml").write_text(json.dumps(content), encoding="utf-8")
    return BUILD
