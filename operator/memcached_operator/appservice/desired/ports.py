"""Maps the ports of a spec to ports of the container and of the Service (docs/decisions/appservice-ports.md)."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from memcached_api.appservice.ports import generated_name, listening_ports, targets
from memcached_api.kubernetes import ServicePort


class ServiceEntry(TypedDict):
    """An entry of `spec.ports` of a Service."""

    port: int
    protocol: str
    targetPort: int | str | None
    name: NotRequired[str]
    nodePort: NotRequired[int]
    appProtocol: NotRequired[str]


LivePorts = Sequence[ServiceEntry]
"""The ports of the live Service; empty if the Service does not exist."""

REALLOCATE = 0
"""Value of `nodePort` that makes Kubernetes allocate a new node port."""


def container_ports(ports: Sequence[ServicePort]) -> list[dict[str, int | str]]:
    """One entry for each port that the container listens on.

    An entry has a name only if a `targetPort` refers to it. So a change that affects only the Service never replaces a
    pod.
    """
    return [
        {"containerPort": number, "protocol": protocol} | ({"name": name} if name else {})
        for (protocol, number), name in listening_ports(ports).items()
    ]


def service_ports(ports: Sequence[ServicePort], live: LivePorts) -> list[ServiceEntry]:
    """The ports of the Service. A port without `nodePort` in the spec keeps its allocated node port."""
    names, allocated = listening_ports(ports), _AllocatedNodePorts(ports, live)
    entries: list[ServiceEntry] = []
    for port, target in zip(ports, targets(ports), strict=True):
        entry: ServiceEntry = {
            "port": port.port,
            "protocol": port.protocol,
            "targetPort": names[target] if isinstance(port.target_port, str) else target[1],
        }
        if port.name is not None:
            entry["name"] = port.name
        node_port = allocated.of(port) if port.node_port is None else port.node_port
        if node_port is not None:
            entry["nodePort"] = node_port
        if port.app_protocol is not None:
            entry["appProtocol"] = port.app_protocol
        entries.append(entry)
    return entries


class _AllocatedNodePorts:
    """The node ports that are allocated to ports of the live Service."""

    def __init__(self, ports: Sequence[ServicePort], live: LivePorts) -> None:
        self._requested = {(port.protocol, port.node_port) for port in ports}
        self._by_port = {(entry["protocol"], entry["port"]): entry for entry in live}
        desired = {(port.protocol, port.port) for port in ports}
        self._removed = [entry for port, entry in self._by_port.items() if port not in desired]
        self._new = [port for port in ports if (port.protocol, port.port) not in self._by_port]

    def of(self, port: ServicePort) -> int | None:
        """The node port allocated to the same port number, or to a port of the same name whose number has changed.

        Returns None if no node port is allocated, and REALLOCATE if the spec assigns it to another port.
        """
        entry = self._by_port.get((port.protocol, port.port)) or self._moved(port)
        node_port = None if entry is None else entry.get("nodePort")
        # Omitting the field would keep its value: the operator does not own a field that Kubernetes allocated.
        return REALLOCATE if node_port and (port.protocol, node_port) in self._requested else node_port

    def _moved(self, port: ServicePort) -> ServiceEntry | None:
        """The live entry of this port before its number changed; None unless there is exactly one candidate."""
        identity = _identity(port.protocol, port.port, port.name)
        removed = [
            entry
            for entry in self._removed
            if identity == _identity(entry["protocol"], entry["port"], entry.get("name"))
        ]
        new = [other for other in self._new if identity == _identity(other.protocol, other.port, other.name)]
        return removed[0] if len(removed) == len(new) == 1 else None


def _identity(protocol: str, number: int, name: str | None) -> tuple[str, str | None]:
    """The parts of a port that do not change with its number. A generated name contains the number and is left out."""
    return protocol, None if name == generated_name(protocol, number) else name
