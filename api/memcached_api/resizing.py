"""What Kubernetes can change in running pods: amounts of CPU and memory (KEP-1287), but not which amounts there are."""

from collections.abc import Mapping
from typing import Any, Final

from memcached_api.quantity import parse_quantity, shortest_resource

Amounts = Mapping[str, Mapping[str, str]]
"""The `resources` of a container: its `limits` and `requests` by resource."""

RESIZABLE: Final = ("cpu", "memory")
"""The resources whose amounts Kubernetes can change."""
PARTS: Final = ("limits", "requests")


def shape(containers: Mapping[str, Amounts]) -> list[Any]:
    """What a resize cannot change: which amounts are set, those of other resources, and the QoS class Guaranteed.

    `containers`: the amounts of each container of a pod, by name, in the order of the pod. The result can be encoded as
    JSON; its form is part of what pods are compared with, and must stay the same.
    """
    fixed = [[name, {part: _fixed(found.get(part, {})) for part in PARTS}] for name, found in containers.items()]
    return [*fixed, all(map(_is_guaranteed, containers.values()))]


def by_value(found: Amounts) -> dict[str, dict[str, str]]:
    """Amounts in a form that depends on their values only. Raises ValueError if one is not a quantity."""
    return {part: {name: shortest_resource(text) for name, text in each.items()} for part, each in found.items()}


def are_amounts(found: Mapping[str, Amounts]) -> bool:
    """Whether all amounts, by container, are quantities."""
    try:
        for each in found.values():
            by_value(each)
    except ValueError:
        return False
    return True


def _fixed(amounts: Mapping[str, str]) -> dict[str, str]:
    return {name: "" if name in RESIZABLE else amounts[name] for name in sorted(amounts)}


def _is_guaranteed(found: Amounts) -> bool:
    limits, requests = found.get("limits", {}), found.get("requests", {})
    return all(
        name in limits and parse_quantity(requests.get(name, limits[name])) == parse_quantity(limits[name])
        for name in RESIZABLE
    )
