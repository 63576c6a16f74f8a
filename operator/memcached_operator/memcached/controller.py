"""What the kind Memcached is to the engine: the resources it owns, and its two pure functions."""

from collections.abc import Callable, Iterable

from memcached_api.field_errors import summary
from memcached_api.memcached import GROUP, KIND, PLURAL, VERSION, decode_spec, validate
from memcached_operator.kind import InvalidSpecError, Kind, Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource, mapping
from memcached_operator.memcached.desired.deployment import APP_NAME, deployment
from memcached_operator.memcached.desired.service import service
from memcached_operator.memcached.status import status
from memcached_operator.status.conditions import MESSAGE_LIMIT

MEMCACHEDS = Resource(GROUP, VERSION, KIND, PLURAL)

PINNED_IMAGE = "memcached-operator.example.com/default-image"
"""Annotation of a Deployment whose Memcached names no image (it was stored while admission was away): the operator's
default of that day, so that the next release does not restart this cache either."""


def memcached(default_image: str) -> Kind:
    """The kind, with the image for objects that name none."""
    return Kind(MEMCACHEDS, APP_NAME, (DEPLOYMENTS, SERVICES), desired_with(default_image), status)


def desired_with(default_image: str) -> Callable[[Object, Snapshot], list[Object]]:
    """The children of a Memcached, as a function of the object and of what is there."""

    def desired(cr: Object, snapshot: Snapshot) -> list[Object]:
        found = validate(cr)
        if found:
            raise InvalidSpecError(summary(found, MESSAGE_LIMIT))
        spec = decode_spec(cr)
        if spec.image:
            return [deployment(cr, spec, spec.image), service(cr, spec)]
        image = pinned_image(snapshot) or default_image
        return [pinned(deployment(cr, spec, image), image), service(cr, spec)]

    return desired


def outdated(objects: Iterable[Object], default_image: str) -> int:
    """How many objects name another image than the default: nothing is done about it, but somebody may want to."""
    return sum(mapping(obj, "spec").get("image", default_image) != default_image for obj in objects)


def pinned_image(snapshot: Snapshot) -> str | None:
    """The image this operator, or an earlier release of it, chose for a Memcached that names none."""
    live = snapshot.child(DEPLOYMENTS)
    return None if live is None else mapping(live, "metadata", "annotations").get(PINNED_IMAGE)


def pinned(deployment: Object, image: str) -> Object:
    """The Deployment with the choice of its image noted on it."""
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": {PINNED_IMAGE: image}}}
