"""Requests and limits of containers. Values from the spec take precedence; the others are defaults."""

from decimal import Decimal

from memcached_api.kubernetes import ResourceRequirements
from memcached_api.quantity import canonical_resource_list, parse_quantity
from memcached_api.shared.agent import AGENT_CPU, AGENT_LIMIT, AGENT_REQUEST

ResourceList = dict[str, str]


def agent_requirements(resources: ResourceRequirements | None) -> dict[str, ResourceList]:
    """The `resources` of the agent's container in canonical form. Values from the spec take precedence.

    A default request never exceeds a limit from the spec, and the default limit is never below a request from the spec.
    """
    return complete(*limits_and_requests(resources), AGENT_CPU, AGENT_REQUEST, AGENT_LIMIT)


def limits_and_requests(resources: ResourceRequirements | None) -> tuple[ResourceList, ResourceList]:
    """The limits and requests of a spec in canonical form."""
    if resources is None:
        return {}, {}
    return canonical_resource_list(resources.limits), canonical_resource_list(resources.requests)


def cpu_limit(resources: ResourceRequirements | None) -> Decimal | None:
    """The CPU limit of a spec in CPUs, or None."""
    limit = resources.limits.get("cpu") if resources else None
    return None if limit is None else parse_quantity(limit)


def complete(
    limits: ResourceList, requests: ResourceList, cpu: str, request: str, limit: str
) -> dict[str, ResourceList]:
    """Requests and limits with defaults: `cpu` and `request` (memory) for requests, `limit` (memory) for limits."""
    defaults = {
        "cpu": _smaller(cpu, limits.get("cpu", cpu)),
        "memory": _smaller(request, limits.get("memory", request)),
    }
    memory = larger(limit, requests.get("memory", limit))
    return {"limits": {"memory": memory} | limits, "requests": defaults | requests}


def _smaller(first: str, second: str) -> str:
    return min(first, second, key=_amount)


def larger(first: str, second: str) -> str:
    """The larger of two quantities."""
    return max(first, second, key=_amount)


def _amount(quantity: str) -> Decimal:
    return parse_quantity(quantity)
