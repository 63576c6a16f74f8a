"""Sets the conditions and timestamps of a status, and decides when it is written. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict, cast

from memcached_api import conditions as c
from memcached_api.values import nested_field
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Object, nested_map


class Condition(TypedDict):
    """One condition of a status (`memcached_api.conditions.Condition`), as JSON."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: NotRequired[str]
    observedGeneration: NotRequired[int]


def conditions_of(status: Mapping[str, Any]) -> Sequence[Condition]:
    """The conditions of a status, or none."""
    return status.get("conditions") or ()


def is_reported(cr: Object) -> bool:
    """Whether a status has been written for the object, so that it may have children. The CRD sets a status, too."""
    return nested_map(cr, "status").get("observedGeneration", c.UNOBSERVED_GENERATION) != c.UNOBSERVED_GENERATION


def ready(available: Condition, progressing: Condition, degraded: Condition) -> Condition:
    """Ready, as it follows from the other conditions, with reason and message of the one that prevents it."""
    if progressing["reason"] == c.PAUSED:
        cause = progressing if available["status"] == c.TRUE else available
        return {**cause, "type": c.READY, "status": available["status"], "reason": c.PAUSED}
    problems = [
        degraded if degraded["status"] == c.TRUE else None,
        progressing if progressing["reason"] != c.ROLLOUT_COMPLETE else None,
        available if available["status"] != c.TRUE else None,
    ]
    for cause in filter(None, problems):
        return {**cause, "type": c.READY, "status": c.FALSE}
    return {**progressing, "type": c.READY, "status": c.TRUE, "reason": c.AS_EXPECTED}


def timestamp(at: datetime) -> str:
    """A time in the format of Kubernetes: UTC, in whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MAX_MESSAGE_LENGTH = 4096
"""Maximum characters of a condition's message. The CRD allows 32,768; a longer one makes the status invalid."""


