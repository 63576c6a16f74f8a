"""The table of states and events of a change of size, and the record of a state."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest

from memcached_api.annotations import MOVE_ANNOTATION, MOVE_TIMES_ANNOTATION
from memcached_operator.memcached.scaling.decision import Facts, advance
from memcached_operator.memcached.scaling.latch import Latch, published, recorded, stable
from memcached_operator.parts.ring import Phase

NOW: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
BEFORE: Final = NOW - timedelta(minutes=1)
QUIET: Final = Facts(4, 30.0, used=True, alone=False, ready=False, broken=None, leaving=None, now=NOW)
"""A size of 4 is wanted, keys move for 30 s, and nothing is as it should be."""


def at(phase: Phase, source: int = 3, target: int = 4, **fields: Any) -> Latch:
    """A state of a change that began a minute ago."""
    return Latch(source, target, phase, int(BEFORE.timestamp()), BEFORE, **fields)


def to(phase: Phase, source: int = 3, target: int = 4) -> Latch:
    """The state after an arrow."""
    return replace(at(phase, source, target), since=NOW)


MOVING: Final = at(Phase.MOVE, moving=BEFORE)
LAST: Final = int(BEFORE.timestamp())


class Row(NamedTuple):
    """A state, what of QUIET is otherwise, and the next state: the same one if it is missing."""

    latch: Latch
    facts: dict[str, Any]
    following: Latch | str | None = "same"


TABLE: Final[dict[str, Row]] = {
    "stable": Row(stable(4), {"alone": True, "ready": True}),
    "stable, another size": Row(stable(3), {}, Latch(3, 4, Phase.WAIT, int(NOW.timestamp()), NOW)),
    "stable, a slow clock": Row(stable(3, 9 * LAST), {}, Latch(3, 4, Phase.WAIT, 9 * LAST + 1, NOW)),
    "stable, without the field": Row(stable(4), {"duration": None}, None),
    "wait": Row(at(Phase.WAIT), {"alone": True}),
    "wait, ready": Row(at(Phase.WAIT), {"ready": True}),
    "wait, ready and alone": Row(at(Phase.WAIT), {"ready": True, "alone": True}, to(Phase.PREPARE)),
    "wait, a third size": Row(at(Phase.WAIT), {"size": 6, "ready": True, "alone": True}, at(Phase.WAIT, target=6)),
    "wait, given up": Row(at(Phase.WAIT), {"size": 3, "ready": True, "alone": True}, stable(3, LAST)),
    "wait, without the field": Row(at(Phase.WAIT), {"duration": None}, None),
    "prepare": Row(at(Phase.PREPARE), {"ready": True}),
    "prepare, alone": Row(at(Phase.PREPARE), {"alone": True}, to(Phase.MOVE)),
    "prepare, given up": Row(at(Phase.PREPARE), {"size": 3, "alone": True}, stable(3, LAST)),
    "prepare, a third size": Row(at(Phase.PREPARE), {"size": 6, "alone": True}, stable(3, LAST)),
    "prepare, without the field": Row(at(Phase.PREPARE), {"duration": None, "alone": True}, stable(3, LAST)),
    "prepare, a broken slot": Row(at(Phase.PREPARE), {"broken": 299.0}),
    "prepare, a broken slot for 5 min": Row(at(Phase.PREPARE), {"broken": 300.0, "alone": True}, stable(3, LAST)),
    "move": Row(at(Phase.MOVE), {"leaving": 600.0, "broken": 600.0, "duration": 0.0}),
    "move, alone": Row(at(Phase.MOVE), {"alone": True, "duration": 0.0}, at(Phase.MOVE, moving=NOW)),
    "move, without proxies": Row(MOVING, {"alone": True, "duration": 900.0, "used": False}, to(Phase.FINISH)),
    "move, another size": Row(MOVING, {"size": 3, "alone": True, "duration": 61.0}),
    "move, too early": Row(MOVING, {"alone": True, "duration": 61.0, "broken": 600.0}),
    "move, over": Row(MOVING, {"alone": True, "duration": 60.0}, to(Phase.FINISH)),
    "move, over, not alone": Row(MOVING, {"duration": 0.0, "leaving": 600.0}),
    "move, without the field": Row(MOVING, {"alone": True, "duration": None}, to(Phase.FINISH)),
    "move, a leaving slot is broken": Row(MOVING, {"alone": True, "duration": 900.0, "leaving": 59.0}),
    "move, a leaving slot is broken for 60 s": Row(
        MOVING, {"alone": True, "duration": 900.0, "leaving": 60.0}, to(Phase.FINISH)
    ),
    "finish": Row(at(Phase.FINISH), {"size": 3, "ready": True, "broken": 900.0, "duration": None}),
    "finish, alone": Row(at(Phase.FINISH), {"size": 3, "alone": True}, to(Phase.PLAIN)),
    "plain": Row(at(Phase.PLAIN), {"size": 3, "ready": True, "duration": None}),
    "plain, alone": Row(at(Phase.PLAIN), {"size": 3, "alone": True}, stable(4, LAST)),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_arrow(row: Row) -> None:
    expected = row.latch if row.following == "same" else row.following
    assert advance(row.latch, QUIET._replace(**row.facts)) == expected


ROLES: Final = {
    Phase.STABLE: (3, 3, "3"),
    Phase.WAIT: (3, 6, "3"),
    Phase.PREPARE: (3, 6, "3>6/Prepare/1893499140"),
    Phase.MOVE: (6, 6, "3>6/Move/1893499140"),
    Phase.FINISH: (6, 6, "3>6/Finish/1893499140"),
    Phase.PLAIN: (6, 6, "6"),
}


@pytest.mark.parametrize("phase", Phase)
def test_slots_of_a_state(phase: Phase) -> None:
    latch = stable(3) if phase is Phase.STABLE else at(phase, 3, 6)
    shrinking = stable(3) if phase is Phase.STABLE else at(phase, 6, 3)
    used, kept, usage = ROLES[phase]
    assert (latch.published, latch.kept, latch.ring("cache", "u").usage) == (used, kept, usage)
    assert shrinking.kept == kept
    assert latch.ring("cache", "u").servers == (used if latch.ring("cache", "u").move is None else 6)


@pytest.mark.parametrize(
    "latch", [stable(3), stable(3, 7), at(Phase.WAIT), MOVING, replace(at(Phase.PLAIN), since=None)]
)
def test_state_is_read_as_it_was_written(latch: Latch) -> None:
    assert recorded({"metadata": {"annotations": latch.annotations()}}) == latch


STATE, TIMES = '{"from":3,"to":4,"phase":"Move"}', '{"change":7}'
FORGED: Final = (
    ("", TIMES),
    ("[]", TIMES),
    ("{}", TIMES),
    ('{"from":3,"to":4}', TIMES),
    ('{"from":0,"to":4,"phase":"Move"}', TIMES),
    ('{"from":3,"to":1001,"phase":"Move"}', TIMES),
    ('{"from":3,"to":3,"phase":"Move"}', TIMES),
    ('{"from":3,"to":4,"phase":"Stable"}', TIMES),
    ('{"from":3,"to":4,"phase":"Later"}', TIMES),
    ('{"from":"3","to":4,"phase":"Move"}', TIMES),
    (STATE[:-1] + " " * 512 + "}", TIMES),
    ("\ud800", TIMES),
    (STATE, ""),
    (STATE, "{}"),
    (STATE, '{"change":1000000000000}'),
    (STATE, '{"change":7,"since":1}'),
)


@pytest.mark.parametrize(("text", "times"), FORGED)
def test_what_another_client_writes_is_no_state(text: str, times: str) -> None:
    assert recorded({"metadata": {"annotations": {MOVE_ANNOTATION: text, MOVE_TIMES_ANNOTATION: times}}}) is None


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59Z", "2030-01-01T00:00:00", "x"])
def test_time_with_which_nobody_can_compute_is_not_known(time: str) -> None:
    times = f'{{"change":7,"since":"{time}"}}'
    found = recorded({"metadata": {"annotations": {MOVE_ANNOTATION: STATE, MOVE_TIMES_ANNOTATION: times}}})
    assert found == Latch(3, 4, Phase.MOVE, 7)


def test_state_of_the_status() -> None:
    shown = {"from": 3, "to": 4, "phase": "Move", "change": 7, "since": "2030-01-01T12:00:00Z", "waitingFor": "x"}
    assert published(shown) == Latch(3, 4, Phase.MOVE, 7, NOW)
    assert published({**shown, "change": "7"}) is None
    assert published({}) is None


def test_without_a_statefulset_there_is_no_state() -> None:
    assert recorded(None) is None
