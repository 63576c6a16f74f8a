"""The plan of a MemcachedProxy: its children, with the ring that its pods should have."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from memcached_api import conditions as c
from memcached_api.images import Images
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY, MemcachedProxySpec, needs_agent
from memcached_api.shared.monitoring import is_enabled
from memcached_operator.kind import Plan, Problem, Snapshot, invalid, kept_violations
from memcached_operator.kube.resource import DEPLOYMENTS, POD_MONITORS, Object, nested_list
from memcached_operator.memcachedproxy.desired.deployment import APP_NAME, COMPONENT, CONTAINER, deployment
from memcached_operator.memcachedproxy.desired.service import service
from memcached_operator.memcachedproxy.images import problem_notice
from memcached_operator.memcachedproxy.references import Cache, cache_of, obstacle
from memcached_operator.memcachedproxy.references import notices as cache_notices
from memcached_operator.memcachedproxy.ring import Ring
from memcached_operator.memcachedproxy.spec import checked
from memcached_operator.memcachedproxy.target import Target, current_ring, target
from memcached_operator.shared.foreign import (
    autoscalers,
    budget_notice,
    comparable_budgets,
    comparison_notices,
    foreign_budget,
    observed,
)
from memcached_operator.shared.images import chosen, forged_notices, live_image
from memcached_operator.shared.network_policy import network_policy
from memcached_operator.shared.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.shared.pod_monitor import pod_monitor, wanted_pod_monitor
from memcached_operator.workloads.children import inheriting, with_metadata
from memcached_operator.workloads.pods import has_completed

ANNOUNCE_DELAY: Final = 1.0
"""Seconds until the plan is made again while the status does not contain the next ring yet."""


def plan_with(defaults: Images) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a MemcachedProxy."""

    def plan(snapshot: Snapshot, _: datetime) -> Plan:
        spec, errors = checked(snapshot.cr)
        if spec is None:
            return invalid(errors)
        name = spec.memcached_ref.name
        cache = cache_of(snapshot, name)
        problem = obstacle(snapshot, name, cache) or _not_ready(snapshot, name, cache)
        if problem is not None or cache is None or cache.slots is None:
            return _without_cache(snapshot, spec, problem, kept_violations(errors))
        rings, kept = target(snapshot, cache, cache.slots), kept_violations(errors)
        if rings.ring is not None and rings.ring.is_of(rings.announced):
            return _with_cache(snapshot, spec, rings, rings.ring, defaults, kept)
        waiting = _without_cache(snapshot, spec, _unannounced(rings), kept)
        # The notices of the status do not change again when the pods get these slots.
        notices = _with_cache(snapshot, spec, rings, rings.announced, defaults, kept).notices
        return replace(waiting, notices=notices, requeue_after=ANNOUNCE_DELAY)

    return plan


def _not_ready(snapshot: Snapshot, name: str, cache: Cache | None) -> Problem | None:
    """The proxies serve another Memcached that still exists until the new one is ready."""
    now = current_ring(snapshot)
    if now is None or now.name == name or cache is None or cache.ready:
        return None
    before = cache_of(snapshot, now.name)
    if before is None or before.deleted:
        return None
    return Problem(c.ROLLING_OUT, f"The proxies use Memcached {now.name} until all pods of Memcached {name} are ready")


def _without_cache(
    snapshot: Snapshot, spec: MemcachedProxySpec, problem: Problem | None, kept: tuple[str, ...]
) -> Plan:
    """The plan while the Memcached cannot be used: pods that serve are not changed.

    Without pods, there is only the Service, so that the address of clients does not change when the pods start.
    """
    scaling = autoscalers(snapshot, MEMCACHEDPROXY)
    problems = (*scaling.problems, *([problem] if problem else []))
    live = snapshot.workload(DEPLOYMENTS)
    if live is not None:
        image = live_image(live, CONTAINER)
        notices = (*scaling.notices, *problem_notice(image, snapshot.cr["metadata"]), *kept)
        return Plan(None, problems, notices)
    children = (service(snapshot.cr, spec), *_network_policy(snapshot, spec))
    return Plan(inheriting(children, spec.inherited_metadata), problems, kept)


