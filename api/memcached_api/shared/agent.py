"""The part of a spec about the agent, a container beside memcached."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memcached_api.effects import Effect, FieldEffect, Needs, Part
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.kubernetes import Resources

AGENT_CPU: Final = "10m"
AGENT_REQUEST: Final = "24Mi"
AGENT_LIMIT: Final = "48Mi"
"""Default resources of the agent: it needs about 16 MiB."""


_IMAGE: Final = FieldEffect(Effect.IN_PLACE, Needs.AGENT, Part.AGENT_IMAGE)


class Agent(msgspec.Struct, frozen=True, rename="camel"):
    """The agent, a second container in each pod. It runs only if a feature of the spec needs it."""

    image: Annotated[str, Meta(min_length=1, max_length=MAX_IMAGE_LENGTH), _IMAGE] | None = None
    """Container image of the agent. If it is absent when an agent is first needed, or if you remove a value that you
    set, the mutating webhook sets the image of the operator's release. Later releases do not change it."""

    resources: Resources | None = None
    """Compute resources of the agent. By default, it requests `cpu: 10m` and `memory: 24Mi`, with a memory limit of
    `48Mi`."""
