"""Notices about resources that cannot be listed: what depends on them is kept."""

from collections.abc import Iterator

from memcached_operator.engine.reporting.lists import failure
from memcached_operator.kube.resource import Resource
from memcached_operator.world.knowledge import State
from memcached_operator.world.snapshot import Snapshot


def unlisted_notices(snapshot: Snapshot, *wanted: Resource) -> Iterator[str]:
    """What is not done because of a failed list. `wanted`: the resources of children that the spec asks for.

    Nothing while the first list is not answered.
    """
    for resource in wanted:
        if text := _unlisted(resource, snapshot):
            yield f"The {resource.kind} is not changed, because {text}"


def _unlisted(resource: Resource, snapshot: Snapshot) -> str:
    """Why a resource is not listed; empty if it is, or if no list has failed."""
    known = snapshot.known(resource)
    return failure(resource, snapshot.namespace, known) if known.state is State.UNLISTED and known.has_failed else ""
