from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_operator.engine.reporting.conditions import (
    DEBOUNCE_PERIOD,
    PROGRESS_PERIOD,
    ROLLOUT_PERIOD,
    START_PERIOD,
    debounce_period,
    differs,
    is_reported,
    merge_patch,
    ready,
    reported_transitions,
    timestamp,
    transitions,
    with_transition_times,
)
from simulation.api.patches import merge_patch as apply_merge_patch
from unit.builders import NOW

LONG_AGO = "2029-01-01T00:00:00Z"


def condition(kind: str, status: str, reason: str = "Reason", **more: Any) -> dict[str, Any]:
    """A condition."""
    return {"type": kind, "status": status, "reason": reason, "message": "", **more}


def status_of(*conditions: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    """A status with these conditions."""
    return {"observedGeneration": generation, "conditions": list(conditions)}


UP, DOWN = condition("Available", "True"), condition("Available", "False")
CRASHING, HEALTHY = condition("Degraded", "True", "Crash"), condition("Degraded", "False", "AsExpected")
PROGRESSING, COMPLETE = condition("Progressing", "True"), condition("Progressing", "False", "RolloutComplete")
ROLLING_OUT, PAUSED = condition("Progressing", "True", "RollingOut"), condition("Progressing", "True", "Paused")
WAITING, STALLED = condition("Progressing", "True", "WaitingForDeletion"), condition("Progressing", "False", "Stalled")

READY, NOT_READY = condition("Ready", "True", "AsExpected"), condition("Ready", "False", "RollingOut")

SUMMARIES: dict[str, tuple[Any, Any, Any, tuple[str, str]]] = {
    "all well": (UP, COMPLETE, HEALTHY, ("True", "AsExpected")),
    "a problem": (UP, COMPLETE, CRASHING, ("False", "Crash")),
    "a rollout": (UP, ROLLING_OUT, HEALTHY, ("False", "RollingOut")),
    "a rollout, unavailable": (DOWN, ROLLING_OUT, HEALTHY, ("False", "RollingOut")),
    "waiting for a deletion": (UP, WAITING, HEALTHY, ("False", "WaitingForDeletion")),
    "unavailable": (DOWN, COMPLETE, HEALTHY, ("False", "Reason")),
    "stalled by a problem": (DOWN, STALLED, CRASHING, ("False", "Crash")),
    "paused": (UP, PAUSED, HEALTHY, ("True", "Paused")),
    "paused, with a problem": (UP, PAUSED, CRASHING, ("True", "Paused")),
    "paused, unavailable": (DOWN, PAUSED, CRASHING, ("False", "Paused")),
}


@pytest.mark.parametrize(("available", "progressing", "degraded", "expected"), SUMMARIES.values(), ids=SUMMARIES.keys())
def test_ready_follows_from_the_others(available: Any, progressing: Any, degraded: Any, expected: Any) -> None:
    parts = (available, progressing, degraded)
    messages = [part | {"message": f"about {part['type']}", "observedGeneration": 3} for part in parts]
    found = ready(*messages)
    assert (found["status"], found["reason"]) == expected
    assert (found["type"], found.get("observedGeneration")) == ("Ready", 3)
    assert found["message"] in [each["message"] for each in messages]


REPORTS: dict[str, tuple[Any, bool]] = {
    "no status": ({}, False),
    "the CRD's default": ({"status": {"observedGeneration": -1}}, False),
    "the first status": ({"status": {"observedGeneration": 1}}, True),
    "the status of a kind without generations": ({"status": {"observedGeneration": 0}}, True),
}


@pytest.mark.parametrize(("cr", "expected"), REPORTS.values(), ids=REPORTS.keys())
def test_a_status_of_the_crd_is_no_report(cr: Any, expected: bool) -> None:
    assert is_reported(cr) is expected


TIMES = {
    "utc": (datetime(2030, 1, 1, 12, tzinfo=UTC), "2030-01-01T12:00:00Z"),
    "fractions are dropped": (datetime(2030, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC), "2030-01-01T12:00:00Z"),
    "another zone": (datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))), "2030-01-01T10:00:00Z"),
}


@pytest.mark.parametrize(("at", "text"), TIMES.values(), ids=TIMES.keys())
def test_timestamp(at: datetime, text: str) -> None:
    assert timestamp(at) == text


