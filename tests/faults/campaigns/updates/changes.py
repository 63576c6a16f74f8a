"""The changes of a spec that update pods, and what each of them does to a pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from faults.campaigns.updates.kubelet import MISSING, NOWHERE
from faults.workloads import OTHER_IMAGE, cache
from support.kubelet import AGENT, MEMCACHED

Spec = Mapping[str, Any]
SIZE = 3
AGENT_IMAGE, OTHER_AGENT_IMAGE = "example.com/agent:1", "example.com/agent:2"
MISSING_IMAGE = f"example.com/{MISSING}:1"
THIRD_IMAGE = "example.com/app:3"
PATCH, RESIZE, DELETE = "patch pods", "patch pods/resize", "delete pods"
"""The writes on pods."""


def stable(**spec: Any) -> Spec:
    """The spec of a Memcached with slots, whose pods the simulated kubelet runs."""
    return cache(size=SIZE, identity="Stable", **NOWHERE, **spec)


def monitored(**spec: Any) -> Spec:
    """The same with an agent."""
    return stable(monitoring={}, **{"agent": {"image": AGENT_IMAGE}, **spec})


def warm(connections: int = 1024, **spec: Any) -> Spec:
    """The same with a memcached that keeps its items when it is restarted."""
    settings = {"memory": "64Mi", "warmRestart": True, "maxConnections": connections}
    return stable(agent={"image": AGENT_IMAGE}, cache=settings, **spec)


def sized(limit: str) -> Spec:
    """Resources of memcached with this memory limit."""
    return {"resources": {"limits": {"memory": limit}, "requests": {"cpu": "100m", "memory": limit}}}


@dataclass(frozen=True)
class Change:
    """A change of a spec. `restarts`: how often it restarts each container of a pod; `cold`: it replaces the pods.

    `writes`: the writes on each pod, in order. `does`: what they change, each once, in order. `corrected`: a spec
    with another image, if that of `then` is missing.
    """

    first: Spec
    then: Spec
    writes: tuple[str, ...]
    does: tuple[str, ...]
    restarts: Mapping[str, int] = field(default_factory=dict[str, int])
    cold: bool = False
    corrected: Spec = field(default_factory=dict[str, Any])

    @property
    def resizes(self) -> bool:
        """Whether it needs the subresource of pods for resizes."""
        return RESIZE in self.writes


RESTARTED: Mapping[str, int] = {MEMCACHED: 1}
CHANGES: dict[str, Change] = {
    "agent-image": Change(
        monitored(), monitored(agent={"image": OTHER_AGENT_IMAGE}), (PATCH,), (f"image {AGENT}",), {AGENT: 1}
    ),
    "warm-up": Change(
        monitored(rollout={"warmUp": {"hitRatio": 80}}),
        monitored(rollout={"warmUp": {"hitRatio": 60}}),
        (PATCH,),
        ("warm-up",),
    ),
    "resources": Change(
        stable(resources={"requests": {"cpu": "100m"}}),
        stable(resources={"requests": {"cpu": "200m"}}),
        (PATCH, RESIZE, PATCH),
        ("resources",),
    ),
    "memory": Change(
        monitored(cache={"memory": "64Mi"}),
        monitored(cache={"memory": "128Mi"}),
        (PATCH, RESIZE, PATCH),
        ("resources", "memory"),
    ),
    "image": Change(
        warm(**sized("256Mi")), warm(**sized("256Mi"), image=OTHER_IMAGE), (PATCH,), (f"image {MEMCACHED}",), RESTARTED
    ),
    "arguments": Change(warm(1024, **sized("256Mi")), warm(2048, **sized("256Mi")), (PATCH,), ("args",), RESTARTED),
    "arguments-raised": Change(
        warm(1024, **sized("256Mi")),
        warm(2048, **sized("512Mi")),
        (PATCH, RESIZE, PATCH),
        ("resources", "args"),
        RESTARTED,
    ),
    "arguments-lowered": Change(
        warm(2048, **sized("512Mi")),
        warm(1024, **sized("256Mi")),
        (PATCH, RESIZE, PATCH),
        ("args", "resources"),
        RESTARTED,
    ),
    "several": Change(
        warm(**sized("256Mi")),
        {
            **warm(**sized("512Mi"), image=OTHER_IMAGE),
            "agent": {"image": OTHER_AGENT_IMAGE, "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}},
        },
        (PATCH, RESIZE, PATCH),
        ("resources", f"image {MEMCACHED}", f"image {AGENT}"),
        {MEMCACHED: 1, AGENT: 1},
    ),
    "cold": Change(stable(), stable(image=OTHER_IMAGE), (DELETE,), ("delete",), cold=True),
    "memory-down": Change(
        monitored(cache={"memory": "128Mi"}),
        monitored(cache={"memory": "64Mi"}),
        (DELETE,),
        ("delete",),
        cold=True,
    ),
}
"""`image`: a new image of memcached, which keeps its items. `cold`: the same, without them. `several`: images and
resources of both containers."""

MISSING_IMAGES: dict[str, Change] = {
    "image": replace(
        CHANGES["image"], then=warm(**sized("256Mi"), image=MISSING_IMAGE), corrected=CHANGES["image"].then
    ),
    "image-and-arguments": replace(
        CHANGES["image"],
        then=warm(2048, **sized("512Mi"), image=MISSING_IMAGE),
        writes=(PATCH, RESIZE, PATCH),
        corrected=warm(2048, **sized("512Mi"), image=OTHER_IMAGE),
    ),
    "agent-image": replace(
        CHANGES["agent-image"], then=monitored(agent={"image": MISSING_IMAGE}), corrected=CHANGES["agent-image"].then
    ),
    "cold": replace(CHANGES["cold"], then=stable(image=MISSING_IMAGE), corrected=CHANGES["cold"].then),
}
"""Changes to an image that does not exist."""
