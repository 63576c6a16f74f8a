"""Values of the chart, and what its objects have in common with those of kustomize."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from operator import itemgetter
from pathlib import Path
from typing import Any

from bundle.objects import Object, containers
from memcached_api.values import is_object

ROOT = Path(__file__).parents[2]
NAMESPACE = "memcached-operator-system"
RELEASE = "memcached-operator"
MANAGED_BY = "app.kubernetes.io/managed-by"
OF_HELM = ("app.kubernetes.io/instance", "helm.sh/chart", MANAGED_BY)
"""Labels that differ between an installation with Helm and with kubectl."""
KEEP = "helm.sh/resource-policy"

VARIANTS: Mapping[str, Object] = {
    "default": {},
    "cert-manager": {"certificates": {"source": "cert-manager"}},
    "namespaced": {"watchNamespaces": ["team-a", "team-b"]},
    "memcached-only": {"kinds": ["memcached"]},
    "add-ons": {"networkPolicy": {"enabled": True}, "monitoring": {"enabled": True, "dashboards": True}},
    "minimal": {
        "crds": {"enabled": False},
        "admissionPolicies": {"enabled": False},
        "podDisruptionBudgets": {"enabled": False},
    },
    "everything": {
        "image": {"digest": "sha256:" + "a" * 64, "pullPolicy": "Always"},
        "agentImage": {"repository": "registry.example.com/agent", "tag": "9"},
        "imagePullSecrets": [{"name": "registry"}],
        "certificates": {"source": "cert-manager"},
        "watchNamespaces": ["team-a"],
        "kinds": ["memcached"],
        "logLevel": "debug",
        "logFormat": "json",
        "clusterDomain": "cluster.example",
        "controller": {
            "replicas": 3,
            "extraArgs": ["--sync-period=300"],
            "podLabels": {"team": "a"},
            "podAnnotations": {"note": "a: b"},
            "priorityClassName": "high",
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "infra", "operator": "Exists", "tolerationSeconds": 60, "effect": "NoExecute"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        },
        "webhook": {"resources": {"requests": {"cpu": 1, "memory": "1Gi"}}},
        "networkPolicy": {
            "enabled": True,
            "admissionFrom": [{"ipBlock": {"cidr": "192.0.2.1/32"}}],
            "metricsFrom": [{"namespaceSelector": {}}],
        },
        "monitoring": {"enabled": True, "dashboards": True, "interval": "30s", "labels": {"release": "prometheus"}},
        "commonLabels": {"app.kubernetes.io/part-of": "caches", "number": "1"},
        "commonAnnotations": {"owner": "team-a"},
    },
}
"""Values that both versions of Helm must render alike."""


def merged(values: Object, over: Mapping[str, Any]) -> Object:
    """Values with others over them: mappings are merged, everything else is replaced."""
    found = dict(values)
    for name, each in over.items():
        before = found.get(name)
        found[name] = merged(before, each) if is_object(before) and is_object(each) else each
    return found


Key = tuple[str, str, str]


def by_key(found: Iterable[Object]) -> dict[Key, Object]:
    """Objects by kind, namespace and name. Raises AssertionError if one occurs twice."""
    listed = list(found)
    keyed = {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in listed}
    assert len(keyed) == len(listed), "an object occurs twice"
    return keyed


def comparable(found: Iterable[Object]) -> dict[Key, Object]:
    """Objects without what differs between Helm and kubectl, and without the Namespace, which Helm creates."""
    return by_key(_stripped(each) for each in found if each["kind"] != "Namespace")


def _stripped(each: Object) -> Object:
    kept = {
        "labels": {key: value for key, value in each["metadata"].get("labels", {}).items() if key not in OF_HELM},
        "annotations": {key: value for key, value in each["metadata"].get("annotations", {}).items() if key != KEEP},
    }
    found = deepcopy({**each, "metadata": {**each["metadata"], **kept}})
    if each["kind"] == "Deployment":
        for container in containers([found]):
            # A patch of kustomize moves a variable to the front. No variable refers to another one.
            container["env"].sort(key=itemgetter("name"))
    return found
