"""How the ports of a spec become ports of the container and of the Service (docs/decisions/appservice-ports.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from memcached_api.appservice_ports import generated_name, listened, targets
from memcached_api.kubernetes import ServicePort

Live = Sequence[Mapping[str, Any]]
"""The ports of the Service as it is; empty while there is none."""

ANOTHER = 0
"""A node port that tells Kubernetes to allocate another one than the port has."""


def container_ports(ports: Sequence[ServicePort]) -> list[dict[str, Any]]:
    """One entry for each port the program listens on.

    It has a name only where a target port says that name: what concerns the Service alone never replaces a pod.
    """
    return [
        {"containerPort": number, "protocol": protocol} | ({"name": name} if name else {})
        for (protocol, number), name in listened(ports).items()
    ]


def service_ports(ports: Sequence[ServicePort], live: Live) -> list[dict[str, Any]]:
    """The Service's ports. Where the spec names no node port, the one that is in use stays."""
    names, kept = listened(ports), _Kept(ports, live)
    entries: list[dict[str, Any]] = []
    for port, target in zip(ports, targets(ports), strict=True):
        optional = {
            "name": port.name,
            "nodePort": kept.of(port) if port.node_port is None else port.node_port,
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


class _Kept:
    """The node ports that ports have already, and keep."""

    def __init__(self, ports: Sequence[ServicePort], live: Live) -> None:
        self._named = {(port.protocol, port.node_port) for port in ports}
        self._places = {(entry["protocol"], entry["port"]): entry for entry in live}
        wanted = {(port.protocol, port.port) for port in ports}
        self._removed = [entry for place, entry in self._places.items() if place not in wanted]
        self._new = [port for port in ports if (port.protocol, port.port) not in self._places]

    def of(self, port: ServicePort) -> int | None:
        """That of the same number, else that of the one port of this name that moved; ANOTHER where it is given away.

        None where there is none yet.
        """
        entry = self._places.get((port.protocol, port.port)) or self._moved(port)
        node_port = entry.get("nodePort")
        # Left out, the field would stay as it is: nobody owns what Kubernetes filled in.
        return ANOTHER if node_port and (port.protocol, node_port) in self._named else node_port

    def _moved(self, port: ServicePort) -> Mapping[str, Any]:
        """The entry this one was before its number changed. Without a name of its own it must be the only candidate."""
        identity = _identity(port.protocol, port.port, port.name)
        gone = [
            entry
            for entry in self._removed
            if identity == _identity(entry["protocol"], entry["port"], entry.get("name"))
        ]
        new = [other for other in self._new if identity == _identity(other.protocol, other.port, other.name)]
        return gone[0] if len(gone) == len(new) == 1 else {}


def _identity(protocol: str, number: int, name: str | None) -> tuple[str, str | None]:
    """What stays of a port while its number changes. A generated name changes with the number, and says nothing."""
    return protocol, None if name == generated_name(protocol, number) else name
