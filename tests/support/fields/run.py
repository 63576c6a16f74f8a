"""Sends the steps of a case to a stage, and checks the responses and the children."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from faults.sandbox import FailedError
from faults.state import difference
from memcached_operator.kube.resource import Object
from support.fields.expectations import UNAPPLICABLE, UNSEEN, denial
from support.fields.leaves import Leaf
from support.fields.places import missing
from support.fields.stage import PROBLEM, Stage, pruned, without
from support.fields.steps import Step

VICTIM, NEW = "changed", "fresh"
"""Names that occur nowhere else in an object, because they are masked."""
MAX_VALUE = 200
"""Maximum length of a value in a message, in characters."""


@dataclass(frozen=True)
class Observed:
    """The state after a step. `label`: that of the last accepted step. `spec`: as stored.

    `children`: their specs by kind; PROBLEM is the message with which the operator reports a value it cannot apply.
    """

    label: str
    spec: Object
    children: Object


async def run_steps(stage: Stage, leaf: Leaf, steps: Sequence[Step]) -> None:
    """Create an object and replace its spec step by step. Raises FailedError if a check fails.

    Each response must be the expected one. A child must change exactly if the effect of the spec does. At the end, the
    children must equal those of a new object with the last spec.
    """
    first, *others = steps
    check_response(leaf, first, await stage.create(VICTIM, first.spec))
    last = Observed(first.label, *await stage.applied(VICTIM))
    check_applied(leaf, first, last)
    for step in others:
        last = await _replace(stage, leaf, step, last)
    await _check_like_new(stage, leaf, last)


async def _replace(stage: Stage, leaf: Leaf, step: Step, before: Observed) -> Observed:
    denied = check_response(leaf, step, await stage.replace(VICTIM, step.spec))
    after = Observed(before.label if denied else step.label, *await stage.applied(VICTIM))
    if denied:
        _check(after == before, leaf, step, "it was denied, but the stored spec or a child has changed")
    else:
        check_applied(leaf, step, after)
        check_visible(leaf, step, before, after)
    return after


async def _check_like_new(stage: Stage, leaf: Leaf, updated: Observed) -> None:
    """Check that a new object with the same spec has the same children, except for node ports that are allocated."""
    await stage.delete(VICTIM)
    message = await stage.create(NEW, updated.spec)
    if message:
        raise FailedError(f"{leaf.name}: a new object with the stored spec was denied: {message}")
    _, children = await stage.applied(NEW)
    found = difference(without(updated.children, "nodePort"), without(children, "nodePort"))
    if found:
        raise FailedError(f"{leaf.name}: the children differ from those of a new object: {found}")


def check_response(leaf: Leaf, step: Step, message: str) -> bool:
    """Check that a step was accepted or denied as expected; returns whether it was denied, with this message."""
    expected = denial(leaf, step)
    if expected is None:
        _check(not message, leaf, step, f"the API server denied it: {message}")
    else:
        _check(message, leaf, step, f"the API server accepted it, want a denial with {expected!r}")
        _check(expected in message, leaf, step, f"want a denial with {expected!r}, got: {message}")
    return bool(message)


def check_applied(leaf: Leaf, step: Step, after: Observed) -> None:
    """Check that the API server stored what it accepted, and that a child has the field's value.

    If the operator cannot apply it, it must say why.
    """
    found = difference(effect(leaf, after.spec), effect(leaf, step.spec))
    _check(not found, leaf, step, f"the API server accepted it, but stored another spec: {found}")
    problem = after.children[PROBLEM]
    if step.label in UNAPPLICABLE.get(leaf.name, ()):
        _check(problem, leaf, step, "the operator reports no problem; remove the entry in UNAPPLICABLE")
    else:
        _check(not problem, leaf, step, f"the operator reports a problem: {problem}")
        absent = missing(leaf, effect(leaf, after.spec), after.children)
        _check(not absent, leaf, step, f"no child has the value of the field: {absent}")


def check_visible(leaf: Leaf, step: Step, before: Observed, after: Observed) -> None:
    """Check that a child has changed if the effect of the spec has, unless UNSEEN lists the change, and only then."""
    reason = UNSEEN.get(leaf.name, {}).get(f"{before.label} -> {after.label}")
    changed = difference(after.children, before.children)
    if effect(leaf, before.spec) == effect(leaf, after.spec):
        _check(not changed, leaf, step, f"the spec has the same effect as before, but a child changed: {changed}")
        _check(not reason, leaf, step, "UNSEEN lists a change that does not change the spec; remove the entry")
    elif reason:
        _check(not changed, leaf, step, f"UNSEEN says: {reason}; but a child changed: {changed}")
    else:
        _check(changed, leaf, step, "the spec changed, but no child did: the operator ignores the field")


def effect(leaf: Leaf, spec: Object) -> Object:
    """A spec with the defaults of the schema, without empty fields: they have the effect of absent ones."""
    return pruned(_defaulted(leaf.root, spec))


def _defaulted(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, list):
        return [_defaulted(schema["items"], item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given, properties = cast("Object", value), schema.get("properties", {})
    defaults = {name: inner["default"] for name, inner in properties.items() if "default" in inner}
    found = defaults | {name: inner for name, inner in given.items() if inner is not None}
    return {name: _defaulted(properties.get(name, {}), inner) for name, inner in found.items()}


def _check(condition: object, leaf: Leaf, step: Step, message: str) -> None:
    """Raise FailedError with field, step and value unless the condition is true."""
    if not condition:
        value = json.dumps(step.spec.get(leaf.path[0]))[:MAX_VALUE]
        raise FailedError(f"{leaf.name}, step {step.label!r}, {leaf.path[0]}: {value}: {message}")