def truncate(text: str, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """The text, truncated to `limit` characters with an ellipsis at the end."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def with_transition_times(old: Iterable[Condition], new: Iterable[Condition], now: datetime) -> list[Condition]:
    """The new conditions with truncated messages and with lastTransitionTime.

    The old lastTransitionTime is kept if the condition's status has not changed.
    """
    before = {condition["type"]: condition for condition in old}
    result: list[Condition] = []
    for condition in new:
        old_condition = before.get(condition["type"])
        same = old_condition is not None and old_condition.get("status") == condition["status"]
        since = old_condition.get("lastTransitionTime") if old_condition is not None and same else None
        message = truncate(texts.line(condition.get("message", "")))
        result.append({**condition, "message": message, "lastTransitionTime": since or timestamp(now)})
    return result


def differs(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """True if the status must be written."""
    return any(old.get(name) != value for name, value in new.items()) or bool(old.keys() - new.keys())


_COMPLETE = (c.FALSE, c.ROLLOUT_COMPLETE)
"""Status and reason of Progressing when no rollout is in progress."""

DEBOUNCE_PERIOD = 0.5
"""Seconds to debounce a changed condition, until pending events of other watches have arrived."""

PROGRESS_PERIOD = 10.0
"""Seconds to debounce a status in which at most the start of a rollout is new, so that a rollout takes two patches
instead of ten: most rollouts complete within this time, and their completion is written after
DEBOUNCE_PERIOD."""


START_PERIOD = 2.0
"""Seconds to debounce the start of a rollout without a change of the spec, for example because a pod was deleted. On a
busy cluster, the Deployment's status arrives more than DEBOUNCE_PERIOD after its pods' events; a start that is written
by itself would need one more patch."""

ROLLOUT_PERIOD = 30.0
"""Seconds to debounce a status during a rollout while the number of ready pods does not change. A thousand simultaneous
rollouts take longer than PROGRESS_PERIOD, and would each need one more patch without useful content."""

WAITED_FOR = (("caches",), *(("scaling", name) for name in ("phase", "change", "until")))
"""Fields for whose change another object waits. They count as a condition: pods that are being deleted disappear after
the end of a rollout, without a change of a condition."""


def debounce_period(old: Mapping[str, object], new: Mapping[str, object]) -> float:
    """Seconds for which the write of a status may be delayed; 0 if it is the first for a new generation of the spec."""
    if old.get("observedGeneration") != new.get("observedGeneration"):
        return 0.0
    if any(nested_field(old, *path) != nested_field(new, *path) for path in WAITED_FOR):
        return DEBOUNCE_PERIOD
    if changed := transitions(old, new):
        return START_PERIOD if _only_starts_rollout(old, changed) else DEBOUNCE_PERIOD
    status, reason = _progress(old)
    in_rollout = status == c.TRUE and reason != c.PAUSED
    return ROLLOUT_PERIOD if in_rollout and _user_visible(old) == _user_visible(new) else PROGRESS_PERIOD


def _only_starts_rollout(old: Mapping[str, object], changed: Sequence[Condition]) -> bool:
    """True if the only change is that Progressing turns from RolloutComplete to RollingOut."""
    after = [(condition["type"], *_state(condition)) for condition in changed]
    return is_rolled_out(old) and after == [(c.PROGRESSING, c.TRUE, c.ROLLING_OUT)]


def _progress(status: Mapping[str, object]) -> tuple[str | None, str | None]:
    """Status and reason of Progressing, or (None, None)."""
    states = (_state(condition) for condition in conditions_of(status) if condition["type"] == c.PROGRESSING)
    return next(states, (None, None))


def _user_visible(status: Mapping[str, object]) -> tuple[object, ...]:
    """The part of a status that matters to users during a rollout."""
    messages = [
        condition.get("message")
        for condition in conditions_of(status)
        if condition["type"] in (c.AVAILABLE, c.DEGRADED)
    ]
    return status.get("readyReplicas"), status.get("availableReplicas"), *messages


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one status to another: changed fields, and null for removed ones, in objects of it too."""
    changed = {name: _change(old.get(name), value) for name, value in new.items() if old.get(name) != value}
    return changed | dict.fromkeys(old.keys() - new.keys())


def _change(old: object, new: object) -> object:
    """The merge patch from one value of a field to another."""
    if isinstance(old, dict) and isinstance(new, dict):
        return merge_patch(cast("Object", old), cast("Object", new))
    return new


def transitions(old: Mapping[str, object], new: Mapping[str, object]) -> list[Condition]:
    """The observed conditions whose status or reason changed. The others only follow from them."""
    before = {condition["type"]: _state(condition) for condition in conditions_of(old)}
    return [
        condition
        for condition in conditions_of(new)
        if condition["type"] in c.OBSERVED_TYPES and before.get(condition["type"]) != _state(condition)
    ]


def reported_transitions(old: Mapping[str, object], new: Mapping[str, object], *, rollout: bool) -> list[Condition]:
    """The transitions that emit an Event. A first status emits one only for Degraded=True or Available=True.

    `rollout`: a new pod template was applied since Progressing was last RolloutComplete. The end of such a rollout
    emits an Event, unless another condition does. Progressing emits no other: it also follows the readiness of pods.
    """
    before = {condition["type"]: condition for condition in conditions_of(old)}
    reported = [
        condition
        for condition in transitions(old, new)
        if condition["type"] in before or (condition["type"], condition["status"]) in _FIRST
    ]
    others = [condition for condition in reported if condition["type"] != c.PROGRESSING]
    return others or [condition for condition in reported if rollout and _state(condition) == _COMPLETE]


_FIRST = ((c.DEGRADED, c.TRUE), (c.AVAILABLE, c.TRUE))
"""The conditions of a first status that an Event reports: what is wrong, or that everything was there already."""


def is_rolled_out(status: Mapping[str, object]) -> bool:
    """Whether Progressing is RolloutComplete."""
    return _progress(status) == _COMPLETE


def _state(condition: Condition) -> tuple[str | None, str | None]:
    # Another schema may have admitted a stored one without them.
    return condition.get("status"), condition.get("reason")
