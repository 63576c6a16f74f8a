"""The labels every child carries, and the way back from a child to the object it belongs to."""

from collections.abc import Mapping
from typing import Any

from memcached_operator.kube.resource import Object, mapping

NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
MANAGED_BY = "app.kubernetes.io/managed-by"
COMPONENT = "app.kubernetes.io/component"

MANAGER = "memcached-operator"
SELECTOR = f"{MANAGED_BY}={MANAGER}"
"""Label selector of everything the operator watches apart from its own kinds."""


def selector_labels(app_name: str, instance: str) -> dict[str, str]:
    """What selects the pods of one object: never a version or an image, because a selector cannot change."""
    return {NAME: app_name, INSTANCE: instance, MANAGED_BY: MANAGER}


def selector(app_name: str, instance: str) -> str:
    """The same in text form, as `/scale` and `kubectl get -l` take it."""
    return ",".join(f"{name}={value}" for name, value in sorted(selector_labels(app_name, instance).items()))


def has(obj: Object, labels: Mapping[str, Any]) -> bool:
    """True where an object carries all these labels."""
    own = mapping(obj, "metadata", "labels")
    return all(own.get(name) == value for name, value in labels.items())
