"""How the ports of a spec become ports of the container and of the Service (docs/decisions/appservice-ports.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from memcached_api.kubernetes import ServicePort

Target = tuple[str, int]
"""Protocol and number of a port that the program listens on."""

Live = Sequence[Mapping[str, Any]]
"""The ports of the Service as it is; empty while there is none."""


def container_ports(ports: Sequence[ServicePort]) -> list[dict[str, Any]]:
    """One entry for each port the program listens on.

    It has a name only where a target port says that name: what concerns the Service alone never replaces a pod.
    """
    names = _names(ports)
    return [
        {"containerPort": number, "protocol": protocol}
        | ({"name": names[protocol, number]} if (protocol, number) in names else {})
        for protocol, number in dict.fromkeys(_targets(ports))
    ]


def service_ports(ports: Sequence[ServicePort], live: Live) -> list[dict[str, Any]]:
    """The Service's ports. Where the spec names no node port, the one that is in use stays."""
    names = _names(ports)
    entries: list[dict[str, Any]] = []
    for port, target in zip(ports, _targets(ports), strict=True):
        optional = {
            "name": port.name,
            "nodePort": port.node_port or _kept(port, ports, live),
            "appProtocol": port.app_protocol,
        }
        entries.append(
            {
                "port": port.port,
                "protocol": port.protocol,
                "targetPort": names[target] if isinstance(port.target_port, str) else target[1],
            }
            | {field: value for field, value in optional.items() if value is not None}
        )
    return entries


def _targets(ports: Sequence[ServicePort]) -> list[Target]:
    """The target of each port, with names looked up. The rules see to it that every name is there."""
    named = {(port.protocol, port.name): port.target_port for port in ports if isinstance(port.target_port, int)}
    return [(port.protocol, named.get((port.protocol, str(port.target_port))) or _number(port)) for port in ports]


def _number(port: ServicePort) -> int:
    return port.target_port if isinstance(port.target_port, int) else port.port


def _names(ports: Sequence[ServicePort]) -> dict[Target, str]:
    """The name of each target that is said by name; the first one, because a container's port has but one."""
    names: dict[Target, str] = {}
    for port, target in zip(ports, _targets(ports), strict=True):
        if isinstance(port.target_port, str):
            names.setdefault(target, port.target_port)
    return names


def _kept(port: ServicePort, ports: Sequence[ServicePort], live: Live) -> int | None:
    """The node port this port has already: as the same port of the Service, or as the one of its name that moved.

    None, too, where the spec gives that node port to another port.
    """
    wanted = {(other.protocol, other.port) for other in ports}
    places = {(entry["protocol"], entry["port"]): entry for entry in live}
    moved = {(place[0], entry.get("name")): entry for place, entry in places.items() if place not in wanted}
    entry = places.get((port.protocol, port.port)) or moved.get((port.protocol, port.name)) or {}
    named = {(other.protocol, other.node_port) for other in ports}
    return None if (port.protocol, entry.get("nodePort")) in named else entry.get("nodePort")
