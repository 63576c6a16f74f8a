"""The DNS names of a Memcached."""

from collections.abc import Iterator
from typing import Final

from memcached_api.memcached.rules.spec import MAX_SERVICES
from memcached_operator.kube.resource import CONFIG_MAPS, SERVICES, Object, Resource
from memcached_operator.parts.dns import host

CONNECTION_SUFFIX = "-connection"
"""The suffix of the name of the ConfigMap with the addresses."""

_SLOTS: Final = frozenset(map(str, range(MAX_SERVICES)))
"""The slots that can have a Service, as in its name."""


def slot_name(cr: Object, slot: int) -> str:
    """The name of the pod of a slot, and of the slot's Service."""
    return f"{cr['metadata']['name']}-{slot}"


def owners(resource: Resource, name: str) -> Iterator[tuple[str, int]]:
    """The names of the Memcacheds that can have a child of this name, and the size that each must have at least."""
    if resource == CONFIG_MAPS:
        if name.endswith(CONNECTION_SUFFIX):
            yield name.removesuffix(CONNECTION_SUFFIX), 0
        return
    yield name, 0
    instance, _, slot = name.rpartition("-")
    if resource == SERVICES and instance and slot in _SLOTS:
        yield instance, int(slot) + 1


def servers(cr: Object, size: int, port: int, domain: str) -> list[str]:
    """The address of each slot, `host:port`, in the order of the slots."""
    return [f"{slot_name(cr, slot)}.{host(cr, domain)}:{port}" for slot in range(size)]


def fixed_servers(cr: Object, size: int, port: int, domain: str) -> list[str]:
    """The address of each slot's own Service, `host:port`, in the order of the slots."""
    return [f"{host(cr, domain, slot_name(cr, slot))}:{port}" for slot in range(size)]
