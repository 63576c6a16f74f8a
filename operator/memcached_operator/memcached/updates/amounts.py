"""Requests and limits of the containers of a pod: what its spec asks for, and whether that is in effect."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from memcached_api.quantity import parse_quantity
from memcached_api.resizing import PARTS, Amounts
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.workloads.pods import condition_of


def amounts_of(container: Mapping[str, Any]) -> Amounts:
    """The amounts of a container, in its spec or its status."""
    found = nested_map(container, "resources")
    return {part: found[part] for part in PARTS if found.get(part)}


def plain(found: Amounts) -> dict[str, dict[str, str]]:
    """A copy of amounts that can be encoded."""
    return {part: dict(amounts) for part, amounts in found.items()}


def spec_amounts(pod: Object) -> dict[str, Amounts]:
    """The amounts that the spec of a pod asks for, by container."""
    return {each["name"]: amounts_of(each) for each in pod["spec"]["containers"]}


def effective_limits(pod: Object) -> dict[str, Amounts]:
    """The amounts that are in effect, by container; those of the spec if the node does not report them."""
    return spec_amounts(pod) | _reported_amounts(pod)


def has_amounts(found: Amounts, wanted: Amounts) -> bool:
    """Whether all wanted amounts are found. A policy of the cluster may have added others."""
    return all(
        name in found.get(part, {}) and parse_quantity(found[part][name]) == parse_quantity(value)
        for part, amounts in wanted.items()
        for name, value in amounts.items()
    )


def lowers_memory_limit(new: Amounts, old: Amounts) -> bool:
    """Whether the memory limit becomes lower, which the process in the container must have been prepared for."""
    before, after = memory_limit(old), memory_limit(new)
    return before is not None and after is not None and after < before


def memory_limit(found: Amounts) -> Decimal | None:
    """The memory limit in bytes; None without one."""
    text = found.get("limits", {}).get("memory")
    return None if text is None else parse_quantity(text)


def pending(pod: Object) -> Mapping[str, Any]:
    """The condition of a pod that says why the node cannot resize it now; empty if it can."""
    found = condition_of(pod, "PodResizePending")
    return found if found.get("status") == "True" else {}


def obstacle(pod: Object) -> str:
    """Why the node cannot resize a pod: for lack of resources, or because its kubelet is too old; empty if it can."""
    statuses = nested_list(pod, "status", "containerStatuses")
    if any("running" in nested_map(each, "state") and not each.get("resources") for each in statuses):
        return "it does not report the resources of containers, as kubelets do from Kubernetes 1.33 on"
    found = pending(pod)
    return (found.get("message") or found.get("reason") or "no reason given") if found else ""


def is_infeasible(pod: Object) -> bool:
    """Whether the node can never resize a pod to what its spec asks for."""
    return pending(pod).get("reason") == "Infeasible"


def is_in_effect(pod: Object, wanted: Mapping[str, Amounts]) -> bool:
    """Whether the node has allocated the wanted requests and memory limits, and no resize is left to do.

    At least these limits, because a node can take long to lower one. Requests as they are allocated: those in effect
    are rounded. Nodes that do not report what is allocated (before Kubernetes 1.33, or with another feature gate) may
    refuse requests after the update.
    """
    if not wanted:
        return True
    if obstacle(pod) or condition_of(pod, "PodResizeInProgress").get("status") == "True":
        return False
    found, requests = _reported_amounts(pod), _allocated_requests(pod)
    return all(
        _reaches(found.get(name, {}), each)
        and has_amounts(requests.get(name, each), {"requests": each.get("requests", {})})
        for name, each in wanted.items()
    )


def _allocated_requests(pod: Object) -> dict[str, Amounts]:
    """The requests that the node has allocated, by container, if it reports them."""
    statuses = nested_list(pod, "status", "containerStatuses")
    return {each["name"]: {"requests": each["allocatedResources"]} for each in statuses if "allocatedResources" in each}


def _reported_amounts(pod: Object) -> dict[str, Amounts]:
    """The amounts that the node reports, by container."""
    statuses = nested_list(pod, "status", "containerStatuses")
    return {each["name"]: amounts_of(each) for each in statuses if each.get("resources")}


def _reaches(found: Amounts, wanted: Amounts) -> bool:
    least, limit = memory_limit(wanted), memory_limit(found)
    return least is None or (limit is not None and limit >= least)
