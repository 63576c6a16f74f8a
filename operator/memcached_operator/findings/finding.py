"""What is found in the observed state: problems, and what other clients did."""

from dataclasses import dataclass
from typing import NamedTuple

from memcached_operator.kube.resource import Key


@dataclass(frozen=True)
class Problem:
    """A problem that the status reports."""

    reason: str
    """The reason of a condition, such as Degraded."""
    message: str
    """The sentence for the condition, with the remedy."""
    blocks: bool = True
    """It prevents a rollout."""
    objects: tuple[Key, ...] = ()
    """The objects of others, in the place of children, that it is about."""


class Intervention(NamedTuple):
    """What another client did to a child, with the remedy. The status mentions it, and an Event reports it once."""

    reason: str
    """The reason of the Event."""
    message: str
    """A sentence with the remedy. It must stay the same while the cause does, so that it causes no writes."""
    is_conflict: bool = False
    """The client goes on until a user ends it: two owners of one field."""
