"""The tests of fields can fail: they run here against stages with a defect, and each must detect the defect."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from faults.sandbox import FailedError
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support.fields.expectations import DENIED, ONE_VALUE, UNAPPLICABLE, UNSEEN, VALID
from support.fields.leaves import ABSENT, RESOURCES, Leaf, all_leaves, last_name, leaves
from support.fields.places import parts
from support.fields.plan import PlanStage
from support.fields.run import effect, run_steps
from support.fields.steps import INVALID, Step, actions, values_of
from support.fields.wholes import WHOLES

MESSAGE = "refused by this test"
LEAVES = list(all_leaves())
ALL = [(leaf, action, steps) for leaf in LEAVES for action, steps in actions(leaf).items()]
WITHOUT_EFFECT = [leaf.name for leaf in LEAVES if not {*ONE_VALUE}.isdisjoint(UNSEEN.get(leaf.name, {}).values())]
EFFECTIVE = [case for case in ALL if case[0].name not in WITHOUT_EFFECT]
ACTIONS = {"set", "change", "revert", "delete", "empty", "bounds", "doubled-halved", "invalid"}
THREADS = {"type": "integer", "minimum": 1}
BY_ABSENCE = {
    "memcacheds/monitoring.tls.enabled",
    "memcacheds/monitoring.insight.enabled",
    "memcacheds/tls.plaintext",
    "memcacheds/cache.evictions",
    "memcacheds/cache.verbosity",
    "memcacheds/cache.warmRestart",
    "memcacheds/monitoring.enabled",
    "memcacheds/monitoring.podMonitor.enabled",
    "memcacheds/monitoring.rules.enabled",
    "memcacheds/podDisruptionBudget.enabled",
    "memcacheds/rollout.paused",
    "memcacheds/service.perPod",
}
"""Fields of which one value is shown by the absence of an option or a child: only the change of a child shows it."""
Selected = list[tuple[Leaf, str, list[Step]]]


class RefusingUpdates(PlanStage):
    """Accepts new objects, and denies every change."""

    async def replace(self, name: str, spec: Object) -> str:
        """Deny it."""
        return MESSAGE


class Forgetful(PlanStage):
    """Answers that it accepts a change, and does not store it."""

    async def replace(self, name: str, spec: Object) -> str:
        """Do nothing."""
        return ""


def errors_of(selected: Selected, stage_of: Callable[[Leaf], PlanStage]) -> dict[str, str]:
    """The error of each case by name; empty if it passes."""

    async def error_of(leaf: Leaf, steps: list[Step]) -> str:
        try:
            await run_steps(stage_of(leaf), leaf, steps)
        except FailedError as error:
            return str(error)
        return ""

    async def run() -> dict[str, str]:
        return {f"{leaf.name}/{action}": await error_of(leaf, steps) for leaf, action, steps in selected}

    return asyncio.run(run())


def ignoring(leaf: Leaf) -> PlanStage:
    """A plan that does not see a field."""
    return PlanStage(leaf.resource, lambda spec: seen(spec, leaf.path, ABSENT))


def of_actions(*names: str) -> Selected:
    """The cases of these actions."""
    return [case for case in EFFECTIVE if case[1] in names]


def wrong(errors: Mapping[str, str], message: str) -> dict[str, str]:
    """The cases without this message."""
    return {name: error for name, error in errors.items() if message not in error}


def test_every_case_fails_if_every_change_is_denied() -> None:
    errors = errors_of(ALL, lambda leaf: RefusingUpdates(leaf.resource))
    assert wrong(errors, MESSAGE) == {}
    assert errors["memcacheds/size/set"] == f"memcacheds/size, step 'one', size: 2: the API server denied it: {MESSAGE}"
    assert {action for _, action, _ in ALL} == ACTIONS
    assert {leaf.resource for leaf in LEAVES} == set(RESOURCES)


def test_every_case_fails_if_changes_are_not_stored() -> None:
    errors = errors_of(ALL, lambda leaf: Forgetful(leaf.resource))
    assert [name for name, error in errors.items() if not error] == []


def test_invalid_values_and_listed_denials_fail_if_every_spec_is_accepted() -> None:
    denied = [
        case for case in ALL if case[1] == "invalid" or any(s.label in DENIED.get(case[0].name, {}) for s in case[2])
    ]
    errors = errors_of(denied, lambda leaf: PlanStage(leaf.resource))
    assert [name for name, error in errors.items() if not error] == []
    assert wrong(errors_of(of_actions("invalid"), lambda leaf: PlanStage(leaf.resource)), "accepted it") == {}


def test_plan_that_uses_a_constant_for_a_field_fails() -> None:
    def stage(leaf: Leaf) -> PlanStage:
        return PlanStage(leaf.resource, lambda spec: seen(spec, leaf.path, values_of(leaf)[0]))

    errors = wrong(errors_of(of_actions("change", "revert"), stage), "no child has the value of the field")
    assert {name.rpartition("/")[0] for name in errors} <= BY_ABSENCE
    assert wrong(errors, "the operator ignores the field") == {}


def test_plan_that_ignores_a_field_fails() -> None:
    errors = errors_of(EFFECTIVE, ignoring)
    assert [name for name, error in errors.items() if not error] == []
    required = [name for name, error in errors.items() if "no child has the value of the field" not in error]
    fields = {name.rpartition("/")[0] for name in required}
    assert {name for name in fields if "absent" not in DENIED.get(name, {})} <= BY_ABSENCE


def test_plan_that_keeps_a_removed_field_fails() -> None:
    def stage(leaf: Leaf) -> PlanStage:
        return PlanStage(leaf.resource, lambda _: leaf.with_value(values_of(leaf)[0]))

    optional = [
        (leaf, action, steps)
        for leaf, action, steps in of_actions("delete", "empty")
        if not {"absent", action} & DENIED.get(leaf.name, {}).keys()
        and f"one -> {action}" not in UNSEEN.get(leaf.name, {})
    ]
    errors = wrong(errors_of(optional, stage), "the operator ignores the field")
    # A field with a default: the default is missing.
    assert wrong(errors, "no child has the value of the field") == {}


def test_new_field_of_a_crd_gets_strict_cases() -> None:
    root = {**LEAVES[0].root, "properties": {**LEAVES[0].root["properties"], "threads": THREADS}}
    threads = next(leaf for leaf in leaves(MEMCACHEDS, root) if leaf.path == ("threads",))
    selected = [(threads, action, steps) for action, steps in actions(threads).items()]
    assert set(actions(threads)) == ACTIONS - {"doubled-halved"}
    assert wrong(errors_of(selected, ignoring), "memcacheds/threads, step ") == {}


def test_every_field_has_two_values_and_the_first_is_not_the_default() -> None:
    same = {leaf.name for leaf in LEAVES if values_of(leaf)[0] == values_of(leaf)[1]}
    assert same == set(WITHOUT_EFFECT) - {"memcacheds/identity"}  # the other value is denied
    assert [leaf.name for leaf in LEAVES if values_of(leaf)[0] == leaf.schema.get("default")] == []


def test_every_expectation_matches_a_step() -> None:
    labels = {(leaf.name, step.label) for leaf, _, steps in ALL for step in steps}
    changes = {(leaf.name, change) for leaf, _, steps in ALL for change in changes_of(leaf, steps)}
    assert entries(DENIED) <= labels
    assert entries(VALID) <= {(name, label) for name, label in labels if label in INVALID}
    assert entries(UNSEEN) <= changes
    assert entries(UNAPPLICABLE) <= entries(VALID)


def test_denial_because_of_another_field_fails() -> None:
    class Confusing(PlanStage):
        """Names another field, whose name begins alike, in its denials."""

        async def replace(self, name: str, spec: Object) -> str:
            return 'spec.imagePullPolicy: Unsupported value: "x"'

    image = [case for case in ALL if (case[0].name, case[1]) == ("memcacheds/image", "invalid")]
    (error,) = errors_of(image, lambda leaf: Confusing(leaf.resource)).values()
    assert "want a denial with 'spec.image:', got: spec.imagePullPolicy" in error


def test_values_of_a_whole_field_have_every_part() -> None:
    whole = [leaf for leaf in LEAVES if last_name(leaf.path) in WHOLES]
    assert {last_name(leaf.path) for leaf in whole} == WHOLES.keys()
    for leaf in whole:
        given = {path for value in values_of(leaf) for path, _ in parts(value)}
        assert [path for path in paths_of(leaf.schema) if path not in given] == [], leaf.name


@pytest.mark.parametrize(
    ("spec", "added"),
    [
        ({}, {}),
        ({"size": 1, "containerPort": 11211}, {}),
        ({"size": None, "resources": {}, "imagePullSecrets": [], "cache": {}}, {}),
        ({"resources": {"limits": {}, "requests": {}}}, {}),
        ({"networkPolicy": {}}, {"networkPolicy": {}}),
        ({"podDisruptionBudget": {}}, {"podDisruptionBudget": {}}),
        ({"podTemplate": {"spec": {"securityContext": {}}}}, {"podTemplate": {"spec": {"securityContext": {}}}}),
    ],
)
def test_defaults_and_most_empty_fields_have_no_effect(spec: Object, added: Object) -> None:
    assert effect(LEAVES[0], spec) == {"size": 1, "containerPort": 11211, **added}


def seen(value: Any, path: tuple[str, ...], replacement: Any) -> Any:
    """A spec in which a field, where it is present, has another value, or is absent."""
    head, rest = path[0], path[1:]
    if head == "[]" and not rest:
        return [] if replacement is ABSENT else [replacement for _ in value]
    if head == "[]":
        return [seen(item, rest, replacement) for item in value]
    if head not in value:
        return value
    if rest:
        return {**value, head: seen(value[head], rest, replacement)}
    others = {name: inner for name, inner in value.items() if name != head}
    return others if replacement is ABSENT else {**others, head: replacement}


def paths_of(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every field of a schema without fields of its own."""
    if "properties" in schema:
        return [found for name, inner in schema["properties"].items() for found in paths_of(inner, (*path, name))]
    return paths_of(schema["items"], (*path, "[]")) if "items" in schema else [path]


def changes_of(leaf: Leaf, steps: list[Step]) -> Iterable[str]:
    """The labels of each two accepted steps in sequence."""
    accepted = [step.label for step in steps if not step.invalid or step.label in VALID.get(leaf.name, ())]
    return [f"{one} -> {two}" for one, two in pairwise(accepted)]


def entries(table: Mapping[str, Iterable[str]]) -> set[tuple[str, str]]:
    """Field and label of each entry."""
    return {(name, label) for name, labels in table.items() for label in labels}
