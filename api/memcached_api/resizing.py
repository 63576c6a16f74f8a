"""Resizes of running pods (KEP-1287): they change amounts of CPU and memory, but neither add nor remove an amount."""

from collections.abc import Mapping
from typing import Any, Final

from memcached_api.quantity import parse_quantity, shortest_resource

Amounts = Mapping[str, Mapping[str, str]]
"""The `resources` of a container: its `limits` and `requests` by resource."""

RESIZABLE: Final = ("cpu", "memory")
"""The resources whose amounts Kubernetes can change."""
PARTS: Final = ("limits", "requests")


def shape(containers: Mapping[str, Amounts]) -> list[Any]:
    """The properties that a resize cannot change: the names of the amounts, and whether the QoS class is Guaranteed.

    They include the amounts of other resources than CPU and memory. `containers`: the amounts of each container of a
    pod, by name, in the order of the pod. The result can be encoded as JSON; its form is part of what pods are compared
    with, and must stay the same.
    """
    fixed = [[name, {part: _fixed(amounts.get(part, {})) for part in PARTS}] for name, amounts in containers.items()]
    return [*fixed, all(map(_is_guaranteed, containers.values()))]


def by_value(amounts: Amounts) -> dict[str, dict[str, str]]:
    """Amounts in a form that depends on their values only. Raises ValueError if one is not a quantity."""
    return {
        part: {name: shortest_resource(text) for name, text in quantities.items()}
        for part, quantities in amounts.items()
    }


def are_amounts(containers: Mapping[str, Amounts]) -> bool:
    """Whether all amounts, by container, are quantities."""
    try:
        for amounts in containers.values():
            by_value(amounts)
    except ValueError:
        return False
    return True


def _fixed(amounts: Mapping[str, str]) -> dict[str, str]:
    return {name: "" if name in RESIZABLE else amounts[name] for name in sorted(amounts)}


def _is_guaranteed(amounts: Amounts) -> bool:
    limits, requests = amounts.get("limits", {}), amounts.get("requests", {})
    return all(
        name in limits and parse_quantity(requests.get(name, limits[name])) == parse_quantity(limits[name])
        for name in RESIZABLE
    )