CARRIED: dict[str, tuple[Any, Any, Any]] = {
    "no conditions before": ([], UP, timestamp(NOW)),
    "same status": ([UP | {"lastTransitionTime": LONG_AGO}], UP, LONG_AGO),
    "another reason and message": (
        [UP | {"lastTransitionTime": LONG_AGO}],
        UP | {"reason": "Other", "message": "other"},
        LONG_AGO,
    ),
    "another status": ([DOWN | {"lastTransitionTime": LONG_AGO}], UP, timestamp(NOW)),
    "another type": ([HEALTHY | {"lastTransitionTime": LONG_AGO}], DOWN, timestamp(NOW)),
    "no transition time before": ([UP], UP, timestamp(NOW)),
}


@pytest.mark.parametrize(("old", "new", "since"), CARRIED.values(), ids=CARRIED.keys())
def test_transition_time_changes_only_with_the_status(old: list[Any], new: Any, since: str) -> None:
    assert with_transition_times(old, [new], NOW) == [new | {"lastTransitionTime": since}]


DIFFERENT: dict[str, tuple[Any, Any, Any]] = {
    "no status yet": ({}, {"replicas": 0}, True),
    "the same": ({"replicas": 1}, {"replicas": 1}, False),
    "another value": ({"replicas": 1}, {"replicas": 2}, True),
    "obsolete field": ({"replicas": 1, "old": 1}, {"replicas": 1}, True),
}


