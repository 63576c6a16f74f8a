"""Maps the ports of an AppService to container ports (docs/decisions/appservice-ports.md)."""

from collections.abc import Collection, Sequence
from typing import Final

from memcached_api.kubernetes import ServicePort

Target = tuple[str, int]
"""Protocol and number of a port that the container listens on."""

DEFAULT_PROTOCOL: Final = "TCP"


def targets(ports: Sequence[ServicePort]) -> list[Target]:
    """The target of each port, with names resolved. The rules ensure that every name exists."""
    named = {(port.protocol, port.name): port.target_port for port in ports if isinstance(port.target_port, int)}
    return [(port.protocol, _number(port, named.get((port.protocol, str(port.target_port))))) for port in ports]


def _number(port: ServicePort, named_target: int | None) -> int:
    if isinstance(port.target_port, int):
        return port.target_port
    return named_target or port.port


def listening_ports(ports: Sequence[ServicePort]) -> dict[Target, str | None]:
    """Every port that the container listens on, sorted, with the name by which a `targetPort` refers to it.

    If there are several names, the first in alphabetical order is used, because a container port has one name. So the
    order of the ports in a spec does not affect the pods.
    """
    names: dict[Target, str | None] = {}
    for target, port in sorted(
        zip(targets(ports), ports, strict=True), key=lambda pair: (pair[0], _target_name(pair[1]))
    ):
        names[target] = names.get(target) or _target_name(port) or None
    return names


def _target_name(port: ServicePort) -> str:
    return port.target_port if isinstance(port.target_port, str) else ""


def generated_name(protocol: str, number: int, used_names: Collection[str] = ()) -> str:
    """The name for a port without a name. Kubernetes requires names if there are several ports."""
    name = f"{protocol.lower()}-{number}"
    tries = (f"{name}-{count}" for count in range(2, len(used_names) + 3))
    return next(candidate for candidate in (name, *tries) if candidate not in used_names)
