"""The plan of a Memcached: its children, and the next step of the update of its pods."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from msgspec import structs

from memcached_api import conditions as c
from memcached_api.images import Images
from memcached_api.memcached.resolved import Ports, slots_at_once
from memcached_api.memcached.types import MemcachedSpec, is_stable, warm_up_of
from memcached_api.shared.monitoring import METRICS_PORT, is_enabled
from memcached_operator.engine.kind import Plan, invalid, kept_violations
from memcached_operator.engine.writes.intent import with_replicas
from memcached_operator.findings.creation import creation_failure
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    POD_MONITORS,
    PROMETHEUS_RULES,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    nested_list,
)
from memcached_operator.kube.times import earliest
from memcached_operator.memcached.addresses import slot_name
from memcached_operator.memcached.desired.connection import connection, connection_name
from memcached_operator.memcached.desired.deployment import deployment, pooled_ports
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT, CONTAINER, memcached_ports
from memcached_operator.memcached.desired.prometheus_rule import prometheus_rule, wanted_rules
from memcached_operator.memcached.desired.service import has_slot_services, services
from memcached_operator.memcached.desired.statefulset import statefulset
from memcached_operator.memcached.images import chosen, problem_notice
from memcached_operator.memcached.interventions import interventions
from memcached_operator.memcached.proxies import existing_size, kept_size, waiting
from memcached_operator.memcached.scaling.change import Change, change_of
from memcached_operator.memcached.scaling.facts import current
from memcached_operator.memcached.slots.changeable import has_same_template, has_template, updatable, with_digest
from memcached_operator.memcached.slots.pause import pause_notices, served_ports, with_pause
from memcached_operator.memcached.spec import checked
from memcached_operator.memcached.updates.decision import UpdateDecision, decide, replaces
from memcached_operator.memcached.updates.target import InPlace
from memcached_operator.parts.agent import has_agent, has_https
from memcached_operator.parts.dns import CLUSTER_DOMAIN
from memcached_operator.parts.images import forged_notices, live_image
from memcached_operator.parts.lists import unlisted_notices
from memcached_operator.parts.network_policy import network_policy
from memcached_operator.parts.other_budgets import (
    OtherBudget,
    budget_notices,
    may_have_budget,
    other_budget,
    rollout_notices,
)
from memcached_operator.parts.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.parts.pod_monitor import https_fields, pod_monitor, wanted_pod_monitor
from memcached_operator.parts.tls import certificate_secret
from memcached_operator.parts.workloads.children import inheriting, with_metadata
from memcached_operator.world.snapshot import Snapshot

CREATION_DELAY, CONFLICT_DELAY = 0.5, 10.0
"""Seconds until the plan is made again while Services of slots do not exist."""


def plan_with(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a Memcached."""

    def plan(snapshot: Snapshot, now: datetime) -> Plan:
        cr = snapshot.cr
        spec, errors = checked(cr)
        if spec is None:
            return invalid(errors)
        latch = current(snapshot, spec)
        paused = _is_paused(spec) or (latch is not None and latch.is_moving)
        workload = _workload(snapshot, spec, defaults, paused=paused)
        ports = served_ports(spec, workload) if is_stable(spec) else pooled_ports(spec, snapshot.pods)
        labels = workload["spec"]["template"]["metadata"]["labels"]
        other = other_budget(snapshot, labels, now, wanted=_wants_budget(spec))
        others, reported = interventions(snapshot, now)
        rules = _rules(snapshot, spec, defaults)
        decision = _decide(snapshot, spec, rules, slots_at_once(spec) if other.is_excluded else 1, now)
        change = change_of(snapshot, spec, latch, now, updated=_is_updated(snapshot, workload, decision))
        published, kept = _with_sizes(snapshot, spec, change)
        workload = with_metadata(with_replicas(workload, kept.size), {}, change.annotations)
        missing = _lacks_services(snapshot, published)
        children = (
            workload,
            *services(cr, kept, ports),
            *_connection(cr, published, ports, cluster_domain, with_addresses=has_slot_services(spec) and not missing),
            *_budget(snapshot, spec, other),
            *_network_policy(snapshot, spec, ports, workload),
            *_pod_monitor(snapshot, spec, workload, cluster_domain),
            *_prometheus_rule(snapshot, spec, workload),
        )
        decision = decision and _allowed(decision, snapshot, spec, workload, change)
        return Plan(
            inheriting(children, spec.inherited_metadata),
            problems=(
                *(decision.problems if decision else ()),
                *waiting(snapshot, change.kept or spec.size, kept.size),
            ),
            notices=(
                *(budget_notices(other) if _wants_budget(spec) else ()),
                *(rollout_notices(other) if slots_at_once(spec) > 1 else ()),
                *unlisted_notices(snapshot, *_wanted_monitoring(spec)),
                *(decision.notices if decision else ()),
                *_workload_notices(snapshot, spec, defaults),
                *kept_violations(errors),
            ),
            requeue_after=earliest(
                (decision and decision.requeue_after, reported, other.requeue_after, change.requeue_after)
            ),
            requeue_if_applied=_retry_delay(cr) if missing else None,
            update=decision and replace(decision.update, replaces=_loses_items(snapshot, spec, defaults)),
            interventions=others,
            needs_users=is_stable(spec) and (change.needs_users or existing_size(snapshot) > kept.size),
            versioned=change.latch is not None,
        )

    return plan


