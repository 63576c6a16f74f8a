"""The recorded state of a change of size: annotations of the StatefulSet, so that any leader continues it.

It is written only to the version of the StatefulSet that the plan has seen. Another client can change it, so everything
in it is checked when it is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from memcached_api.annotations import MOVE_ANNOTATION, MOVE_TIMES_ANNOTATION
from memcached_api.memcached.rules.spec import MAX_SLOTS
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.kube.times import time_of
from memcached_operator.parts.ring import MOVING, Move, Phase, Ring, moving

BEFORE: Final = (Phase.STABLE, Phase.WAIT, Phase.PREPARE)
"""The phases in which reads go to the slots from before."""

FIRST_YEAR, LAST_YEAR = 2000, 3000
"""Years of a time that is believed."""

MAX_LENGTH: Final = 512
"""Characters of an annotation that is read: more than the longest one."""

_MAX_CHANGE: Final = 10**12
"""More than the Unix time of any year that a clock shows, and the digits of a ring (`parts.ring`)."""


class _State(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    source: int
    target: int
    phase: Phase


class _Times(msgspec.Struct, frozen=True, omit_defaults=True):
    change: int = 0
    since: str = ""
    moving: str = ""


_STATES: Final = msgspec.json.Decoder(_State)
_TIMES: Final = msgspec.json.Decoder(_Times)


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
        """The annotations of the StatefulSet."""
        since, moved = ("" if time is None else time.isoformat() for time in (self.since, self.moving))
        state, times = _State(self.source, self.target, self.phase), _Times(self.change, since, moved)
        return {MOVE_ANNOTATION: _text(state), MOVE_TIMES_ANNOTATION: _text(times)}


def _text(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def stable(size: int, change: int = 0) -> Latch:
    """The state without a change. `change`: the last one."""
    return Latch(size, size, change=change)


def recorded(live: Object | None) -> Latch | None:
    """The state that a StatefulSet records; None without a valid one."""
    annotations = nested_map(live or {}, "metadata", "annotations")
    texts = [annotations.get(name, "") for name in (MOVE_ANNOTATION, MOVE_TIMES_ANNOTATION)]
    if max(map(len, texts)) > MAX_LENGTH:  # deeply nested JSON would exhaust the stack
        return None
    try:
        state, times = _STATES.decode(texts[0]), _TIMES.decode(texts[1])
    except (msgspec.DecodeError, UnicodeError):
        return None
    return _latch(state, times)


def published(status: Mapping[str, Any]) -> Latch | None:
    """The state in `status.scaling`; None without a valid one."""
    try:
        return _latch(msgspec.convert(status, _State), msgspec.convert(status, _Times))
    except msgspec.ValidationError:
        return None


def _latch(state: _State, times: _Times) -> Latch | None:
    """The state, if its values are those of one."""
    sizes = (state.source, state.target)
    is_change = state.phase is not Phase.STABLE
    if not (min(sizes) > 0 and max(sizes) <= MAX_SLOTS and (state.source != state.target) is is_change):
        return None
    if not int(is_change) <= times.change < _MAX_CHANGE:
        return None
    return Latch(*sizes, state.phase, times.change, _time(times.since), _time(times.moving))


def _time(text: str) -> datetime | None:
    """A time in a year with which one can compute; None for another text."""
    time = time_of(text)
    return time if time is not None and FIRST_YEAR <= time.year < LAST_YEAR else None
