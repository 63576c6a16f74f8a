"""The plan of a MemcachedProxy: its children, with the ring that its pods should have."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from memcached_api import conditions as c
from memcached_api.images import Images
from memcached_api.memcachedproxy.types import MemcachedProxySpec, needs_agent
from memcached_api.shared.monitoring import is_enabled
from memcached_operator.engine.kind import Plan, invalid, kept_violations
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import DEPLOYMENTS, POD_MONITORS, Object
from memcached_operator.kube.times import earliest, past_time
from memcached_operator.memcachedproxy import capacity
from memcached_operator.memcachedproxy.desired.deployment import APP_NAME, COMPONENT, CONTAINER, Servers, deployment
from memcached_operator.memcachedproxy.desired.scaling import is_swept
from memcached_operator.memcachedproxy.desired.service import service
from memcached_operator.memcachedproxy.images import problem_notice
from memcached_operator.memcachedproxy.references import Cache, cache_of, is_known, obstacle, unavailable
from memcached_operator.memcachedproxy.references import notices as cache_notices
from memcached_operator.memcachedproxy.spec import checked
from memcached_operator.memcachedproxy.target import Target, current_ring, target
from memcached_operator.parts.images import chosen, forged_notices, live_image
from memcached_operator.parts.lists import unlisted_notices
from memcached_operator.parts.network_policy import network_policy
from memcached_operator.parts.other_budgets import budget_notices, may_have_budget, other_budget
from memcached_operator.parts.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.parts.pod_monitor import pod_monitor, wanted_pod_monitor
from memcached_operator.parts.ring import Ring
from memcached_operator.parts.workloads.children import inheriting, with_metadata
from memcached_operator.world.snapshot import Snapshot

ANNOUNCE_DELAY: Final = 1.0
"""Seconds until the plan is made again while the status does not contain the next ring yet."""

START_SECONDS: Final = 60.0
"""Seconds from the creation of a Memcached after which its first proxies no longer wait for all of its slots. They
always wait for one."""


def plan_with(defaults: Images) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a MemcachedProxy."""

    def plan(snapshot: Snapshot, now: datetime) -> Plan:
        spec, errors = checked(snapshot.cr)
        if spec is None:
            return invalid(errors)
        name = spec.memcached_ref.name
        cache = cache_of(snapshot, name)
        problem = obstacle(snapshot, name, cache) or _not_ready(snapshot, name, cache)
        if problem is not None or cache is None or cache.slots is None:
            return _without_cache(snapshot, spec, problem, kept_violations(errors), known=is_known(snapshot, cache))
        rings, kept = target(snapshot, cache, cache.slots), kept_violations(errors)
        starting = _starting(snapshot, rings, now)
        is_announced = rings.ring is not None and rings.ring.is_of(rings.announced)
        if rings.ring is not None and is_announced and starting is None:
            return _with_cache(snapshot, now, spec, rings, rings.ring, defaults, kept)
        problem = _unannounced(rings) if starting is None else _not_started(name)
        waiting = _without_cache(snapshot, spec, problem, kept)
        # The notices of the status do not change again when the pods get these slots.
        notices = _with_cache(snapshot, now, spec, rings, rings.announced, defaults, kept).notices
        return replace(waiting, notices=notices, requeue_after=starting or None if is_announced else ANNOUNCE_DELAY)

    return plan


def needs_budgets(cr: Object) -> bool:
    """Whether the plan depends on the PodDisruptionBudgets of other owners: the spec asks for one."""
    spec, _ = checked(cr)
    return spec is not None and wants_budget(spec.pod_disruption_budget, spec.size)


def _not_ready(snapshot: Snapshot, name: str, cache: Cache | None) -> Problem | None:
    """The proxies serve another Memcached that still exists until the new one is ready."""
    now = current_ring(snapshot)
    if now is None or now.name == name or cache is None or cache.ready:
        return None
    before = cache_of(snapshot, now.name)
    if before is None or before.deleted:
        return None
    return Problem(c.ROLLING_OUT, f"The proxies use Memcached {now.name} until all pods of Memcached {name} are ready")


