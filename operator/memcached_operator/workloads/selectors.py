"""Label selectors, as Kubernetes evaluates them."""

from collections.abc import Mapping
from typing import Any

from memcached_operator.kube.resource import nested_list, nested_map


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """True if a LabelSelector selects an object with these labels. An empty one selects every object."""
    exact = nested_map(selector, "matchLabels")
    return all(labels.get(key) == value for key, value in exact.items()) and all(
        _holds(requirement, labels) for requirement in nested_list(selector, "matchExpressions")
    )


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
