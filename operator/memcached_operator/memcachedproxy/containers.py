"""The containers of a MemcachedProxy's pods, and the fields of its spec that govern each: data for messages."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from memcached_api import conditions as c
from memcached_api.remedies import Action, Direction, corrected, lowered, raised
from memcached_operator.findings.rules import OwnContainer
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired.deployment import CONTAINER
from memcached_operator.memcachedproxy.desired.scaling import SWEEP
from memcached_operator.parts import agent
from memcached_operator.parts.containers import (
    ADD_NODE,
    AGENT,
    CREDENTIALS,
    MISSING_PROGRAM,
    ROOT,
    USER,
    disruptions,
    scheduling,
)

CONTAINERS: Final[Mapping[str, OwnContainer]] = {
    CONTAINER: OwnContainer(
        image="spec.image",
        credentials=CREDENTIALS,
        memory=(raised("spec.resources.limits.memory"), lowered("spec.maxConnections")),
        start=((MISSING_PROGRAM, (corrected("spec.image"),)), (ROOT, (USER,))),
    ),
    agent.CONTAINER: AGENT,
}
"""By the name of the container."""

INIT_CONTAINERS: Final[Mapping[str, OwnContainer]] = {
    SWEEP: replace(
        AGENT,
        exits={1: "it has not removed the outdated items of all slots before the change of size"},
        reason=c.SWEEP_FAILED,
    )
}
"""Those of a phase of a change of size."""

DISRUPTIONS: Final = disruptions()
"""The remedy by a part of the reason and of the message with which Kubernetes stops pods."""

SCHEDULING: Final = scheduling(
    memory=(lowered("spec.resources.requests.memory", "spec.maxConnections"), ADD_NODE),
    others=(
        ADD_NODE,
        Action(
            "set spec.rollout.maxSurge to 0, which replaces one pod at a time",
            ("spec.rollout.maxSurge",),
            Direction.DOWN,
        ),
    ),
)
"""The remedy by a part of the scheduler's message."""


def restart(cr: Object) -> str:
    """How to replace the pods of a MemcachedProxy. They hold no items."""
    name = f"-n {cr['metadata']['namespace']} memcachedproxy {cr['metadata']['name']}"
    return f"To replace the pods, set spec.rollout.restartedAt to the current time: kubectl edit {name}"