def _with_sizes(snapshot: Snapshot, spec: MemcachedSpec, change: Change) -> tuple[MemcachedSpec, MemcachedSpec]:
    """The spec with the number of slots that clients should use, and with that of those which are kept."""
    if not is_stable(spec):
        return spec, spec
    published = structs.replace(spec, size=change.published or spec.size)
    return published, structs.replace(spec, size=kept_size(snapshot, change.kept or spec.size))


def _is_updated(snapshot: Snapshot, workload: Object, decision: UpdateDecision | None) -> bool:
    """Whether the live pod template is the desired one, and all pods have it."""
    live = snapshot.workload(STATEFULSETS)
    return live is None or (decision is not None and decision.complete and has_same_template(workload, live))


def _decide(
    snapshot: Snapshot, spec: MemcachedSpec, rules: InPlace, limit: int, now: datetime
) -> UpdateDecision | None:
    """The decision about the update of the pods of slots. `limit`: the most that are changed or not ready at once."""
    live = snapshot.child(STATEFULSETS)
    if live is None or not is_stable(spec):
        return None
    creates_pods = not creation_failure(snapshot)
    return decide(live, snapshot.pods, rules, snapshot.resize, now, limit=limit, creates_pods=creates_pods)


def _allowed(
    decision: UpdateDecision, snapshot: Snapshot, spec: MemcachedSpec, workload: Object, change: Change
) -> UpdateDecision:
    """The decision with its step if that may be made now.

    While keys move, and during a pause, a pod is only completed or restored. `workload`: the desired one. A step must
    wait until it has been applied.
    """
    live = snapshot.child(STATEFULSETS)
    if decision.step is None or live is None:
        return decision
    allowed = decision.must_finish or not (_is_paused(spec) or change.is_moving)
    return decision if allowed and has_template(workload, live) else replace(decision, step=None)


def _loses_items(snapshot: Snapshot, spec: MemcachedSpec, defaults: Images) -> bool:
    """Whether the end of a pause replaces pods that may have items. False without a pause."""
    if spec.rollout is None or not _is_paused(spec):
        return False
    resumed = structs.replace(spec, rollout=structs.replace(spec.rollout, paused=False))
    template = _workload(snapshot, resumed, defaults, paused=False)["spec"]["template"]
    return replaces(template, snapshot.pods, _rules(snapshot, resumed, defaults), snapshot.resize)


def _is_paused(spec: MemcachedSpec) -> bool:
    """Whether changes that replace or restart pods are paused."""
    return spec.rollout is not None and spec.rollout.paused is True


def needs_budgets(cr: Object) -> bool:
    """Whether the plan depends on the PodDisruptionBudgets of other owners. Another one that selects the pods prevents
    that for which the spec asks, and the update of several slots at once: its limit is not known.
    """
    spec, _ = checked(cr)
    return spec is not None and (_wants_budget(spec) or slots_at_once(spec) > 1)


def _wants_budget(spec: MemcachedSpec) -> bool:
    """Whether the spec asks for a PodDisruptionBudget."""
    return wants_budget(spec.pod_disruption_budget, spec.size)


def _budget(snapshot: Snapshot, spec: MemcachedSpec, other: OtherBudget) -> tuple[Object, ...]:
    """The PodDisruptionBudget, if the spec asks for one and no other one selects the pods.

    While pods warm up, they are not ready, and must not be evicted.
    """
    if not _wants_budget(spec) or not may_have_budget(snapshot, other):
        return ()
    budget, warms_up = spec.pod_disruption_budget, warm_up_of(spec) is not None
    return (pod_disruption_budget(snapshot.cr, APP_NAME, COMPONENT, budget, protects_unready=warms_up),)


def _connection(
    cr: Object, spec: MemcachedSpec, ports: Ports, domain: str, *, with_addresses: bool
) -> tuple[Object, ...]:
    """The ConfigMap, if the Memcached has slots."""
    return (connection(cr, spec.size, ports, domain, with_addresses=with_addresses),) if is_stable(spec) else ()


