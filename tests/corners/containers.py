"""What the operator makes of a Memcached object: the command of its container, and the memory that it may use."""

from collections.abc import Mapping
from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple

from corners.warm import ITEMS
from memcached_api.memcached import memory
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MemcachedSpec, decode_spec, restarts_warm
from memcached_api.quantity import parse_quantity
from memcached_operator.memcached.desired.pods import command
from memcached_operator.memcached.desired.secrets import local_port
from support.memcached import memcached

Spec = Mapping[str, Any]


class Container(NamedTuple):
    """The container of a Memcached. Amounts are in bytes."""

    command: list[str]
    port: int
    limit: int
    """Its memory limit: the one in the spec, else the derived one."""
    floor: int
    """The smallest memory limit that admission accepts for this cache."""
    cache: int
    connections: int
    local_port: int
    """Where memcached listens without TLS, at least on the loopback address."""


def container(spec: Spec) -> Container:
    """The container for a spec, valid or not. Raises SpecDecodeError or ValueError if there is none."""
    decoded = decode_spec(memcached("default", **spec))
    found = resolved(decoded)
    return Container(
        [*command(decoded), *(["-e", ITEMS] if restarts_warm(decoded) else [])],
        decoded.container_port,
        limit_of(decoded),
        ceil(memory.exact_minimum(found.memory, found.settings)),
        found.memory,
        found.settings.connections,
        local_port(decoded),
    )


def limit_of(spec: MemcachedSpec) -> int:
    """The memory limit of the container."""
    return int(Decimal(parse_quantity(requirements(spec)["limits"]["memory"])))
