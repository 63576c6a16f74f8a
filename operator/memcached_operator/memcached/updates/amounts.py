"""Requests and limits of the containers of a pod: what its spec asks for, and whether that is in effect."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from memcached_api.memcached.changes.resizing import PARTS, Amounts
from memcached_api.quantity import parse_quantity
from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.kube import texts
from memcached_operator.world.pod import NOT_REPORTED, Condition, Explained, Pod

MAX_CAUSE: Final = 300
"""Characters of a message of a node."""

ERROR_LASTS: Final = timedelta(seconds=30)
"""The time for which a node may report an error before it counts: it tries a resize again with each sync of the pod."""

_MINUTES: Final = PROGRESS_DEADLINE // timedelta(minutes=1)


def amounts_in(resources: Mapping[str, Mapping[str, str]]) -> Amounts:
    """The amounts in the resources of a container of a pod template, or of a record."""
    return {part: resources[part] for part in PARTS if resources.get(part)}


def plain(amounts: Amounts) -> dict[str, dict[str, str]]:
    """A copy of amounts that can be encoded."""
    return {part: dict(values) for part, values in amounts.items()}


def spec_amounts(pod: Pod) -> dict[str, Amounts]:
    """The amounts that the spec of a pod asks for, by container."""
    return {container.name: container.resources.amounts for container in pod.spec.containers}


def allocated_amounts(pod: Pod) -> dict[str, Amounts]:
    """The amounts with which the containers of a pod run, by container, as far as the node reports them."""
    requests = _allocated_requests(pod)
    return {name: {**amounts, **requests.get(name, {})} for name, amounts in reported_amounts(pod).items()}


def has_amounts(amounts: Amounts, desired: Amounts) -> bool:
    """Whether `amounts` include all desired ones. A policy of the cluster may have added others."""
    return all(
        name in amounts.get(part, {}) and parse_quantity(amounts[part][name]) == parse_quantity(value)
        for part, values in desired.items()
        for name, value in values.items()
    )


def lowers_memory_limit(new: Amounts, old: Amounts) -> bool:
    """Whether the memory limit becomes lower, which the process in the container must have been prepared for."""
    before, after = memory_limit(old), memory_limit(new)
    return before is not None and after is not None and after < before


def names_of(amounts: Amounts) -> set[str]:
    """The names of the amounts that are set, such as `limits.cpu`."""
    return {f"{part}.{name}" for part, values in amounts.items() for name in values}


def memory_limit(amounts: Amounts) -> Decimal | None:
    """The memory limit in bytes; None without one."""
    text = amounts.get("limits", {}).get("memory")
    return None if text is None else parse_quantity(text)


def pending(pod: Pod) -> Condition:
    """The condition of a pod that says why the node cannot resize it now; NOT_REPORTED if it can."""
    condition = pod.condition("PodResizePending")
    return condition if condition.is_true else NOT_REPORTED


class Obstacle(NamedTuple):
    """Why a node does not resize a pod, in its own words, and the remedy that keeps the items.

    `remedy`: empty if only the previous values help. `lasts`: the time for which it must last before it is a problem.
    """

    cause: str
    remedy: str = ""
    lasts: timedelta = timedelta()


NO_OBSTACLE: Final = Obstacle(f"the resize has not finished within {_MINUTES} minutes", lasts=PROGRESS_DEADLINE)
"""The node reports no obstacle: the resize may only take too long."""


def obstacle(pod: Pod) -> Obstacle:
    """The reason why the node does not resize a pod: no resources, an error, or a kubelet that is too old."""
    # A container without any requests and limits, such as one of another client, has an empty map.
    if any(each.state.running is not None and each.resources is None for each in pod.status.container_statuses):
        cause = "its kubelet does not report the resources of containers, which requires Kubernetes 1.33 or newer"
        return Obstacle(cause)
    if (condition := pending(pod)) is not NOT_REPORTED:
        return Obstacle(_words(condition), "Free resources on its node, which then resizes it, or request less")
    progress = pod.condition("PodResizeInProgress")
    is_error = progress.is_true and progress.reason == "Error"
    return Obstacle(_words(progress), lasts=ERROR_LASTS) if is_error else NO_OBSTACLE


def _words(condition: Explained) -> str:
    """What the node says in a condition, as a clause."""
    return texts.clause(condition.message or condition.reason or "no reason given", MAX_CAUSE)


def is_in_effect(pod: Pod, desired: Mapping[str, Amounts]) -> bool:
    """Whether the node has allocated the desired requests and memory limits, and no resize is left to do.

    Nothing reports the amounts of a container that was never created: it starts with what the spec says, if its node
    has seen that and refuses nothing. At least these limits, because a node can take long to lower one. Requests as
    they are allocated: those in effect are rounded. Nodes that do not report what is allocated (before Kubernetes 1.33,
    or with another feature gate) may refuse requests after the update.
    """
    if not desired:
        return True
    if obstacle(pod) is not NO_OBSTACLE or pod.condition("PodResizeInProgress").is_true:
        return False
    reported, requests = reported_amounts(pod), _allocated_requests(pod)
    return all(
        _reaches(reported.get(name, {}), amounts)
        and has_amounts(requests.get(name, amounts), {"requests": amounts.get("requests", {})})
        if pod.container_status(name).container_id
        else _is_seen(pod)
        for name, amounts in desired.items()
    )


def _is_seen(pod: Pod) -> bool:
    """Whether the node has seen the spec of a pod; True if it does not report that (before Kubernetes 1.34)."""
    seen = pod.status.observed_generation
    return seen is None or seen >= pod.metadata.generation


def _allocated_requests(pod: Pod) -> dict[str, Amounts]:
    """The requests that the node has allocated, by container, if it reports them."""
    allocated = {each.name: each.allocated_resources for each in pod.status.container_statuses}
    return {name: {"requests": requests} for name, requests in allocated.items() if requests is not None}


def reported_amounts(pod: Pod) -> dict[str, Amounts]:
    """The amounts that the node reports, by container."""
    statuses = pod.status.container_statuses
    return {each.name: amounts for each in statuses if each.resources and (amounts := each.resources.amounts)}


def _reaches(reported: Amounts, desired: Amounts) -> bool:
    least, limit = memory_limit(desired), memory_limit(reported)
    return least is None or (limit is not None and limit >= least)
