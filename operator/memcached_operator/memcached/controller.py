"""The Memcached controller: the resources it owns, and its two pure functions, plan and status."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from memcached_api import conditions as c
from memcached_api.images import Images
from memcached_api.memcached.agent import asks_for_agent
from memcached_api.memcached.monitoring import METRICS_PORT, is_enabled
from memcached_api.memcached.ports import Ports
from memcached_api.memcached.types import GROUP, KIND, PLURAL, VERSION, MemcachedSpec, is_stable, needs_agent
from memcached_api.validation.field_errors import summary
from memcached_operator.kind import Kind, Plan, Snapshot, Update, invalid
from memcached_operator.kube.resource import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    nested_list,
    nested_map,
)
from memcached_operator.memcached.desired.addresses import CLUSTER_DOMAIN, owners, slot_name
from memcached_operator.memcached.desired.agent import has_agent, has_https
from memcached_operator.memcached.desired.connection import connection, connection_name
from memcached_operator.memcached.desired.deployment import deployment, pooled_ports
from memcached_operator.memcached.desired.network_policy import network_policy
from memcached_operator.memcached.desired.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.memcached.desired.pod_monitor import https_fields, pod_monitor, wanted_pod_monitor
from memcached_operator.memcached.desired.pods import APP_NAME, memcached_ports
from memcached_operator.memcached.desired.secrets import certificate_secret
from memcached_operator.memcached.desired.service import has_slot_services, services
from memcached_operator.memcached.desired.statefulset import has_template, served_ports, statefulset
from memcached_operator.memcached.foreign import autoscaler_problems, budget_notice, foreign_budget, ignores, reads
from memcached_operator.memcached.in_place import IN_PLACE
from memcached_operator.memcached.spec import checked
from memcached_operator.memcached.status import status_with
from memcached_operator.status.conditions import MAX_MESSAGE_LENGTH
from memcached_operator.workloads.children import with_metadata
from memcached_operator.workloads.deployment import DEPLOYMENT
from memcached_operator.workloads.pods import has_completed
from memcached_operator.workloads.statefulset import STATEFULSET
from memcached_operator.workloads.times import earliest
from memcached_operator.workloads.updates.decision import update

MEMCACHEDS = Resource(GROUP, VERSION, KIND, PLURAL)

CREATION_DELAY, CONFLICT_DELAY = 0.5, 10.0
"""Seconds until the plan is made again while Services of slots do not exist."""

PINNED_IMAGE_ANNOTATION = "memcached-operator.example.com/default-image"
PINNED_AGENT_ANNOTATION = "memcached-operator.example.com/default-agent-image"
"""Annotations of a workload whose Memcached has no `spec.image` or `spec.agent.image`, because the webhook was
unavailable. Their value is the default image at that time, so that a later release does not restart the cache."""


def memcached(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> Kind:
    """The Memcached kind. `defaults`: the images of objects without `spec.image` or `spec.agent.image`.

    `cluster_domain`: the DNS domain of the cluster.
    """
    return Kind(
        MEMCACHEDS,
        APP_NAME,
        owns=(DEPLOYMENTS, STATEFULSETS, SERVICES, CONFIG_MAPS, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES, POD_MONITORS),
        workloads=(DEPLOYMENT, STATEFULSET),
        plan=plan_with(defaults, cluster_domain),
        status=status_with(cluster_domain),
        optional=(POD_MONITORS,),
        observes=(POD_DISRUPTION_BUDGETS, AUTOSCALERS),
        ignores=ignores,
        reads=reads,
        owners=owners,
        updates_pods=True,
    )


def plan_with(defaults: Images, cluster_domain: str = CLUSTER_DOMAIN) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a Memcached."""

    def plan(snapshot: Snapshot, now: datetime) -> Plan:
        cr = snapshot.cr
        spec, errors = checked(cr)
        if spec is None or errors:
            return invalid(summary(errors, MAX_MESSAGE_LENGTH))
        workload = _workload(snapshot, spec, defaults)
        ports = served_ports(spec, workload) if is_stable(spec) else pooled_ports(spec, snapshot.pods)
        missing = _lacks_services(snapshot, spec)
        budget, notices = _budget(snapshot, spec, workload["spec"]["template"]["metadata"]["labels"])
        children = (
            workload,
            *services(cr, spec, ports),
            *_connection(cr, spec, ports, cluster_domain, fixed=has_slot_services(spec) and not missing),
            *budget,
            *_network_policy(snapshot, spec, ports, workload),
            *_pod_monitor(snapshot, spec, workload, cluster_domain),
        )
        found = _update(snapshot, spec, workload, now)
        problems = (*autoscaler_problems(snapshot), *(found.problems if found else ()))
        notices = (*notices, *(found.notices if found else ()))
        delays = (_retry_delay(cr) if missing else None, found and found.requeue_after)
        return Plan(children, problems, notices, earliest(delays), found)

    return plan


