"""The settings and ports of a memcached server, and the pace of a rollout, resolved from a spec that sets only some.

What the spec does not set is a default, or follows from its other fields.
"""

from typing import Any, NamedTuple

from memcached_api.memcached import extstore, memory
from memcached_api.memcached.extstore import Extstore
from memcached_api.memcached.memory import Settings
from memcached_api.memcached.options import hashpower_of
from memcached_api.memcached.types import DEFAULT_VERBOSITY, MemcachedSpec, is_stable
from memcached_api.quantity import parse_quantity
from memcached_api.shared.budgets import DEFAULT_MAX_UNAVAILABLE, budget_of, pods_of
from memcached_api.shared.pod_template import pod_security_context


class Resolved(NamedTuple):
    """The resolved settings. Sizes are in bytes; memcached uses whole mebibytes of `memory`."""

    memory: int
    settings: Settings
    item_size: int


def resolved(spec: MemcachedSpec) -> Resolved:
    """The settings of a valid spec. Without `cache.memory`, it is derived from the memory limit if there is one."""
    cache = spec.cache
    item_size = memory.DEFAULT_ITEM_SIZE if cache.max_item_size is None else int(parse_quantity(cache.max_item_size))
    settings = memory.settings_of(
        cache.max_connections,
        cache.threads,
        tls=spec.tls is not None,
        hashpower=hashpower_of(cache.extra_args),
        disk=_disk(cache.extstore, item_size),
    )
    return Resolved(_memory(spec, settings), settings, item_size)


def _disk(disk: Extstore | None, item_size: int) -> int:
    return 0 if disk is None else extstore.memory_of(parse_quantity(disk.size), item_size, disk.threads)


def _memory(spec: MemcachedSpec, settings: Settings) -> int:
    limit = None if spec.resources is None else spec.resources.limits.get("memory")
    if spec.cache.memory is not None:
        return memory.cache_bytes(spec.cache.memory)
    return memory.DEFAULT_CACHE if limit is None else memory.derived_cache(parse_quantity(limit), settings)


def security_context(spec: MemcachedSpec) -> dict[str, Any]:
    """The security context of the pods. By default, the group of memcached owns the volume of a claim."""
    given = spec.pod_template and spec.pod_template.spec.security_context
    context = pod_security_context(given)
    if given is not None or spec.cache.extstore is None or spec.cache.extstore.volume == extstore.EMPTY_DIR:
        return context
    return context | {"fsGroup": context["runAsGroup"], "fsGroupChangePolicy": "OnRootMismatch"}


def verbosity(spec: MemcachedSpec) -> int:
    """The number of `-v` on the command line of memcached."""
    return DEFAULT_VERBOSITY if spec.cache.verbosity is None else spec.cache.verbosity


class Ports(NamedTuple):
    """The ports on which memcached serves clients without TLS and with TLS; at least one is set."""

    plain: int | None = None
    tls: int | None = None

    @property
    def default(self) -> int:
        """The port of clients that do not choose: without TLS while there is one."""
        port = self.plain or self.tls
        if port is None:
            raise ValueError("memcached has no port")
        return port


def ports(spec: MemcachedSpec) -> Ports:
    """The ports of a spec."""
    if spec.tls is None:
        return Ports(plain=spec.container_port)
    plain = spec.container_port if spec.tls.plaintext == "Enabled" else None
    return Ports(plain, spec.tls.port or spec.container_port)


def requested_slots(spec: MemcachedSpec) -> int:
    """The number of slots that `rollout.maxUnavailable` allows, from 1 to `size`.

    Rounded down, but at least 1: so does a Deployment whose `maxSurge` is 0.
    """
    value = spec.rollout.max_unavailable if spec.rollout else None
    wanted = DEFAULT_MAX_UNAVAILABLE if value is None else pods_of(value, spec.size, round_up=False)
    return max(DEFAULT_MAX_UNAVAILABLE, min(wanted, spec.size))


def slots_at_once(spec: MemcachedSpec) -> int:
    """The maximum of slots that are changed or not ready at once: what both the rollout and the budget allow.

    1 with `identity: Pooled`, which has no slots.
    """
    if not is_stable(spec):
        return DEFAULT_MAX_UNAVAILABLE
    wanted, budget = requested_slots(spec), budget_of(spec.pod_disruption_budget, spec.size)
    return wanted if budget is None else max(DEFAULT_MAX_UNAVAILABLE, min(wanted, budget))
