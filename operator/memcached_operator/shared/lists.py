"""Sentences about resources that cannot be listed: what depends on them is kept."""

from collections.abc import Iterator
from typing import Final

from memcached_operator.kind import Snapshot
from memcached_operator.kube import texts
from memcached_operator.kube.knowledge import Knowledge, State
from memcached_operator.kube.resource import AUTOSCALERS, Resource

MAX_LENGTH: Final = 500
"""Characters of an error message of the API server."""

FORBIDDEN: Final = 403


def failure(resource: Resource, snapshot: Snapshot, known: Knowledge) -> str:
    """That a resource cannot be listed in the namespace of an object, the cause, and the remedy if there is one."""
    cause = texts.clause(known.error, MAX_LENGTH)
    remedy = ". Restore the operator's roles: install its release again" if known.code == FORBIDDEN else ""
    return f"{resource.plural} in namespace {snapshot.cr['metadata']['namespace']} cannot be listed: {cause}{remedy}"


def unlisted_notices(snapshot: Snapshot, *wanted: Resource) -> Iterator[str]:
    """What is not done because of a failed list. `wanted`: the resources of children that the spec asks for.

    Nothing while the first list is not answered.
    """
    for resource in wanted:
        if text := _unlisted(resource, snapshot):
            yield f"The {resource.kind} is not changed, because {text}"
    if text := _unlisted(AUTOSCALERS, snapshot):
        which = "Which" if snapshot.autoscaled else "Whether a"
        yield f"{which} {AUTOSCALERS.kind} scales the pods is not known, because {text}"


def _unlisted(resource: Resource, snapshot: Snapshot) -> str:
    """Why a resource is not listed; empty if it is, or if no list has failed."""
    known = snapshot.known(resource)
    return failure(resource, snapshot, known) if known.state is State.UNLISTED and known.has_failed else ""
