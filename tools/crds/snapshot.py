"""Kubernetes' own types, pinned: descriptions and list markers come from a committed extract of its OpenAPI document.

To refresh it, take the document from a cluster of the wanted version and name the types again:

    kubectl get --raw /openapi/v3/api/v1 >core.json
    python -m crds snapshot core.json
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("kubernetes.json")

# What structs in memcached_api name as their SCHEMA.
TYPES: Final = (
    "io.k8s.api.core.v1.Affinity",
    "io.k8s.api.core.v1.ConfigMapKeySelector",
    "io.k8s.api.core.v1.EnvVar",
    "io.k8s.api.core.v1.EnvVarSource",
    "io.k8s.api.core.v1.LocalObjectReference",
    "io.k8s.api.core.v1.NodeAffinity",
    "io.k8s.api.core.v1.NodeSelector",
    "io.k8s.api.core.v1.NodeSelectorRequirement",
    "io.k8s.api.core.v1.NodeSelectorTerm",
    "io.k8s.api.core.v1.ObjectFieldSelector",
    "io.k8s.api.core.v1.PodAffinity",
    "io.k8s.api.core.v1.PodAffinityTerm",
    "io.k8s.api.core.v1.PodAntiAffinity",
    "io.k8s.api.core.v1.PodSecurityContext",
    "io.k8s.api.core.v1.PreferredSchedulingTerm",
    "io.k8s.api.core.v1.ResourceFieldSelector",
    "io.k8s.api.core.v1.ResourceRequirements",
    "io.k8s.api.core.v1.SeccompProfile",
    "io.k8s.api.core.v1.SecretKeySelector",
    "io.k8s.api.core.v1.ServicePort",
    "io.k8s.api.core.v1.Toleration",
    "io.k8s.api.core.v1.TopologySpreadConstraint",
    "io.k8s.api.core.v1.WeightedPodAffinityTerm",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
)

_KEPT: Final = ("description", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")


def described(type_name: str) -> dict[str, Any]:
    """A Kubernetes type as `{"description": …, "properties": {field: {"description": …}}}`. Raises KeyError."""
    return _load()["types"][type_name]


def extract(document: dict[str, Any]) -> str:
    """The text of the snapshot file, taken from an OpenAPI v3 document. Raises KeyError for a type that is missing."""
    schemas = document["components"]["schemas"]
    types = {name: _trimmed(schemas[name]) for name in TYPES}
    return json.dumps({"kubernetes": document["info"]["version"], "types": types}, indent=2, ensure_ascii=False) + "\n"


def _trimmed(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: schema[key] for key in _KEPT if key in schema}
    return kept | {"properties": {name: _kept(field) for name, field in schema["properties"].items()}}


def _kept(field: dict[str, Any]) -> dict[str, Any]:
    return {key: field[key] for key in _KEPT if key in field}


@cache
def _load() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))
