"""Resizes of running pods (KEP-1287): they change and add amounts of CPU and memory, but remove none."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from memcached_api.quantity import parse_quantity, shortest_resource

Amounts = Mapping[str, Mapping[str, str]]
"""The `resources` of a container: its `limits` and `requests` by resource."""

RESIZABLE: Final = ("cpu", "memory")
"""The resources whose amounts Kubernetes can change."""
PARTS: Final = ("limits", "requests")


def shape(containers: Mapping[str, Amounts]) -> list[Any]:
    """The names of the amounts, the amounts of other resources than CPU and memory, and whether the QoS is Guaranteed.

    A resize changes them only by adding amounts of CPU and memory: see can_resize. `containers`: the amounts of each
    container of a pod, by name, in the order of the pod. The result can be encoded as JSON; its form is part of what
    pods are compared with, and must stay the same.
    """
    fixed = [[name, {part: _fixed(amounts.get(part, {})) for part in PARTS}] for name, amounts in containers.items()]
    return [*fixed, all(map(_is_guaranteed, containers.values()))]


def can_resize(new: Mapping[str, Amounts], old: Mapping[str, Amounts]) -> bool:
    """Whether a resize can change the amounts of the containers of a pod, by name, from old to new ones.

    It cannot remove an amount, change one of another resource than CPU and memory, or change the QoS class of the pod.
    """
    if new.keys() != old.keys() or _qos(new.values()) != _qos(old.values()):
        return False
    return all(_keeps(new[name].get(part, {}), old[name].get(part, {})) for name in old for part in PARTS)


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


def _keeps(new: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Whether all amounts of one part stay, and those of other resources than CPU and memory have the same values."""
    others = [{name: text for name, text in each.items() if name not in RESIZABLE} for each in (new, old)]
    return old.keys() <= new.keys() and others[0] == others[1]


def _qos(containers: Collection[Amounts]) -> str:
    """The QoS class of a pod."""
    if all(map(_is_guaranteed, containers)):
        return "Guaranteed"
    named = {name for amounts in containers for part in PARTS for name in amounts.get(part, {})}
    return "Burstable" if named & set(RESIZABLE) else "BestEffort"


def _is_guaranteed(amounts: Amounts) -> bool:
    limits, requests = amounts.get("limits", {}), amounts.get("requests", {})
    return all(
        name in limits and parse_quantity(requests.get(name, limits[name])) == parse_quantity(limits[name])
        for name in RESIZABLE
    )