def _update(snapshot: Snapshot, spec: MemcachedSpec, workload: Object, now: datetime) -> Update | None:
    """The update of the pods of slots. During a pause, a pod is only completed or restored.

    `workload`: the desired one. A step must wait until it has been applied.
    """
    live = snapshot.child(STATEFULSETS)
    if live is None or not is_stable(spec):
        return None
    found = update(live, snapshot.pods, IN_PLACE, snapshot.resize, now)
    if found is None or found.step is None:
        return found
    paused = spec.rollout is not None and spec.rollout.paused is True
    wanted = found.must_finish or not paused
    return found if wanted and has_template(workload, live) else replace(found, step=None)


def _connection(cr: Object, spec: MemcachedSpec, ports: Ports, domain: str, *, fixed: bool) -> tuple[Object, ...]:
    """The ConfigMap, if the Memcached has slots."""
    return (connection(cr, spec.size, ports, domain, fixed=fixed),) if is_stable(spec) else ()


def _network_policy(snapshot: Snapshot, spec: MemcachedSpec, ports: Ports, workload: Object) -> tuple[Object, ...]:
    """The NetworkPolicy if there is to be one. It opens the port of the metrics only where no memcached listens on it.

    `ports`: those of the Services. Until a rollout has ended, clients need those of all existing pods too.
    `workload`: the desired one; during a pause, its pods can differ from the spec.
    """
    if spec.network_policy is None:
        return ()
    in_use = (ports, *(memcached_ports(pod["spec"]) for pod in snapshot.pods if not has_completed(pod)))
    opened = list(dict.fromkeys(port for each in in_use for port in each if port is not None))
    metrics = is_enabled(spec.monitoring) and has_agent(workload) and METRICS_PORT not in opened
    return (network_policy(snapshot.cr, opened, spec.network_policy, metrics=metrics),)


def _pod_monitor(snapshot: Snapshot, spec: MemcachedSpec, workload: Object, domain: str) -> tuple[Object, ...]:
    """The PodMonitor if there is to be one, the pods have agents, and the API server serves PodMonitors."""
    given = None if POD_MONITORS in snapshot.missing else wanted_pod_monitor(spec)
    if given is None or not has_agent(workload):
        return ()
    secret = certificate_secret(workload) if has_https(workload) else None
    https = {} if secret is None else https_fields(snapshot.cr, secret, domain)
    return (pod_monitor(snapshot.cr, given, https),)


def _lacks_services(snapshot: Snapshot, spec: MemcachedSpec) -> bool:
    """Whether an existing slot has no Service of ours: others' may have the name, and other servers.

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
    return c.CONFLICT in [each.get("reason") for each in nested_list(cr, "status", "conditions")]


def _workload(snapshot: Snapshot, spec: MemcachedSpec, defaults: Images) -> Object:
    """The Deployment or the StatefulSet."""
    live = snapshot.workload(STATEFULSETS if is_stable(spec) else DEPLOYMENTS)
    pins: dict[str, str] = {}
    if not spec.image:
        pins[PINNED_IMAGE_ANNOTATION] = pinned_image(live) or defaults.memcached
    if needs_agent(spec) and not (spec.agent and spec.agent.image):
        pins[PINNED_AGENT_ANNOTATION] = pinned_image(live, PINNED_AGENT_ANNOTATION) or defaults.agent
    images = Images(
        spec.image or pins[PINNED_IMAGE_ANNOTATION],
        (spec.agent and spec.agent.image) or pins.get(PINNED_AGENT_ANNOTATION, ""),
    )
    cr = snapshot.cr
    built = statefulset(cr, spec, images, live) if is_stable(spec) else deployment(cr, spec, images)
    return with_metadata(built, {}, pins)


def _budget(
    snapshot: Snapshot, spec: MemcachedSpec, labels: Mapping[str, str]
) -> tuple[tuple[Object, ...], tuple[str, ...]]:
    """The PodDisruptionBudget if there is to be one, or why there is none although the spec asks for it.

    `labels`: those of new pods.
    """
    if not wants_budget(spec):
        return (), ()
    if other := foreign_budget(snapshot, labels):
        return (), (budget_notice(other),)
    return (pod_disruption_budget(snapshot.cr, spec),), ()


def count_outdated_images(objects: Iterable[Object], default: str) -> int:
    """The number of objects whose `spec.image` is not the default. It is only reported, as a metric."""
    return sum(nested_map(obj, "spec").get("image", default) != default for obj in objects)


def count_outdated_agents(objects: Iterable[Object], default: str) -> int:
    """The number of objects with an agent whose `spec.agent.image` is not the default. It is only reported."""
    specs = (nested_map(obj, "spec") for obj in objects)
    return sum(nested_map(spec, "agent").get("image", default) != default for spec in specs if asks_for_agent(spec))


def pinned_image(live: Object | None, annotation: str = PINNED_IMAGE_ANNOTATION) -> str | None:
    """The image that this or an earlier release of the operator chose for a Memcached that names none.

    `live`: its workload, or None.
    """
    return None if live is None else nested_map(live, "metadata", "annotations").get(annotation)
