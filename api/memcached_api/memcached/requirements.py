"""Requests and limits of the memcached container. Values from the spec take precedence; the others are derived."""

from decimal import Decimal

from memcached_api.kubernetes import ResourceRequirements
from memcached_api.memcached.effective import effective
from memcached_api.memcached.memory import default_limit, mebibytes_text
from memcached_api.memcached.monitoring import AGENT_CPU, AGENT_LIMIT, AGENT_REQUEST
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.quantity import canonical_resource, canonical_resource_list, parse

ResourceList = dict[str, str]

REQUEST_CPU = "100m"
"""Default CPU request: enough for fair scheduling, because memcached is rarely CPU-bound."""


def requirements(spec: MemcachedSpec) -> dict[str, ResourceList]:
    """The container's `resources` in canonical form, as the API server stores them.

    The derived memory request equals the derived limit, from the measured memory need of the cache. A derived request
    never exceeds a limit from the spec, and a derived limit is never below a request from the spec.
    """
    given = spec.resources
    limits = canonical_resource_list(given.limits) if given else {}
    requests = canonical_resource_list(given.requests) if given else {}
    memory = _memory(spec, limits.get("memory"))
    derived_limit = _larger(memory, requests.get("memory", memory))
    derived_request = {
        "cpu": _smaller(REQUEST_CPU, limits.get("cpu", REQUEST_CPU)),
        "memory": _smaller(memory, limits.get("memory", memory)),
    }
    return {"limits": {"memory": derived_limit} | limits, "requests": derived_request | requests}


def agent_requirements(given: ResourceRequirements | None) -> dict[str, ResourceList]:
    """The `resources` of the agent's container in canonical form. Values from the spec take precedence.

    A default request never exceeds a limit from the spec, and the default limit is never below a request from the spec.
    """
    limits = canonical_resource_list(given.limits) if given else {}
    requests = canonical_resource_list(given.requests) if given else {}
    defaults = {
        "cpu": _smaller(AGENT_CPU, limits.get("cpu", AGENT_CPU)),
        "memory": _smaller(AGENT_REQUEST, limits.get("memory", AGENT_REQUEST)),
    }
    limit = _larger(AGENT_LIMIT, requests.get("memory", AGENT_LIMIT))
    return {"limits": {"memory": limit} | limits, "requests": defaults | requests}


def _memory(spec: MemcachedSpec, limit: str | None) -> str:
    """The memory for the cache: the limit if the cache is derived from it."""
    if limit is not None and spec.cache.memory is None:
        return limit
    found = effective(spec)
    return canonical_resource(mebibytes_text(default_limit(found.memory, found.settings)))


def _smaller(one: str, other: str) -> str:
    return min(one, other, key=_amount)


def _larger(one: str, other: str) -> str:
    return max(one, other, key=_amount)


def _amount(quantity: str) -> Decimal:
    return parse(quantity)
