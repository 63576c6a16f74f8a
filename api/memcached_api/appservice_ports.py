"""What the ports of an AppService mean for its program (docs/decisions/appservice-ports.md)."""

from collections.abc import Collection, Sequence
from typing import Final

from .kubernetes import ServicePort

Target = tuple[str, int]
"""Protocol and number of a port that the program listens on."""

DEFAULT_PROTOCOL: Final = "TCP"


def targets(ports: Sequence[ServicePort]) -> list[Target]:
    """The target of each port, with names looked up. The rules see to it that every name is there."""
    named = {(port.protocol, port.name): port.target_port for port in ports if isinstance(port.target_port, int)}
    return [(port.protocol, _number(port, named.get((port.protocol, str(port.target_port))))) for port in ports]


def _number(port: ServicePort, found: int | None) -> int:
    if isinstance(port.target_port, int):
        return port.target_port
    return found or port.port


def listening_ports(ports: Sequence[ServicePort]) -> dict[Target, str | None]:
    """Every port the program listens on, sorted, with the name that a target port says of it.

    Of several names the first in order counts, because a container's port has but one: the order of the ports in a
    spec never matters to a pod.
    """
    found: dict[Target, str | None] = {}
    for target, port in sorted(zip(targets(ports), ports, strict=True), key=lambda pair: (pair[0], _said(pair[1]))):
        found[target] = found.get(target) or _said(port) or None
    return found


def _said(port: ServicePort) -> str:
    return port.target_port if isinstance(port.target_port, str) else ""


def generated_name(protocol: str, number: int, taken: Collection[str] = ()) -> str:
    """The name of a port beside others that has none of its own: Kubernetes demands one there."""
    name = f"{protocol.lower()}-{number}"
    tries = (f"{name}-{count}" for count in range(2, len(taken) + 3))
    return next(candidate for candidate in (name, *tries) if candidate not in taken)
