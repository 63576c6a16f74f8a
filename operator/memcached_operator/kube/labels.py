"""The labels of every child, which also map a child to its custom resource."""

from collections.abc import Mapping
from typing import Any

from memcached_operator.kube.resource import Object, nested_map

NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
MANAGED_BY = "app.kubernetes.io/managed-by"
COMPONENT = "app.kubernetes.io/component"

MANAGER = "memcached-operator"
SELECTOR = f"{MANAGED_BY}={MANAGER}"
"""Label selector of all watches except those of custom resources."""


def selector_labels(app_name: str, instance: str) -> dict[str, str]:
    """The labels that select the pods of one object. No version and no image: a selector is immutable."""
    return {NAME: app_name, INSTANCE: instance, MANAGED_BY: MANAGER}


def own_labels(found: Mapping[str, str]) -> dict[str, str]:
    """The operator's labels among the labels of a child, without those of the spec, which can change."""
    return {name: value for name, value in found.items() if name in (NAME, INSTANCE, MANAGED_BY, COMPONENT)}


def selector(app_name: str, instance: str) -> str:
    """The same labels as a selector string, for `/scale` and `kubectl get -l`."""
    return ",".join(f"{name}={value}" for name, value in sorted(selector_labels(app_name, instance).items()))


def has(obj: Object, labels: Mapping[str, Any]) -> bool:
    """True if the object has all these labels."""
    present = nested_map(obj, "metadata", "labels")
    return all(present.get(name) == value for name, value in labels.items())
