"""The conditions of a Memcached and the remedies for their reasons."""

from dataclasses import dataclass
from typing import Any, Final

from kubectl_memcached.model.objects import Object, integer, mapping, objects, text
from kubectl_memcached.model.remedies import REMEDIES
from kubectl_memcached.model.shell import Shell

HEALTHY: Final = {"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True", "Stalled": "False"}
"""The status of each condition of a healthy object."""


@dataclass(frozen=True)
class Condition:
    """A condition. `since`: its lastTransitionTime, or empty."""

    type: str
    status: str
    reason: str
    message: str
    since: str

    @property
    def healthy(self) -> bool:
        """Whether it has the status of a healthy object. A type of a newer operator counts as healthy."""
        return HEALTHY.get(self.type, self.status) == self.status

    @property
    def remedy(self) -> str:
        """The action for its reason. Empty if there is nothing to do."""
        return "" if self.healthy else REMEDIES.get((self.type, self.reason), "")


def conditions(cr: Object) -> list[Condition]:
    """The conditions of a Memcached, in the order of the API server."""
    return [_condition(obj) for obj in objects(cr, "status", "conditions")]


def condition(cr: Object, kind: str) -> Condition:
    """The condition of a type; one without any value if there is none."""
    return next((each for each in conditions(cr) if each.type == kind), Condition(kind, "", "", "", ""))


def _condition(obj: Object) -> Condition:
    return Condition(*(text(obj, name) for name in ("type", "status", "reason", "message", "lastTransitionTime")))


def is_ready(cr: Object) -> bool:
    """Whether a Memcached is ready: by its condition Ready, which older operators did not have, or by the others.

    A paused rollout counts as ready if enough pods are.
    """
    states = {condition.type: condition.status for condition in conditions(cr)}
    if "Ready" in states:
        return states["Ready"] == "True"
    return bool(states) and all(HEALTHY.get(kind, status) == status for kind, status in states.items())


def unobserved(cr: Object) -> str:
    """The reason that the status is not current, as a sentence. Empty if it is."""
    if not objects(cr, "status", "conditions"):
        return "The object has no status: no operator reconciles it. Check that one runs and watches its namespace."
    observed, generation = integer(cr, "status", "observedGeneration"), integer(cr, "metadata", "generation")
    if observed is not None and generation is not None and observed < generation:
        return "The status describes an earlier spec. The operator has not observed the latest change yet."
    return ""


def document(condition: Condition, remedy: str) -> dict[str, Any]:
    """A condition as JSON, with the action for it."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.since,
        "remedy": remedy,
    }


def remedies(cr: Object, shell: Shell, *, waiting_is_useless: bool) -> dict[str, str]:
    """The actions by type of condition. `waiting_is_useless`: the pods need attention, and Advice has the reason."""
    listed = conditions(cr)
    degraded = any(each.type == "Degraded" and not each.healthy for each in listed)
    found = {each.type: _remedy(each, degraded, waiting_is_useless) for each in listed if each.remedy}
    # Without a pause in the spec, the Deployment still has one: the spec is invalid.
    is_paused, resume = rollout(cr).get("paused") is True, shell.plugin("resume", text(cr, "metadata", "name"))
    paused = [each.type for each in listed if each.reason == "Paused" and each.remedy]
    return found | dict.fromkeys(paused, f"Run {resume}." if is_paused else "See the Degraded condition.")


def _remedy(condition: Condition, degraded: bool, waiting_is_useless: bool) -> str:
    advice = "See Advice." if waiting_is_useless else ""
    if condition.reason == "RollingOut":
        return "See the Degraded condition." if degraded else advice or condition.remedy
    if condition.reason == "MinimumReplicasUnavailable" and not degraded:
        return advice or "See the message."
    return advice or condition.remedy if condition.reason == "ProgressDeadlineExceeded" else condition.remedy


def rollout(cr: Object) -> Object:
    """`spec.rollout`, or an empty mapping."""
    return mapping(cr, "spec", "rollout")