def _starting(snapshot: Snapshot, rings: Target, now: datetime) -> float | None:
    """The seconds for which the first pods of a Memcached wait for all slots, 0 until one is ready; None: no wait.

    A pod is ready as soon as memcached accepts connections, even if it reaches no slot: the names of slots that have
    not started do not exist, and name servers keep this answer for some seconds. They do not wait for all slots of a
    Memcached that is older: if one of them is broken, the keys of the others must be served.
    """
    current, cache = current_ring(snapshot), rings.cache
    is_used = snapshot.workload(DEPLOYMENTS) is not None and (current is None or current.is_of(rings.wanted))
    if is_used or cache.ready or cache.started:
        return None
    if not cache.serves:
        return 0.0
    created = past_time(cache.created, now)
    age = (now - created).total_seconds() if created is not None else START_SECONDS
    return START_SECONDS - age if age < START_SECONDS else None


def _not_started(name: str) -> Problem:
    return Problem(c.ROLLING_OUT, f"The proxies use Memcached {name} when its slots are ready; see its conditions")


def _without_cache(
    snapshot: Snapshot, spec: MemcachedProxySpec, problem: Problem | None, kept: tuple[str, ...], *, known: bool = True
) -> Plan:
    """The plan while the Memcached cannot be used: pods that serve are not changed.

    Without pods, there is only the Service, so that the address of clients does not change when the pods start.
    `known`: whether it is known if the Memcached exists. If it is not, nothing is changed.
    """
    problems = () if problem is None else (problem,)
    live = snapshot.workload(DEPLOYMENTS)
    if live is None and not known:
        return Plan(None, problems, kept)
    if live is not None:
        image = live_image(live, CONTAINER)
        notices = (*problem_notice(image, snapshot.cr["metadata"]), *kept)
        return Plan(None, problems, notices)
    children = (service(snapshot.cr, spec), *_network_policy(snapshot, spec))
    return Plan(inheriting(children, spec.inherited_metadata), problems, kept)


def _with_cache(
    snapshot: Snapshot,
    now: datetime,
    spec: MemcachedProxySpec,
    rings: Target,
    ring: Ring,
    defaults: Images,
    kept: tuple[str, ...],
) -> Plan:
    """The plan with a Memcached. `ring`: that of the pods."""
    cr, live = snapshot.cr, snapshot.workload(DEPLOYMENTS)
    servers = Servers(rings.slots, rings.cache.item_size)
    has_agent = needs_agent(spec) or is_swept(ring)
    choice = chosen(spec.image, spec.agent, live, defaults, has_agent=has_agent)
    workload = with_metadata(deployment(cr, spec, choice.images, servers, ring), {}, choice.pins)
    labels = workload["spec"]["template"]["metadata"]["labels"]
    has_budget = wants_budget(spec.pod_disruption_budget, spec.size)
    other = other_budget(snapshot, labels, now, wanted=has_budget)
    children = [workload, service(cr, spec)]
    if has_budget and may_have_budget(snapshot, other):
        children.append(pod_disruption_budget(cr, APP_NAME, COMPONENT, spec.pod_disruption_budget))
    children += _network_policy(snapshot, spec)
    monitor = wanted_pod_monitor(spec.monitoring)
    if monitor is not None and snapshot.is_listed(POD_MONITORS):
        children.append(pod_monitor(cr, APP_NAME, COMPONENT, monitor, {}))
    return Plan(
        inheriting(children, spec.inherited_metadata),
        problems=(
            *unavailable(rings.slots.name, rings.cache),
            *_waiting(rings, ring),
        ),
        notices=(
            *(budget_notices(other) if has_budget else ()),
            *unlisted_notices(snapshot, *([POD_MONITORS] if monitor is not None else [])),
            *cache_notices(rings.slots.name, rings.cache, labels),
            *capacity.notices(spec, rings.slots.name, rings.cache),
            *problem_notice(choice.images.memcached, cr["metadata"]),
            *(forged_notices(choice, live) if live is not None else ()),
            *kept,
        ),
        requeue_after=earliest((None if ring == rings.announced else ANNOUNCE_DELAY, other.requeue_after)),
        versioned=rings.cache.warm or ring.move is not None,
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
        port.container_port for pod in snapshot.pods if not pod.has_completed for port in pod.container(CONTAINER).ports
    )
    return list(dict.fromkeys((spec.port, *existing)))
