"""The recorded state of a change of size: an annotation of the StatefulSet, so that any leader continues it.

It is written only to the version of the StatefulSet that the plan has seen. Another client can change it, so everything
in it is checked when it is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from memcached_api.annotations import MOVE_ANNOTATION
from memcached_api.memcached.rules.spec import MAX_SLOTS
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.kube.times import time_of
from memcached_operator.parts.ring import MOVING, Move, Phase, Ring, moving

BEFORE: Final = (Phase.STABLE, Phase.WAIT, Phase.PREPARE)
"""The phases in which reads go to the slots from before."""

_MAX_CHANGE: Final = 10**12
"""More than the Unix time of any year that a clock shows, and the digits of a ring (`parts.ring`)."""


class _Record(msgspec.Struct, frozen=True, omit_defaults=True, rename={"source": "from", "target": "to"}):
    source: int
    target: int
    phase: Phase
    change: int = 0
    since: str = ""
    moving: str = ""


_DECODER: Final = msgspec.json.Decoder(_Record)


@dataclass(frozen=True)
class Latch:
    """One state of a change of size.

    `source`, `target`: the slots before and after it; equal while the size is stable. `change`: identifies the change,
    or the last one, by the Unix time of its start; each has a higher number. `since`: the time of the last arrow.
    `moving`: in Move, the time at which all proxies had this phase. Times are None if they are not known.
    """

    source: int
    target: int
    phase: Phase = Phase.STABLE
    change: int = 0
    since: datetime | None = None
    moving: datetime | None = None

    @property
    def is_stable(self) -> bool:
        """Whether no change takes place."""
        return self.phase is Phase.STABLE

    @property
    def is_moving(self) -> bool:
        """Whether pods of proxies may use routes of a phase: from the first arrow after Wait on."""
        return self.phase in (*MOVING, Phase.PLAIN)

    @property
    def published(self) -> int:
        """The number of slots that clients should use, as in `status.servers`."""
        return self.source if self.phase in BEFORE else self.target

    @property
    def kept(self) -> int:
        """The number of slots that must exist."""
        return max(self.source, self.target)

    def ring(self, name: str, uid: str) -> Ring:
        """The ring that proxies have in this state."""
        if self.phase not in MOVING:
            return Ring(name, uid, self.published)
        return moving(name, uid, Move(self.source, self.target, self.phase, self.change))

    def annotations(self) -> dict[str, str]:
        """The annotation of the StatefulSet."""
        since, moved = ("" if time is None else time.isoformat() for time in (self.since, self.moving))
        record = _Record(self.source, self.target, self.phase, self.change, since, moved)
        return {MOVE_ANNOTATION: msgspec.json.encode(record).decode()}


def stable(size: int, change: int = 0) -> Latch:
    """The state without a change. `change`: the last one."""
    return Latch(size, size, change=change)


def recorded(live: Object | None) -> Latch | None:
    """The state that a StatefulSet records; None without a valid one."""
    text = nested_map(live or {}, "metadata", "annotations").get(MOVE_ANNOTATION, "")
    try:
        return _latch(_DECODER.decode(text))
    except (msgspec.DecodeError, UnicodeError):
        return None


def published(status: Mapping[str, Any]) -> Latch | None:
    """The state in `status.scaling`; None without a valid one."""
    try:
        return _latch(msgspec.convert(status, _Record))
    except msgspec.ValidationError:
        return None


def _latch(found: _Record) -> Latch | None:
    """The state, if its values are those of one."""
    sizes = (found.source, found.target)
    is_change = found.phase is not Phase.STABLE
    if not (min(sizes) > 0 and max(sizes) <= MAX_SLOTS and (found.source != found.target) is is_change):
        return None
    if not int(is_change) <= found.change < _MAX_CHANGE:
        return None
    return Latch(*sizes, found.phase, found.change, time_of(found.since), time_of(found.moving))
