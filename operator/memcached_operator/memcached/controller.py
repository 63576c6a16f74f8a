"""The Memcached controller: the resources it owns, and its two pure functions, plan and status."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from memcached_api.memcached.types import GROUP, KIND, PLURAL, VERSION, MemcachedSpec, check
from memcached_api.validation.field_errors import summary
from memcached_operator.kind import Kind, Plan, Snapshot, invalid
from memcached_operator.kube.resource import (
    AUTOSCALERS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Object,
    Resource,
    nested_map,
)
from memcached_operator.memcached.desired.deployment import APP_NAME, deployment
from memcached_operator.memcached.desired.network_policy import network_policy
from memcached_operator.memcached.desired.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.memcached.desired.service import service
from memcached_operator.memcached.foreign import autoscaler_problems, budget_notice, foreign_budget, ignores
from memcached_operator.memcached.status import status
from memcached_operator.status.conditions import MAX_MESSAGE_LENGTH
from memcached_operator.workloads.deployment import DEPLOYMENT

MEMCACHEDS = Resource(GROUP, VERSION, KIND, PLURAL)

PINNED_IMAGE_ANNOTATION = "memcached-operator.example.com/default-image"
"""Annotation of a Deployment whose Memcached has no `spec.image`, because the webhook was unavailable on create. Its
value is the default image at that time, so that a later release does not restart the cache."""


def memcached(default_image: str) -> Kind:
    """The Memcached kind. `default_image`: the image of objects without `spec.image`."""
    return Kind(
        MEMCACHEDS,
        APP_NAME,
        owns=(DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES),
        workload=DEPLOYMENT,
        plan=plan_with(default_image),
        status=status,
        observes=(POD_DISRUPTION_BUDGETS, AUTOSCALERS),
        ignores=ignores,
    )


def plan_with(default_image: str) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a Memcached."""

    def plan(snapshot: Snapshot, _: datetime) -> Plan:
        cr = snapshot.cr
        spec, errors = check(cr)
        if spec is None or errors:
            return invalid(summary(errors, MAX_MESSAGE_LENGTH))
        image = spec.image or pinned_image(snapshot) or default_image
        workload = deployment(cr, spec, image)
        budget, notices = _budget(snapshot, spec, workload["spec"]["template"]["metadata"]["labels"])
        children = (
            workload if spec.image else pinned(workload, image),
            service(cr, spec),
            *budget,
            *([] if spec.network_policy is None else [network_policy(cr, spec.network_policy, spec.container_port)]),
        )
        return Plan(children, tuple(autoscaler_problems(snapshot)), notices)

    return plan


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


def pinned_image(snapshot: Snapshot) -> str | None:
    """The image that this or an earlier release of the operator chose for a Memcached without `spec.image`."""
    live = snapshot.child(DEPLOYMENTS)
    return None if live is None else nested_map(live, "metadata", "annotations").get(PINNED_IMAGE_ANNOTATION)


def pinned(deployment: Object, image: str) -> Object:
    """The Deployment with its image recorded in PINNED_IMAGE_ANNOTATION."""
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": {PINNED_IMAGE_ANNOTATION: image}}}
