"""The fields whose value a child gets as it is: two values of the whole field, instead of cases for each of its parts.

Together, the two values have every part (tests/integration/test_fields.py).
"""

from collections.abc import Mapping
from typing import Any

from memcached_operator.kube.resource import Object

RULES, WISHES = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def _selector(text: str) -> Object:
    requirement = {"key": "tier", "operator": "In", "values": [text]}
    return {"matchLabels": {"app": text}, "matchExpressions": [requirement]}


def _near(text: str) -> Object:
    return {RULES: [_pods(text)], WISHES: [{"weight": 5, "podAffinityTerm": _pods(text)}]}


def _pods(text: str) -> Object:
    selectors = {"labelSelector": _selector(text), "namespaceSelector": _selector(text)}
    keys = {"matchLabelKeys": [f"{text}-a"], "mismatchLabelKeys": [f"{text}-b"]}
    return {"topologyKey": "kubernetes.io/hostname", "namespaces": [text], **selectors, **keys}


def _nodes(text: str) -> Object:
    requirement = {"operator": "NotIn", "values": [text]}
    return {
        "matchExpressions": [{"key": "kubernetes.io/os", **requirement}],
        "matchFields": [{"key": "metadata.name", **requirement}],
    }


def _affinity(text: str) -> Object:
    nodes = {RULES: {"nodeSelectorTerms": [_nodes(text)]}, WISHES: [{"weight": 5, "preference": _nodes(text)}]}
    return {"nodeAffinity": nodes, "podAffinity": _near(text), "podAntiAffinity": _near(text)}


WHOLES: Mapping[str, tuple[Any, Any]] = {
    "affinity": (_affinity("aa"), _affinity("bb")),
    "tolerations[]": (
        {"key": "aa", "operator": "Equal", "value": "bb", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": "bb", "operator": "Exists", "effect": "NoSchedule"},
    ),
    "topologySpreadConstraints[]": (
        {
            "maxSkew": 2,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": _selector("aa"),
            "matchLabelKeys": ["pod-template-hash"],
            "minDomains": 1,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        },
        # Without a selector: the child gets the one of the object's pods.
        {"maxSkew": 1, "topologyKey": "kubernetes.io/os", "whenUnsatisfiable": "ScheduleAnyway"},
    ),
    "seccompProfile": ({"type": "Localhost", "localhostProfile": "profiles/aa.json"}, {"type": "RuntimeDefault"}),
    "podSelector": (_selector("aa"), _selector("bb")),
    "namespaceSelector": (_selector("aa"), _selector("bb")),
}
"""Two values of each of these fields, by the last name of its path. The first is not the default.

The operator does not read their parts: the types are those of Kubernetes, the API server checks the values when it gets
the child, and many are valid only together, such as `operator` and `values`.
"""
