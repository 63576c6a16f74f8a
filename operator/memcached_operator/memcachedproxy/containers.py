"""The containers of a MemcachedProxy's pods, and the fields of its spec that govern each: data for messages."""

from collections.abc import Mapping
from typing import Final

from memcached_operator.memcachedproxy.desired.deployment import CONTAINER
from memcached_operator.shared import agent
from memcached_operator.shared.containers import (
    AGENT,
    CREDENTIALS,
    MISSING_PROGRAM,
    ROOT,
    USER,
    disruptions,
    scheduling,
)
from memcached_operator.workloads.rules import OwnContainer

CONTAINERS: Final[Mapping[str, OwnContainer]] = {
    CONTAINER: OwnContainer(
        image="spec.image",
        credentials=CREDENTIALS,
        memory="raise spec.resources.limits.memory, or lower spec.maxConnections",
        start=((MISSING_PROGRAM, "correct spec.image"), (ROOT, USER)),
    ),
    agent.CONTAINER: AGENT,
}
"""By the name of the container."""

DISRUPTIONS: Final = disruptions()
"""The remedy by a part of the reason and of the message with which Kubernetes stops pods."""

SCHEDULING: Final = scheduling(
    memory="lower spec.resources.requests.memory or spec.maxConnections, or add a node",
    others="add a node, or set spec.rollout.maxSurge to 0, which replaces one pod at a time",
)
"""The remedy by a part of the scheduler's message."""
