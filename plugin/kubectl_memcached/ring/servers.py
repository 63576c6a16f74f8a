"""The lists of servers that clients of a cache can have: names, addresses and ports in several forms."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.model.objects import Object, integer, mapping, strings, text
from kubectl_memcached.ring.placements import DEFAULT_PORT, Server

DOMAIN: Final = "cluster.local"
"""The DNS domain of most clusters, for caches without `status.servers`."""
OTHER_SIZES: Final = (1, -1, 2, -2)
"""Servers that a list can have more than the cache. Lists with fewer are old ones after the size was raised."""
WITHOUT_ONE: Final = 16
"""Servers of the largest list that is also tried without each of its servers, as after a failover."""


@dataclass(frozen=True)
class ServerList:
    """The list of a client. `label`: its form. `slots`: the number of the slot of each server."""

    label: str
    servers: tuple[Server, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """A way to write the servers of a cache: one for each slot, and for slots that existed or may exist."""

    label: str
    servers: Mapping[int, Server]

    def listed(self, slots: Sequence[int]) -> ServerList | None:
        """The list with these slots in this order. None if the name or address of one is not known."""
        if not all(slot in self.servers for slot in slots):
            return None
        return ServerList(self.label, tuple(self.servers[slot] for slot in slots), tuple(slots))


def forms(cr: Object, addresses: Mapping[int, str], services: Mapping[int, str], size: int) -> list[Form]:
    """The forms of the servers of a cache with `size` slots, the recommended ones first.

    `addresses`: IP addresses of pods. `services`: those of the slots' Services. Both can be empty.
    """
    by_name = [
        Form(label, {slot: Server(host(slot), port, known.get(slot, "")) for slot in range(size + max(OTHER_SIZES))})
        for label, host, known in _names(cr, addresses, services)
        for port in ports(cr)
    ]
    by_address = [
        Form(label, {slot: Server(address, port) for slot, address in known.items()})
        for label, known in (("addresses of pods", addresses), ("addresses of the slots' Services", services))
        for port in ports(cr)
        if known
    ]
    return by_address if is_pooled(cr) else by_name + by_address


def is_pooled(cr: Object) -> bool:
    """Whether the cache has pods without stable names."""
    return text(cr, "spec", "identity") != "Stable"


def ports(cr: Object) -> list[int]:
    """The ports of clients: that of `status.servers`, and those of the spec without and with TLS."""
    listed = [int(port) for server in strings(cr, "status", "servers") if (port := server.rpartition(":")[2]).isdigit()]
    plain = integer(cr, "spec", "containerPort") or DEFAULT_PORT
    tls = integer(mapping(cr, "spec", "tls"), "port")
    return list(dict.fromkeys([*listed[:1], plain, *([tls] if tls else [])]))


def _names(
    cr: Object, addresses: Mapping[int, str], services: Mapping[int, str]
) -> Iterable[tuple[str, "_Host", Mapping[int, str]]]:
    name, namespace = text(cr, "metadata", "name"), text(cr, "metadata", "namespace")
    full = f".svc.{_domain(cr, name, namespace)}"
    for suffix, label in (
        (f".{namespace}{full}", "full DNS names"),
        (f".{namespace}{full}.", "full DNS names with a dot at the end"),
        (f".{namespace}.svc", "DNS names with .svc"),
        (f".{namespace}", "DNS names with the namespace"),
        ("", "short DNS names"),
    ):
        yield f"{label} of pods", _Host(f"{name}-", f".{name}{suffix}"), addresses
        yield f"{label} of the slots' Services", _Host(f"{name}-", suffix), services


@dataclass(frozen=True)
class _Host:
    """The name of each slot."""

    before: str
    after: str

    def __call__(self, slot: int) -> str:
        return f"{self.before}{slot}{self.after}"


def _domain(cr: Object, name: str, namespace: str) -> str:
    """The DNS domain of the cluster, from the first server in the status."""
    start = f"{name}-0.{name}.{namespace}.svc."
    first = next(iter(strings(cr, "status", "servers")), "").rpartition(":")[0]
    return first.removeprefix(start) if first.startswith(start) else DOMAIN


def orders(addresses: Mapping[int, str], slots: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """The usual orders of these slots: theirs, sorted as text, and sorted by address if all are known."""
    found = [("in the order of the slots", tuple(slots)), ("sorted as text", tuple(sorted(slots, key=str)))]
    if all(slot in addresses for slot in slots):
        by_address = sorted(slots, key=lambda slot: _number(addresses[slot]))
        found += [
            ("sorted by address", tuple(by_address)),
            ("with addresses sorted as text", tuple(sorted(slots, key=lambda slot: addresses[slot]))),
        ]
    return list({order: (label, order) for label, order in reversed(found)}.values())[::-1]


def _number(address: str) -> int:
    try:
        return int(ipaddress.ip_address(address))
    except ValueError:
        return 0


def other_slots(size: int) -> list[tuple[int, ...]]:
    """The slots of lists other than the current one: more or fewer servers, or all except one."""
    sizes = [tuple(range(size + more)) for more in OTHER_SIZES if size + more >= 2]
    without = [tuple(slot for slot in range(size) if slot != gone) for gone in range(size - 1)]
    return [*sizes, *(without if 3 <= size <= WITHOUT_ONE else [])]