def _network_policy(snapshot: Snapshot, spec: MemcachedSpec, ports: Ports, workload: Object) -> tuple[Object, ...]:
    """The NetworkPolicy if there is to be one. It opens the port of the metrics only where no memcached listens on it.

    `ports`: those of the Services. Until a rollout has ended, clients need those of all existing pods too.
    `workload`: the desired one; during a pause, its pods can differ from the spec.
    """
    if spec.network_policy is None:
        return ()
    in_use = (ports, *(memcached_ports(pod) for pod in snapshot.pods if not pod.has_completed))
    opened = list(dict.fromkeys(port for pod_ports in in_use for port in pod_ports if port is not None))
    metrics = is_enabled(spec.monitoring) and has_agent(workload) and METRICS_PORT not in opened
    return (network_policy(snapshot.cr, APP_NAME, COMPONENT, opened, spec.network_policy, metrics=metrics),)


def _pod_monitor(snapshot: Snapshot, spec: MemcachedSpec, workload: Object, domain: str) -> tuple[Object, ...]:
    """The PodMonitor if there is to be one, the pods have agents, and PodMonitors are listed."""
    monitor = wanted_pod_monitor(spec.monitoring) if snapshot.is_listed(POD_MONITORS) else None
    if monitor is None or not has_agent(workload):
        return ()
    secret = certificate_secret(workload) if has_https(workload) else None
    https = {} if secret is None else https_fields(snapshot.cr, secret, domain)
    return (pod_monitor(snapshot.cr, APP_NAME, COMPONENT, monitor, https),)


def _prometheus_rule(snapshot: Snapshot, spec: MemcachedSpec, workload: Object) -> tuple[Object, ...]:
    """The PrometheusRule if there is to be one, the pods have agents, and PrometheusRules are listed."""
    rules = wanted_rules(spec) if snapshot.is_listed(PROMETHEUS_RULES) else None
    return () if rules is None or not has_agent(workload) else (prometheus_rule(snapshot.cr, rules),)


def _wanted_monitoring(spec: MemcachedSpec) -> Iterator[Resource]:
    """The resources of the children for monitoring that the spec asks for."""
    if wanted_pod_monitor(spec.monitoring) is not None:
        yield POD_MONITORS
    if wanted_rules(spec) is not None:
        yield PROMETHEUS_RULES


def _lacks_services(snapshot: Snapshot, spec: MemcachedSpec) -> bool:
    """Whether an existing slot lacks its Service. Another user's Service may have the name, and other servers.

    False until the ConfigMap exists, unless a conflict is reported: it is created after the Services.
    """
    live = snapshot.child(STATEFULSETS)
    if live is None or not has_slot_services(spec):
        return False
    if snapshot.child(CONFIG_MAPS, connection_name(snapshot.cr)) is None and not _has_conflict(snapshot.cr):
        return False
    existing = min(live["spec"].get("replicas", 1), spec.size)
    names = (slot_name(snapshot.cr, slot) for slot in range(existing))
    return any(snapshot.child(SERVICES, name) is None for name in names)


def _retry_delay(cr: Object) -> float:
    """Seconds until the Services of slots are looked for again: at once if they are being created."""
    return CONFLICT_DELAY if _has_conflict(cr) else CREATION_DELAY


def _has_conflict(cr: Object) -> bool:
    """Whether the last status reports a conflict."""
    return c.CONFLICT in [condition.get("reason") for condition in nested_list(cr, "status", "conditions")]


def _workload(snapshot: Snapshot, spec: MemcachedSpec, defaults: Images, *, paused: bool) -> Object:
    """The Deployment or the StatefulSet. `paused`: the latter keeps its pod template."""
    live = _live(snapshot, spec)
    choice = chosen(spec, live, defaults)
    if not is_stable(spec):
        return with_metadata(deployment(snapshot.cr, spec, choice.images), {}, choice.pins)
    built = updatable(statefulset(snapshot.cr, spec, choice.images), spec)
    return with_metadata(with_pause(built, live, paused=paused), {}, choice.pins)


def _rules(snapshot: Snapshot, spec: MemcachedSpec, defaults: Images) -> InPlace:
    """The parts of the running pods of slots that can change."""
    return with_digest(
        lambda: statefulset(snapshot.cr, spec, chosen(spec, _live(snapshot, spec), defaults).images), spec
    )


def _live(snapshot: Snapshot, spec: MemcachedSpec) -> Object | None:
    """The live Deployment or StatefulSet."""
    return snapshot.workload(STATEFULSETS if is_stable(spec) else DEPLOYMENTS)


def _workload_notices(snapshot: Snapshot, spec: MemcachedSpec, defaults: Images) -> Iterator[str]:
    """Known problems of the image, and annotations that are ignored because another client has changed them."""
    live = _live(snapshot, spec)
    choice = chosen(spec, live, defaults)
    image = (live_image(live, CONTAINER) if _is_paused(spec) else "") or choice.images.memcached
    yield from problem_notice(spec, image, snapshot.cr["metadata"])
    if live is None:
        return
    yield from forged_notices(choice, live)
    yield from pause_notices(spec, live) if is_stable(spec) else ()