def _with_cache(
    snapshot: Snapshot, spec: MemcachedProxySpec, rings: Target, ring: Ring, defaults: Images, kept: tuple[str, ...]
) -> Plan:
    """The plan with a Memcached. `ring`: that of the pods."""
    cr, live = snapshot.cr, snapshot.workload(DEPLOYMENTS)
    choice = chosen(spec.image, spec.agent, live, defaults, has_agent=needs_agent(spec))
    workload = with_metadata(deployment(cr, spec, choice.images, rings.slots, ring), {}, choice.pins)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    has_budget = wants_budget(spec.pod_disruption_budget, spec.size)
    compared = observed(snapshot, labels if has_budget else None)
    budgets = comparable_budgets(snapshot, compared)
    scaling = autoscalers(snapshot, MEMCACHEDPROXY)
    other_budget = foreign_budget(budgets, compared)
    children = [workload, service(cr, spec)]
    if has_budget and other_budget is None:
        children.append(pod_disruption_budget(cr, APP_NAME, COMPONENT, spec.pod_disruption_budget))
    children += _network_policy(snapshot, spec)
    monitor = None if POD_MONITORS in snapshot.missing else wanted_pod_monitor(spec.monitoring)
    if monitor is not None:
        children.append(pod_monitor(cr, APP_NAME, COMPONENT, monitor, {}))
    return Plan(
        inheriting(children, spec.inherited_metadata),
        problems=(*scaling.problems, *_waiting(rings, ring)),
        notices=(
            *([budget_notice(other_budget)] if has_budget and other_budget is not None else ()),
            *comparison_notices(snapshot, compared, len(budgets)),
            *scaling.notices,
            *cache_notices(rings.slots.name, rings.cache, labels),
            *problem_notice(choice.images.memcached, cr["metadata"]),
            *(forged_notices(choice, live) if live is not None else ()),
            *kept,
        ),
        requeue_after=None if ring == rings.announced else ANNOUNCE_DELAY,
        observed=compared,
    )


def _unannounced(rings: Target) -> Problem:
    """The proxies get the slots of a Memcached when the status contains them."""
    slots = f"{rings.announced.servers} slots of Memcached {rings.announced.name}"
    return Problem(c.ROLLING_OUT, f"The proxies use {slots} next")


def _waiting(rings: Target, ring: Ring) -> Iterator[Problem]:
    """What the rollout waits for, while the ring is smaller than it should be."""
    announced, wanted = rings.announced, rings.wanted
    if ring != announced:
        text = f"The proxies use {ring.servers} slots of Memcached {ring.name}, and {announced.servers} next"
        yield Problem(c.ROLLING_OUT, text)
    elif ring.servers < wanted.servers:
        slots = f"{ring.servers} of {wanted.servers} slots until all pods of Memcached {wanted.name} are ready"
        yield Problem(c.ROLLING_OUT, f"The proxies use {slots}; see its conditions")


def _network_policy(snapshot: Snapshot, spec: MemcachedProxySpec) -> Iterator[Object]:
    """The NetworkPolicy, if the spec asks for one. Pods of a deleted Deployment serve for some seconds."""
    if spec.network_policy is not None:
        ports, metrics = _ports(snapshot, spec), is_enabled(spec.monitoring)
        yield network_policy(snapshot.cr, APP_NAME, COMPONENT, ports, spec.network_policy, metrics=metrics)


def _ports(snapshot: Snapshot, spec: MemcachedProxySpec) -> list[int]:
    """The ports of the spec and of all existing pods: clients need both until a rollout has ended."""
    existing = (
        port["containerPort"]
        for pod in snapshot.pods
        if not has_completed(pod)
        for container in nested_list(pod, "spec", "containers")
        if container["name"] == CONTAINER
        for port in nested_list(container, "ports")
    )
    return list(dict.fromkeys((spec.port, *existing)))