@pytest.mark.parametrize(("old", "new", "expected"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_status_differs(old: Any, new: Any, expected: bool) -> None:
    assert differs(old, new) is expected


FIELDS = st.sampled_from("abcd")
STATUSES = st.dictionaries(FIELDS, st.integers(0, 2) | st.dictionaries(FIELDS, st.integers(0, 2)))


@given(STATUSES, STATUSES)
def test_patch_turns_the_old_status_into_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply_merge_patch(old, merge_patch(old, new)) == new
    assert bool(merge_patch(old, new)) == differs(old, new)


DEBOUNCE: dict[str, tuple[Any, Any, Any]] = {
    "the first status": ({}, status_of(UP), 0.0),
    "a new generation": (status_of(UP), status_of(UP, generation=2), 0.0),
    "a condition changes": (status_of(UP), status_of(DOWN), DEBOUNCE_PERIOD),
    "another reason": (status_of(UP), status_of(UP | {"reason": "Other"}), DEBOUNCE_PERIOD),
    "a rollout starts by itself": (status_of(UP, COMPLETE), status_of(UP, ROLLING_OUT), START_PERIOD),
    "a rollout starts by itself, unavailable": (
        status_of(UP, COMPLETE),
        status_of(DOWN, ROLLING_OUT),
        DEBOUNCE_PERIOD,
    ),
    "a rollout starts after a deletion": (status_of(UP, WAITING), status_of(UP, ROLLING_OUT), DEBOUNCE_PERIOD),
    "a rollout is no longer stalled": (status_of(UP, STALLED), status_of(UP, ROLLING_OUT), DEBOUNCE_PERIOD),
    "a rollout is complete": (status_of(UP, ROLLING_OUT), status_of(UP, COMPLETE), DEBOUNCE_PERIOD),
    "a rollout starts by itself, and Ready changes": (
        status_of(UP, COMPLETE, READY),
        status_of(UP, ROLLING_OUT, NOT_READY),
        START_PERIOD,
    ),
    "another updated pod, also in the message of Ready": (
        status_of(UP, PROGRESSING, NOT_READY),
        status_of(UP, PROGRESSING | {"message": "1 of 3"}, NOT_READY | {"message": "1 of 3"}),
        ROLLOUT_PERIOD,
    ),
    "the status of an earlier release, without Ready": (
        status_of(UP, COMPLETE),
        status_of(UP, COMPLETE, READY),
        PROGRESS_PERIOD,
    ),
    "progress is blocked": (status_of(UP, ROLLING_OUT), status_of(UP, PROGRESSING), DEBOUNCE_PERIOD),
    "another message": (status_of(UP), status_of(UP | {"message": "2 of 3"}), PROGRESS_PERIOD),
    "another count": (status_of(UP), status_of(UP) | {"replicas": 2}, PROGRESS_PERIOD),
    "another pod during a rollout": (
        status_of(UP, PROGRESSING),
        status_of(UP, PROGRESSING) | {"replicas": 2},
        ROLLOUT_PERIOD,
    ),
    "another updated pod": (
        status_of(UP, PROGRESSING),
        status_of(UP, PROGRESSING | {"message": "1 of 3"}),
        ROLLOUT_PERIOD,
    ),
    "another updated pod while the rollout is paused": (
        status_of(UP, PAUSED),
        status_of(UP, PAUSED | {"message": "0 of 3"}),
        PROGRESS_PERIOD,
    ),
    "another ready pod": (
        status_of(UP, PROGRESSING),
        status_of(UP, PROGRESSING) | {"readyReplicas": 2},
        PROGRESS_PERIOD,
    ),
    "another available pod": (
        status_of(UP, PROGRESSING),
        status_of(UP, PROGRESSING) | {"availableReplicas": 2},
        PROGRESS_PERIOD,
    ),
    "a scheduling hint": (
        status_of(DOWN, PROGRESSING),
        status_of(DOWN | {"message": "no node fits"}, PROGRESSING),
        PROGRESS_PERIOD,
    ),
}


@pytest.mark.parametrize(("old", "new", "seconds"), DEBOUNCE.values(), ids=DEBOUNCE.keys())
def test_debounce(old: Any, new: Any, seconds: float) -> None:
    assert debounce_period(old, new) == seconds


REPORTED: dict[str, tuple[Any, Any, Any]] = {
    "healthy from the start": ({}, status_of(UP, COMPLETE, HEALTHY), [UP]),
    "not yet available at the start": ({}, status_of(DOWN, PROGRESSING, HEALTHY), []),
    "degraded from the start": ({}, status_of(DOWN, COMPLETE, CRASHING), [CRASHING]),
    "nothing changes": (status_of(UP, COMPLETE, HEALTHY), status_of(UP, COMPLETE, HEALTHY), []),
    "progress begins": (status_of(UP, COMPLETE, HEALTHY), status_of(UP, PROGRESSING, HEALTHY), []),
    "a rollout is complete": (status_of(UP, PROGRESSING, HEALTHY), status_of(UP, COMPLETE, HEALTHY), [COMPLETE]),
    "a rollout is paused": (status_of(UP, PROGRESSING, HEALTHY), status_of(UP, PAUSED, HEALTHY), []),
    "becomes degraded": (status_of(UP, COMPLETE, HEALTHY), status_of(DOWN, COMPLETE, CRASHING), [DOWN, CRASHING]),
    "recovers": (status_of(DOWN, PROGRESSING, CRASHING), status_of(UP, COMPLETE, HEALTHY), [UP, HEALTHY]),
    "degraded for another reason": (
        status_of(CRASHING),
        status_of(CRASHING | {"reason": "Conflict"}),
        [CRASHING | {"reason": "Conflict"}],
    ),
    "another message": (status_of(CRASHING), status_of(CRASHING | {"message": "other"}), []),
    "Ready, which only follows": (status_of(UP, READY), status_of(DOWN, NOT_READY), [DOWN]),
}


@pytest.mark.parametrize(("old", "new", "expected"), REPORTED.values(), ids=REPORTED.keys())
def test_reported_transitions(old: Any, new: Any, expected: list[Any]) -> None:
    assert reported_transitions(old, new, rollout=True) == expected


def test_pod_that_is_ready_again_is_not_the_end_of_a_rollout() -> None:
    old, new = status_of(UP, ROLLING_OUT, HEALTHY), status_of(UP, COMPLETE, HEALTHY)
    assert reported_transitions(old, new, rollout=False) == []


def test_transitions_are_conditions_with_a_changed_status_or_reason() -> None:
    assert transitions(status_of(UP, PROGRESSING, HEALTHY), status_of(UP, COMPLETE, CRASHING)) == [COMPLETE, CRASHING]


@pytest.mark.parametrize("length", [0, 4095, 4096, 4097, 1_000_000])
def test_message_is_never_longer_than_the_limit(length: int) -> None:
    long: Any = condition("Degraded", "True", message="x" * length)
    (result,) = with_transition_times([], [long], NOW)
    assert len(result["message"]) == min(length, 4096)
    assert result["message"].endswith("…") == (length > 4096)
