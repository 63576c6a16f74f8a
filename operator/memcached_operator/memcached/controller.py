"""The Memcached controller: the resources it owns, and its two pure functions, plan and status."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from memcached_api import conditions as c
from memcached_api.memcached.types import GROUP, KIND, PLURAL, VERSION, MemcachedSpec, is_stable
from memcached_api.validation.field_errors import summary
from memcached_operator.kind import Kind, Plan, Snapshot, invalid
from memcached_operator.kube.resource import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    nested_list,
    nested_map,
)
from memcached_operator.memcached.desired.addresses import CLUSTER_DOMAIN, slot_name
from memcached_operator.memcached.desired.connection import connection
from memcached_operator.memcached.desired.deployment import deployment
from memcached_operator.memcached.desired.network_policy import network_policy
from memcached_operator.memcached.desired.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.memcached.desired.pods import APP_NAME
from memcached_operator.memcached.desired.service import has_slot_services, services
from memcached_operator.memcached.desired.statefulset import statefulset, with_held_port
from memcached_operator.memcached.foreign import autoscaler_problems, budget_notice, foreign_budget, ignores
from memcached_operator.memcached.spec import checked
from memcached_operator.memcached.status import status_with
from memcached_operator.status.conditions import MAX_MESSAGE_LENGTH
from memcached_operator.workloads.children import with_metadata
from memcached_operator.workloads.deployment import DEPLOYMENT
from memcached_operator.workloads.statefulset import STATEFULSET

MEMCACHEDS = Resource(GROUP, VERSION, KIND, PLURAL)

CREATION_DELAY, CONFLICT_DELAY = 0.5, 10.0
"""Seconds until the plan is made again while Services of slots do not exist."""

PINNED_IMAGE_ANNOTATION = "memcached-operator.example.com/default-image"
"""Annotation of a workload whose Memcached has no `spec.image`, because the webhook was unavailable on create. Its
value is the default image at that time, so that a later release does not restart the cache."""


def memcached(default_image: str, cluster_domain: str = CLUSTER_DOMAIN) -> Kind:
    """The Memcached kind. `default_image`: the image of objects without `spec.image`.

    `cluster_domain`: the DNS domain of the cluster.
    """
    return Kind(
        MEMCACHEDS,
        APP_NAME,
        owns=(DEPLOYMENTS, STATEFULSETS, SERVICES, CONFIG_MAPS, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES),
        workloads=(DEPLOYMENT, STATEFULSET),
        plan=plan_with(default_image, cluster_domain),
        status=status_with(cluster_domain),
        observes=(POD_DISRUPTION_BUDGETS, AUTOSCALERS),
        ignores=ignores,
    )


def plan_with(default_image: str, cluster_domain: str = CLUSTER_DOMAIN) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a Memcached."""

    def plan(snapshot: Snapshot, _: datetime) -> Plan:
        cr = snapshot.cr
        spec, errors = checked(cr)
        if spec is None or errors:
            return invalid(summary(errors, MAX_MESSAGE_LENGTH))
        workload = _workload(snapshot, spec, default_image)
        spec = with_held_port(spec, workload)
        missing = _lacks_services(snapshot, spec)
        budget, notices = _budget(snapshot, spec, workload["spec"]["template"]["metadata"]["labels"])
        children = (
            workload,
            *services(cr, spec),
            *_connection(cr, spec, cluster_domain, fixed=has_slot_services(spec) and not missing),
            *budget,
            *([] if spec.network_policy is None else [network_policy(cr, spec.network_policy, spec.container_port)]),
        )
        delay = _retry_delay(cr) if missing else None
        return Plan(children, tuple(autoscaler_problems(snapshot)), notices, delay)

    return plan


def _connection(cr: Object, spec: MemcachedSpec, domain: str, *, fixed: bool) -> tuple[Object, ...]:
    """The ConfigMap, if the Memcached has slots."""
    return (connection(cr, spec, domain, fixed=fixed),) if is_stable(spec) else ()


def _lacks_services(snapshot: Snapshot, spec: MemcachedSpec) -> bool:
    """Whether an existing slot has no Service of ours: others' may have the name, and other servers."""
    live = snapshot.child(STATEFULSETS)
    if live is None or not has_slot_services(spec):
        return False
    existing = min(live["spec"].get("replicas", 1), spec.size)
    names = (slot_name(snapshot.cr, slot) for slot in range(existing))
    return any(snapshot.child(SERVICES, name) is None for name in names)


def _retry_delay(cr: Object) -> float:
    """Seconds until the Services of slots are looked for again: at once if they are being created."""
    reasons = [each.get("reason") for each in nested_list(cr, "status", "conditions")]
    return CONFLICT_DELAY if c.CONFLICT in reasons else CREATION_DELAY


def _workload(snapshot: Snapshot, spec: MemcachedSpec, default_image: str) -> Object:
    """The Deployment or the StatefulSet."""
    live = snapshot.child(STATEFULSETS if is_stable(spec) else DEPLOYMENTS)
    image = spec.image or pinned_image(live) or default_image
    cr = snapshot.cr
    built = statefulset(cr, spec, image, live) if is_stable(spec) else deployment(cr, spec, image)
    return built if spec.image else with_metadata(built, {}, {PINNED_IMAGE_ANNOTATION: image})


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


def count_outdated_images(objects: Iterable[Object], default_image: str) -> int:
    """The number of objects whose `spec.image` is not the default. It is only reported, as a metric."""
    return sum(nested_map(obj, "spec").get("image", default_image) != default_image for obj in objects)


def pinned_image(live: Object | None) -> str | None:
    """The image that this or an earlier release of the operator chose for a Memcached without `spec.image`.

    `live`: its workload, or None.
    """
    return None if live is None else nested_map(live, "metadata", "annotations").get(PINNED_IMAGE_ANNOTATION)
