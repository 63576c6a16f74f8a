"""The table of states and events of a change of size. A pure function.

    Stable → Wait → Prepare → Move → Finish → Plain → Stable

Every arrow after Wait needs all proxies to be *alone* in the state that it leaves: no pod of an earlier one exists, and
none can be created. So at most two neighbouring phases run at the same time, for which the routes are consistent. Time
alone never advances Wait, Prepare, Finish or Plain. Only Wait and Prepare can be given up: from Move on, items exist
only at their new places.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from memcached_operator.memcached.scaling.latch import Latch, stable
from memcached_operator.parts.ring import Phase

ABORT_SECONDS: Final = 300.0
"""Seconds for which a slot is not ready until Prepare is given up: until then, writes of moving keys fail."""

LEAVING_SECONDS: Final = 60.0
"""Seconds for which a leaving slot is not ready until Move ends early: its items are lost anyway, and writes fail."""


class Facts(NamedTuple):
    """What the table needs.

    `size`: of the spec. `duration`: of Move, in seconds; None without `spec.scaling.warm`. `used`: by proxies, or it is
    not known. `alone`: all proxies use exactly the ring of the state, and know it. `ready`: all slots that are kept are
    ready, and no pod is to be updated. `broken`, `leaving`: the seconds for which a slot, or one that is to be removed,
    has not been ready in this state; None if all are.
    """

    size: int
    duration: float | None
    used: bool
    alone: bool
    ready: bool
    broken: float | None
    leaving: float | None
    now: datetime


def advance(latch: Latch, facts: Facts) -> Latch | None:
    """The next state, or the same one. None if the size simply changes: between changes, without the field."""
    return _TABLE[latch.phase](latch, facts)


def _stable(latch: Latch, facts: Facts) -> Latch | None:
    if facts.duration is None:
        return None
    if facts.size == latch.source:
        return latch
    change = max(latch.change + 1, int(facts.now.timestamp()))
    return Latch(latch.source, facts.size, Phase.WAIT, change, facts.now)


def _wait(latch: Latch, facts: Facts) -> Latch | None:
    if facts.duration is None:
        return None
    if facts.size == latch.source:
        return stable(latch.source, latch.change)
    if facts.size != latch.target:
        return replace(latch, target=facts.size)
    return _to(Phase.PREPARE, latch, facts) if facts.ready and facts.alone else latch


def _prepare(latch: Latch, facts: Facts) -> Latch:
    # Always safe: nothing is only at the new place.
    if facts.duration is None or facts.size != latch.target or (facts.broken or 0) >= ABORT_SECONDS:
        return stable(latch.source, latch.change)
    return _to(Phase.MOVE, latch, facts) if facts.alone else latch


def _move(latch: Latch, facts: Facts) -> Latch:
    if not facts.alone:
        return latch
    if latch.moving is None:
        return replace(latch, moving=facts.now)
    elapsed = (facts.now - latch.moving).total_seconds()
    is_over = elapsed >= (facts.duration or 0) or (facts.leaving or 0) >= LEAVING_SECONDS or not facts.used
    return _to(Phase.FINISH, latch, facts) if is_over else latch


def _finish(latch: Latch, facts: Facts) -> Latch:
    return _to(Phase.PLAIN, latch, facts) if facts.alone else latch


def _plain(latch: Latch, facts: Facts) -> Latch:
    return stable(latch.target, latch.change) if facts.alone else latch


def _to(phase: Phase, latch: Latch, facts: Facts) -> Latch:
    return replace(latch, phase=phase, since=facts.now, moving=None)


_TABLE: Final[Mapping[Phase, Callable[[Latch, Facts], Latch | None]]] = {
    Phase.STABLE: _stable,
    Phase.WAIT: _wait,
    Phase.PREPARE: _prepare,
    Phase.MOVE: _move,
    Phase.FINISH: _finish,
    Phase.PLAIN: _plain,
}
