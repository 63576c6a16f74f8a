"""What follows from a spec: the settings in effect, and which fields a change of the pods concerns."""

from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from memcached_api.memcachedproxy import limits
from memcached_api.memcachedproxy.limits import Load
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY, MemcachedProxySpec, Timeouts, needs_agent
from memcached_api.quantity import canonical_resource, parse_quantity
from memcached_api.shared.resources import ResourceList, complete, limits_and_requests


class Settings(NamedTuple):
    """The settings of memcached, including defaults. Timeouts are in seconds."""

    threads: int
    connections: int
    connect_timeout: Decimal
    read_timeout: Decimal


def settings(spec: MemcachedProxySpec) -> Settings:
    """The settings of a valid spec."""
    timeouts = spec.timeouts or Timeouts()
    return Settings(
        limits.DEFAULT_THREADS if spec.threads is None else spec.threads,
        limits.DEFAULT_CONNECTIONS if spec.max_connections is None else spec.max_connections,
        limits.seconds(timeouts.connect or limits.DEFAULT_TIMEOUT),
        limits.seconds(timeouts.read or limits.DEFAULT_TIMEOUT),
    )


def load_of(spec: MemcachedProxySpec) -> Load:
    """The settings on which the memory depends."""
    effective = settings(spec)
    return Load(effective.connections, effective.threads, spec.tls is not None)


def requirements(spec: MemcachedProxySpec, item_size: int) -> dict[str, ResourceList]:
    """The `resources` of the container in canonical form. Values from the spec take precedence.

    `item_size`: the largest item of the servers, in bytes.
    """
    memory = canonical_resource(limits.default_memory(load_of(spec), item_size))
    return complete(*limits_and_requests(spec.resources), limits.REQUEST_CPU, memory, memory)


def buffers(spec: MemcachedProxySpec, item_size: int) -> int:
    """The values in flight, in KiB, for which the memory limit of the container has space."""
    limit = requirements(spec, item_size)["limits"]["memory"]
    return limits.buffers(load_of(spec), parse_quantity(limit))


def changed_fields(new: MemcachedProxySpec, old: MemcachedProxySpec) -> list[str]:
    """The paths of the changed fields that replace the pods. Both specs must be valid.

    Metrics need an agent. If the pods have one anyway, for TLS, they stay as they are.
    """
    names = MEMCACHEDPROXY.changed_fields(_without_unused(new), _without_unused(old))
    same = needs_agent(new) == needs_agent(old)
    return [name for name in names if not (same and name == "spec.monitoring.enabled")]


def _without_unused(spec: MemcachedProxySpec) -> MemcachedProxySpec:
    """The spec without the settings of an agent that does not run."""
    return spec if needs_agent(spec) else replace(spec, agent=None)
