"""Requests and limits of the memcached container. Values from the spec take precedence; the others are derived."""

from decimal import Decimal

from memcached_api.kubernetes import ResourceRequirements
from memcached_api.memcached.agent import AGENT_CPU, AGENT_LIMIT, AGENT_REQUEST
from memcached_api.memcached.effective import effective
from memcached_api.memcached.memory import default_limit, mebibytes_text
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.quantity import canonical_resource, canonical_resource_list, parse_quantity

ResourceList = dict[str, str]

REQUEST_CPU = "100m"
"""Default CPU request: enough for fair scheduling, because memcached is rarely CPU-bound."""


def requirements(spec: MemcachedSpec) -> dict[str, ResourceList]:
    """The container's `resources` in canonical form, as the API server stores them.

    The derived memory request equals the derived limit, from the measured memory need of the cache. A derived request
    never exceeds a limit from the spec, and a derived limit is never below a request from the spec.
    """
    limits, requests = _limits_and_requests(spec.resources)
    memory = _memory(spec, limits.get("memory"))
    return _complete(limits, requests, REQUEST_CPU, memory, memory)


def agent_requirements(resources: ResourceRequirements | None) -> dict[str, ResourceList]:
    """The `resources` of the agent's container in canonical form. Values from the spec take precedence.

    A default request never exceeds a limit from the spec, and the default limit is never below a request from the spec.
    """
    return _complete(*_limits_and_requests(resources), AGENT_CPU, AGENT_REQUEST, AGENT_LIMIT)


def _limits_and_requests(resources: ResourceRequirements | None) -> tuple[ResourceList, ResourceList]:
    """The limits and requests of a spec in canonical form."""
    if resources is None:
        return {}, {}
    return canonical_resource_list(resources.limits), canonical_resource_list(resources.requests)


def _complete(
    limits: ResourceList, requests: ResourceList, cpu: str, request: str, limit: str
) -> dict[str, ResourceList]:
    """Requests and limits with defaults: `cpu` and `request` (memory) for requests, `limit` (memory) for limits."""
    defaults = {
        "cpu": _smaller(cpu, limits.get("cpu", cpu)),
        "memory": _smaller(request, limits.get("memory", request)),
    }
    memory = _larger(limit, requests.get("memory", limit))
    return {"limits": {"memory": memory} | limits, "requests": defaults | requests}


def _memory(spec: MemcachedSpec, limit: str | None) -> str:
    """The memory for the cache: the limit if the cache is derived from it."""
    if limit is not None and spec.cache.memory is None:
        return limit
    memory, settings, _ = effective(spec)
    return canonical_resource(mebibytes_text(default_limit(memory, settings)))


def _smaller(first: str, second: str) -> str:
    return min(first, second, key=_amount)


def _larger(first: str, second: str) -> str:
    return max(first, second, key=_amount)


def _amount(quantity: str) -> Decimal:
    return parse_quantity(quantity)
