"""The slots of a Memcached over which proxies distribute keys: all of them, or both sets during a change of size.

Kinds do not import each other: proxies write and show a ring, and a Memcached waits until all pods use the one of its
phase.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from memcached_api.annotations import RING_ANNOTATION
from memcached_api.validation.common_rules import LABEL, MAX_NAME_LENGTH, matches
from memcached_operator.kube.resource import nested_map

MAX_SLOTS: Final = 1000
"""The most slots of a Memcached (`memcached_api.memcached.rules.spec`). What kinds share imports none of them."""

_UID: Final = re.compile(r"[0-9A-Za-z-]{0,63}")
"""Anyone who can create a pod writes its ring, and many rings are kept at the same time."""

CORRECT: Final = "Correct the policy or the client that removes or changes it"
"""The remedy if something changes what the operator records in annotations, or removes an init container."""

_NUMBER: Final = r"[1-9][0-9]{0,3}"
_MOVE: Final = re.compile(
    rf"(?P<source>{_NUMBER})>(?P<target>{_NUMBER})/(?P<phase>[A-Z][a-z]+)/(?P<change>[1-9][0-9]{{0,11}})", re.ASCII
)


class Phase(StrEnum):
    """A phase of a change of size. Proxies have routes of their own in MOVING; in the others, plain ones."""

    STABLE = "Stable"
    """No change. It is no phase of `status.scaling`."""
    WAIT = "Wait"
    """Until all slots are ready. Proxies use the slots from before."""
    PREPARE = "Prepare"
    MOVE = "Move"
    FINISH = "Finish"
    PLAIN = "Plain"
    """Proxies use only the new slots."""


MOVING: Final = (Phase.PREPARE, Phase.MOVE, Phase.FINISH)


class Move(NamedTuple):
    """A phase in which keys have two places. `change`: identifies the change of size, by the Unix time of its start."""

    source: int
    target: int
    phase: Phase
    change: int

    def __str__(self) -> str:
        return f"{self.source}>{self.target}/{self.phase}/{self.change}"


@dataclass(frozen=True)
class Ring:
    """The first `servers` slots of the Memcached with this name and uid: with `move`, those before and after it."""

    name: str
    uid: str
    servers: int
    move: Move | None = None

    @property
    def usage(self) -> str:
        """The slots without the Memcached, as in `status.caches`."""
        return str(self.move or self.servers)

    def __str__(self) -> str:
        return f"{self.name}/{self.uid}/{self.usage}"

    def is_of(self, other: "Ring") -> bool:
        """Whether both rings are of the same Memcached."""
        return (self.name, self.uid) == (other.name, other.uid)


class Use(NamedTuple):
    """What a proxy, or a pod of one, shows to a Memcached.

    `servers`: the number of slots, from the first one, that it may use. `usage`: that of the ring of all of its pods;
    empty while they differ.
    """

    servers: int
    usage: str = ""


NO_USE: Final = Use(0)


def moving(name: str, uid: str, move: Move) -> Ring:
    """The ring of a phase with two places."""
    return Ring(name, uid, max(move.source, move.target), move)


def ring_of(obj: Mapping[str, Any]) -> Ring | None:
    """The ring of a pod template, or of a pod as the API server returns it; None without a valid one."""
    return ring_in(nested_map(obj, "metadata", "annotations"))


def ring_in(annotations: Mapping[str, str]) -> Ring | None:
    """The ring in annotations; None without a valid one, because another client can change it."""
    name, _, rest = annotations.get(RING_ANNOTATION, "").partition("/")
    uid, _, part = rest.partition("/")
    if not _UID.fullmatch(uid) or len(name) > MAX_NAME_LENGTH or not matches(LABEL, name):
        return None
    if (move := move_in(part)) is not None:
        return moving(name, uid, move)
    is_number = part.isdecimal() and part.isascii() and len(part) <= len(str(MAX_SLOTS))
    return Ring(name, uid, int(part)) if is_number and 0 < int(part) <= MAX_SLOTS else None


def move_in(usage: str) -> Move | None:
    """The phase in the usage of a ring; None without a valid one."""
    match = _MOVE.fullmatch(usage)
    if match is None:
        return None
    return move_of(int(match["source"]), int(match["target"]), match["phase"], int(match["change"]))


def move_of(source: int, target: int, phase: str, change: int) -> Move | None:
    """A phase with two places; None if the values are not those of one."""
    is_valid = source != target and min(source, target) > 0 and max(source, target) <= MAX_SLOTS and change > 0
    return Move(source, target, Phase(phase), change) if is_valid and phase in MOVING else None
