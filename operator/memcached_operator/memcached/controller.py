"""The Memcached controller: the resources it owns, and its two pure functions, plan and status."""

from collections.abc import Callable, Iterable
from datetime import datetime

from memcached_api.memcached.types import GROUP, KIND, PLURAL, VERSION, check
from memcached_api.validation.field_errors import summary
from memcached_operator.kind import Kind, Plan, Snapshot, invalid
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource, nested_map
from memcached_operator.memcached.desired.deployment import APP_NAME, deployment
from memcached_operator.memcached.desired.service import service
from memcached_operator.memcached.status import status
from memcached_operator.status.conditions import MAX_MESSAGE_LENGTH
from memcached_operator.workloads.deployment import DEPLOYMENT

MEMCACHEDS = Resource(GROUP, VERSION, KIND, PLURAL)

PINNED_IMAGE_ANNOTATION = "memcached-operator.example.com/default-image"
"""Annotation of a Deployment whose Memcached has no `spec.image`, because the webhook was unavailable on create. Its
value is the default image at that time, so that a later release does not restart the cache."""


def memcached(default_image: str) -> Kind:
    """The Memcached kind. `default_image`: the image of objects without `spec.image`."""
    return Kind(MEMCACHEDS, APP_NAME, (DEPLOYMENTS, SERVICES), DEPLOYMENT, plan_with(default_image), status)


def plan_with(default_image: str) -> Callable[[Snapshot, datetime], Plan]:
    """The function that computes the children of a Memcached."""

    def plan(snapshot: Snapshot, _: datetime) -> Plan:
        cr = snapshot.cr
        spec, errors = check(cr)
        if spec is None or errors:
            return invalid(summary(errors, MAX_MESSAGE_LENGTH))
        if spec.image:
            return Plan((deployment(cr, spec, spec.image), service(cr, spec)))
        image = pinned_image(snapshot) or default_image
        return Plan((pinned(deployment(cr, spec, image), image), service(cr, spec)))

    return plan


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
