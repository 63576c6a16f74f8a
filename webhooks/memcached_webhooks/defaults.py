"""Defaults of several kinds. A path is that of a field below the spec, such as `rollout/paused`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.validation.field_errors import truncate
from memcached_webhooks.patches import field_at
from memcached_webhooks.stored import Spec, Stored
from memcached_webhooks.warnings import MAX_IMAGE_LENGTH

SPREAD_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
"""The node labels over whose values the pods of a new object are distributed."""

IMAGE: Final = "image"
AGENT_IMAGE: Final = "agent/image"
SPREAD: Final = "podTemplate/spec/topologySpreadConstraints"
BUDGET: Final = "podDisruptionBudget"
RESTARTED_AT: Final = "rollout/restartedAt"

OTHER_VALUE: Final = "to use another value, set the field"
REMEDIES: Final = {
    SPREAD: "to have none, set it to []",
    BUDGET: "to have none, set enabled: false",
    IMAGE: OTHER_VALUE,
    AGENT_IMAGE: OTHER_VALUE,
}
"""By path, the remedy for a field whose default is set because an update removed it."""


def missing(spec: Spec, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the fields that a spec does not have. A null counts as missing."""
    return {path: value for path, value in fields.items() if field_at(spec, path) is None}


def placing_defaults(*, in_place: bool) -> dict[str, Any]:
    """The constraints and the budget of a new object.

    `in_place`: its pods are updated in place, so all of them count for the distribution, not only those of one rollout.
    """
    match_label_keys = {} if in_place else {"matchLabelKeys": ["pod-template-hash"]}
    return {
        SPREAD: [_spread(key) | match_label_keys for key in SPREAD_KEYS],
        BUDGET: {"enabled": True, "maxUnavailable": 1},
    }


def _spread(key: str) -> dict[str, Any]:
    """Pods are distributed evenly over the values of a node label, if possible."""
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}


def update_defaults(
    new: Mapping[str, Any], old: Stored, images: Iterable[str] = (IMAGE, AGENT_IMAGE)
) -> dict[str, Any]:
    """The defaults of removed fields, and values that are kept. `new`: the missing defaults of a new object.

    Kept are the time of a restart, and those of `images` that admission has set, which can be the defaults of an
    earlier release: an unchanged manifest must not replace pods.
    """
    removed = {path: value for path, value in new.items() if field_at(old.spec, path) is not None}
    pins = [path for path in images if path in removed and not old.has_manager(path)]
    kept = {path: field_at(old.spec, path) for path in (*pins, RESTARTED_AT)}
    return removed | {path: value for path, value in kept.items() if isinstance(value, str)}


def agent_default(new: Mapping[str, Any], *, had_agent: bool) -> dict[str, Any]:
    """The image of the agent, if an update needs an agent first. `new`: the missing defaults of a new object."""
    return {AGENT_IMAGE: new[AGENT_IMAGE]} if AGENT_IMAGE in new and not had_agent else {}


def removals(fields: Mapping[str, Any], old: Spec, remedies: Mapping[str, str] = REMEDIES) -> list[str]:
    """Warnings about removed fields, if their defaults in `fields` differ from the values of the old spec."""
    changed = [path for path in remedies if path in fields and field_at(old, path) not in (None, fields[path])]
    return [
        f"spec.{path.replace('/', '.')} was removed, so its default is set{_value_text(fields[path])}; {remedies[path]}"
        for path in changed
    ]


def _value_text(value: Any) -> str:
    """A default in a warning, if it is short."""
    return f", {truncate(str(value), MAX_IMAGE_LENGTH)}" if isinstance(value, str | int) else ""
