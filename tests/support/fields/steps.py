"""The steps of each action on a field."""

from dataclasses import dataclass
from typing import Any

from memcached_operator.kube.resource import Object
from support.fields.leaves import Leaf, values

BOUNDS_SKIPPED = {
    "size": "no cluster has room for 2147483647 pods",
    "nodePort": "another Service may use it",
    "minReadySeconds": "a rollout would take a day",
}
PERCENTAGES = {
    "memcacheds/podDisruptionBudget.maxUnavailable": {"minimum": 1, "maximum": "100%"},
    "memcacheds/rollout.maxUnavailable": {"minimum": 0, "maximum": "100%"},
    "memcacheds/rollout.maxSurge": {"minimum": 0, "maximum": "999%"},
}
"""The bounds of fields of integers or percentages, which no schema contains."""

AMOUNTS = {"cpu": (100, "m"), "memory": (128, "Mi")}
INVALID: dict[str, Any] = {"object": {"no": "such field"}, "-1x": "-1x", "-1": -1, "Not Valid!": "Not Valid!"}
"""Values that a field denies unless `expectations.VALID` lists them for it, by label."""
FURTHER: dict[str, dict[str, Any]] = {
    "memcacheds/podTemplate.spec.securityContext.runAsNonRoot": {"false": False},
    "memcacheds/podDisruptionBudget.maxUnavailable": {"zero": 0, "zero percent": "0%", "above": "101%"},
    "memcacheds/rollout.maxUnavailable": {"above": "101%"},
    "memcacheds/rollout.maxSurge": {"above": "1000%"},
    "memcacheds/rollout.restartedAt": {"date": "2026-11-22"},
}
"""Further ones, by field."""

BEYOND = (("below", "minimum", -1), ("above", "maximum", 1))
"""The same of a number: the label, the bound of the schema, and what is added to it."""


@dataclass(frozen=True)
class Step:
    """A spec that is sent. `label`: identifies it in the tables of expectations. `invalid`: it must be denied."""

    label: str
    spec: Object
    invalid: bool = False


def actions(leaf: Leaf) -> dict[str, list[Step]]:
    """The steps of each action on a field, in order. The first one creates the object."""
    base, absent = Step("base", leaf.base), Step("absent", leaf.absent())
    one, two = (
        Step(label, leaf.with_value(value)) for label, value in zip(("one", "two"), values_of(leaf), strict=True)
    )
    items = [Step("two items", leaf.with_items())] if "[]" in leaf.path else []
    found = {
        "set": [base, absent, one, *items],
        "change": [one, two],
        "revert": [one, two, one],
        "delete": [one, absent, base],
        "empty": [one, Step("empty", leaf.emptied())],
        "bounds": [one, *_bounds(leaf)],
        "doubled-halved": _amounts(leaf),
        "invalid": [one, *_invalid(leaf), one],
    }
    distinct = {action: _without_repetitions(steps) for action, steps in found.items()}
    # A single step changes nothing: the field has no such value, or no second one.
    return {action: steps for action, steps in distinct.items() if len(steps) > 1}


def values_of(leaf: Leaf) -> tuple[Any, Any]:
    """Two valid values of a field."""
    return values(leaf.path, leaf.schema)


def _bounds(leaf: Leaf) -> list[Step]:
    if leaf.path[-1] in BOUNDS_SKIPPED:
        return []
    named = {value: value for value in leaf.schema.get("enum", ())}
    named |= {end: leaf.schema[end] for end in ("minimum", "maximum") if end in leaf.schema}
    named |= PERCENTAGES.get(leaf.name, {})
    return [Step(label, leaf.with_value(value)) for label, value in named.items()]


def _amounts(leaf: Leaf) -> list[Step]:
    if leaf.path[-1] not in AMOUNTS:
        return []
    amount, unit = AMOUNTS[leaf.path[-1]]
    texts = [f"{number}{unit}" for number in (amount, 2 * amount, amount)]
    return [Step(text, leaf.with_value(text)) for text in texts]


def _invalid(leaf: Leaf) -> list[Step]:
    beyond = {label: leaf.schema[end] + by for label, end, by in BEYOND if end in leaf.schema}
    invalid = {**INVALID, **beyond, **FURTHER.get(leaf.name, {})}
    if leaf.schema.get("type") == "object":
        del invalid["object"]
    return [Step(label, leaf.with_value(value), invalid=True) for label, value in invalid.items()]


def _without_repetitions(steps: list[Step]) -> list[Step]:
    """The steps without those whose spec is that of the step before."""
    return [step for number, step in enumerate(steps) if not number or step.spec != steps[number - 1].spec]
