"""The one place where conditions and times of a status are set."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from memcached_api import conditions as c
from memcached_operator.kube.resource import entries

Condition = dict[str, Any]


def timestamp(at: datetime) -> str:
    """A time as Kubernetes writes it: UTC, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The CRD allows 32,768; beyond that no status at all would be written."""


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """A text of at most `limit` characters; one that was longer ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def carry_over(old: Iterable[Mapping[str, Any]], new: Iterable[Condition], now: datetime) -> list[Condition]:
    """The new conditions, complete: their messages bounded, and their lastTransitionTime.

    That is the old one where the condition's status did not change.
    """
    before = {condition["type"]: condition for condition in old}
    result: list[Condition] = []
    for condition in new:
        known = before.get(condition["type"])
        same = known is not None and known.get("status") == condition["status"]
        since = known.get("lastTransitionTime") if known is not None and same else None
        message = cut(condition.get("message", ""))
        result.append({**condition, "message": message, "lastTransitionTime": since or timestamp(now)})
    return result


def differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """True where a status must be written."""
    return any(old.get(name) != value for name, value in new.items()) or bool(old.keys() - new.keys())


DEBOUNCE_PERIOD = 0.5
"""Seconds that a changed condition waits for events that are on their way in other watches."""

PROGRESS_PERIOD = 10.0
"""Seconds that mere progress waits for what follows it, so that a roll-out is two patches and not ten: most are over
by then, and the end is written at once."""


ROLLOUT_PERIOD = 30.0
"""Seconds that pods which come and go in a roll-out wait while the number of ready ones stays the same: a thousand
roll-outs at once take longer than PROGRESS_PERIOD, and would each cost a patch more that tells nobody anything."""


def debounce(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Seconds that a status may wait to be written: none where it answers a new generation of the spec."""
    if old.get("observedGeneration") != new.get("observedGeneration"):
        return 0.0
    if not all(_starts_rollout(condition) for condition in transitions(old, new)):
        return DEBOUNCE_PERIOD
    return ROLLOUT_PERIOD if _rolls_out(old) and _awaited(old) == _awaited(new) else PROGRESS_PERIOD


def _starts_rollout(condition: Condition) -> bool:
    """True for a rollout that no change of the spec started, for example because a pod was deleted.

    The end of it, or that the object is not available meanwhile, is what users act on: both are written promptly, and
    written alone, the start would cost one more patch wherever the Deployment's own status arrives late.
    """
    return (condition["type"], *_state(condition)) == (c.PROGRESSING, c.TRUE, c.ROLLING_OUT)


def _rolls_out(status: Mapping[str, Any]) -> bool:
    return any((each["type"], each["status"]) == (c.PROGRESSING, c.TRUE) for each in entries(status, "conditions"))


def _awaited(status: Mapping[str, Any]) -> tuple[Any, ...]:
    """What somebody waits for during a roll-out, or has to act on."""
    messages = [each.get("message") for each in entries(status, "conditions") if each["type"] != "Progressing"]
    return status.get("readyReplicas"), status.get("availableReplicas"), *messages


def patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one status to another: what is new, and null for what is no more."""
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    return changed | dict.fromkeys(old.keys() - new.keys())


def transitions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Condition]:
    """The conditions whose status or reason changed."""
    before = {condition["type"]: _state(condition) for condition in entries(old, "conditions")}
    return [condition for condition in new["conditions"] if before.get(condition["type"]) != _state(condition)]


def news(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Condition]:
    """The conditions that turned for better or worse; what is first said of an object is news only if it is bad.

    Progress is not news while it goes on: that it is over is told by Available.
    """
    before = {condition["type"]: condition for condition in entries(old, "conditions")}
    return [
        condition
        for condition in transitions(old, new)
        if condition["type"] != c.PROGRESSING
        and (condition["type"] in before or (condition["type"], condition["status"]) == (c.DEGRADED, c.TRUE))
    ]


def _state(condition: Mapping[str, Any]) -> tuple[Any, Any]:
    return condition.get("status"), condition.get("reason")
