"""Requests and limits of the memcached container. Values from the spec take precedence; the others are derived."""

from memcached_api.memcached.extstore import EMPTY_DIR
from memcached_api.memcached.memory import default_limit, mebibytes_text
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.quantity import canonical_resource
from memcached_api.shared.resources import ResourceList, complete, larger, limits_and_requests

STORAGE = "ephemeral-storage"
REQUEST_CPU = "100m"
"""Default CPU request: enough for fair scheduling, because memcached is rarely CPU-bound."""


def requirements(spec: MemcachedSpec) -> dict[str, ResourceList]:
    """The container's `resources` in canonical form, as the API server stores them.

    The derived memory request equals the derived limit, from the measured memory need of the cache. A derived request
    never exceeds a limit from the spec, and a derived limit is never below a request from the spec.
    """
    limits, requests = limits_and_requests(spec.resources)
    memory = _memory(spec, limits.get("memory"))
    return complete(limits, requests | _disk(spec, requests), REQUEST_CPU, memory, memory)


def _disk(spec: MemcachedSpec, requests: ResourceList) -> ResourceList:
    """The request for the disk of the node, if the items are there: at least their size."""
    disk = spec.cache.extstore
    if disk is None or disk.volume != EMPTY_DIR:
        return {}
    size = canonical_resource(disk.size)
    return {STORAGE: larger(size, requests.get(STORAGE, size))}


def _memory(spec: MemcachedSpec, limit: str | None) -> str:
    """The memory for the cache: the limit if the cache is derived from it."""
    if limit is not None and spec.cache.memory is None:
        return limit
    memory, settings, _ = resolved(spec)
    return canonical_resource(mebibytes_text(default_limit(memory, settings)))
