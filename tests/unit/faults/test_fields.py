"""T8 can fail: its cases run here against stages with a defect, and each must detect the defect."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, cast

import pytest

from faults.campaigns.fields.expectations import DENIED, ONE_VALUE, UNAPPLICABLE, UNSEEN, VALID
from faults.campaigns.fields.leaves import ABSENT, RESOURCES, Leaf, all_leaves, last_name, leaves
from faults.campaigns.fields.places import parts
from faults.campaigns.fields.run import effect, run_steps
from faults.campaigns.fields.steps import INVALID, Step, actions, values_of
from faults.campaigns.fields.wholes import WHOLES
from faults.sandbox import FailedError
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support.plan_stage import PlanStage

MESSAGE = "refused by this test"
LEAVES = list(all_leaves())
ALL = [(leaf, action, steps) for leaf in LEAVES for action, steps in actions(leaf).items()]
WITHOUT_EFFECT = [leaf.name for leaf in LEAVES if not {*ONE_VALUE}.isdisjoint(UNSEEN.get(leaf.name, {}).values())]
EFFECTIVE = [case for case in ALL if case[0].name not in WITHOUT_EFFECT]
EFFECTIVE_LEAVES = [leaf for leaf in LEAVES if leaf.name not in WITHOUT_EFFECT]
WHOLE_LEAVES = [leaf for leaf in LEAVES if last_name(leaf.path) in WHOLES]
ACTIONS = {"set", "change", "revert", "delete", "empty", "bounds", "doubled-halved", "invalid"}
THREADS = {"type": "integer", "minimum": 1}
MEMORIES = ("memcacheds/resources.limits.memory", "memcacheds/resources.requests.memory")
BY_ABSENCE = {
    "memcacheds/monitoring.tls.enabled",
    "memcacheds/tls.plaintext",
    "memcacheds/cache.evictions",
    "memcacheds/cache.verbosity",
    "memcacheds/cache.warmRestart",
    "memcacheds/monitoring.enabled",
    "memcacheds/monitoring.podMonitor.enabled",
    "memcacheds/podDisruptionBudget.enabled",
    "memcacheds/rollout.paused",
    "memcacheds/service.perPod",
}
"""Fields of which one value is shown by the absence of an option or a child: only the change of a child shows it."""
Selected = list[tuple[Leaf, str, list[Step]]]


class Refusing(PlanStage):
    """Denies every spec."""

    async def create(self, name: str, spec: Object) -> str:
        """Deny it."""
        return MESSAGE

    async def replace(self, name: str, spec: Object) -> str:
        """Deny it."""
        return MESSAGE


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


@pytest.mark.parametrize("stage", [Refusing, RefusingUpdates])
def test_every_case_fails_if_every_spec_is_denied(stage: type[PlanStage]) -> None:
    errors = errors_of(ALL, lambda leaf: stage(leaf.resource))
    assert wrong(errors, MESSAGE) == {}
    assert {action for _, action, _ in ALL} == ACTIONS


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


def test_visible_actions_pass_with_the_real_plan() -> None:
    assert set(errors_of(of_actions("change", "revert"), lambda leaf: PlanStage(leaf.resource)).values()) == {""}


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


def swapped(spec: Object) -> Object:
    """Limits and requests are swapped."""
    given: Object = spec.get("resources") or {}
    parts = {"limits": given.get("requests"), "requests": given.get("limits")}
    return {**spec, "resources": {name: part for name, part in parts.items() if part is not None}}


def with_first_items(value: Any) -> Any:
    """Every list has at most one item."""
    if isinstance(value, list):
        return [with_first_items(item) for item in cast("list[Any]", value)[:1]]
    if isinstance(value, dict):
        return {name: with_first_items(inner) for name, inner in cast("Object", value).items()}
    return value


def with_other_node_ports(spec: Object) -> Object:
    """Every node port is the next one."""
    ports: list[Object] = spec.get("ports") or []
    return {
        **spec,
        "ports": [{**port, **{name: port[name] + 1 for name in port if name == "nodePort"}} for port in ports],
    }


WRONG: dict[str, Callable[[Object], Object]] = {
    "another size": lambda spec: {**spec, "size": 2 * spec.get("size", 1) + 1},
    "limits and requests swapped": swapped,
    "only the first item": with_first_items,
    "another node port": with_other_node_ports,
    "another image": lambda spec: {**spec, "image": f"mirror.{spec['image']}"} if spec.get("image") else spec,
}
"""Plans that apply another value than that of a field, by name: the spec as they see it."""
AFFECTED: dict[str, Callable[[Leaf], bool]] = {
    "another size": lambda leaf: leaf.path == ("size",),
    # The memory limit and request of a Memcached follow each other: both plans give the same amounts.
    "limits and requests swapped": lambda leaf: leaf.path[0] == "resources" and leaf.name not in MEMORIES,
    "only the first item": lambda leaf: "[]" in leaf.path,
    "another node port": lambda leaf: leaf.path[-1] == "nodePort",
    "another image": lambda leaf: leaf.path == ("image",),
}
"""The fields whose cases must notice it."""


@pytest.mark.parametrize("name", WRONG)
def test_plan_that_applies_another_value_fails(name: str) -> None:
    def steps(leaf: Leaf) -> list[Step]:
        return [step for step in actions(leaf)["set"] if step.label not in DENIED.get(leaf.name, {})]

    affected = [(leaf, "set", steps(leaf)) for leaf in EFFECTIVE_LEAVES if AFFECTED[name](leaf)]
    errors = errors_of(affected, lambda leaf: PlanStage(leaf.resource, WRONG[name]))
    assert errors
    assert wrong(errors, "no child has the value of the field") == {}


def test_steps_of_a_field_change_only_its_top_level_parent() -> None:
    def others(leaf: Leaf, step: Step) -> Object:
        return {name: value for name, value in step.spec.items() if name != leaf.path[0]}

    different = [
        f"{leaf.name}/{action}" for leaf, action, steps in ALL if len({str(others(leaf, s)) for s in steps}) > 1
    ]
    assert different == []


def test_every_case_fails_if_the_operator_cannot_apply_valid_values() -> None:
    errors = errors_of(ALL, lambda leaf: PlanStage(leaf.resource, lambda spec: {**spec, "size": 0}))
    assert wrong(errors, "the operator reports a problem: spec.size") == {}


def test_new_field_of_a_crd_gets_strict_cases() -> None:
    root = {**LEAVES[0].root, "properties": {**LEAVES[0].root["properties"], "threads": THREADS}}
    threads = next(leaf for leaf in leaves(MEMCACHEDS, root) if leaf.path == ("threads",))
    selected = [(threads, action, steps) for action, steps in actions(threads).items()]
    assert set(actions(threads)) == ACTIONS - {"doubled-halved"}
    assert wrong(errors_of(selected, ignoring), "memcacheds/threads, step ") == {}


def test_error_names_field_value_and_message() -> None:
    (error,) = errors_of([ALL[0]], lambda leaf: RefusingUpdates(leaf.resource)).values()
    assert error == f"memcacheds/size, step 'one', size: 2: the API server denied it: {MESSAGE}"


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


@pytest.mark.parametrize("leaf", WHOLE_LEAVES, ids=[leaf.name for leaf in WHOLE_LEAVES])
def test_values_of_a_whole_field_have_every_part(leaf: Leaf) -> None:
    given = {path for value in values_of(leaf) for path, _ in parts(value)}
    assert [path for path in paths_of(leaf.schema) if path not in given] == []


def test_every_whole_value_is_used() -> None:
    assert {last_name(leaf.path) for leaf in WHOLE_LEAVES} == WHOLES.keys()


def test_leaves_cover_every_kind() -> None:
    assert {leaf.resource for leaf in LEAVES} == set(RESOURCES)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"size": 1, "containerPort": 11211},
        {"size": None, "resources": {}, "imagePullSecrets": [], "cache": {}},
        {"resources": {"limits": {}, "requests": {}}},
    ],
)
def test_defaults_and_empty_fields_have_no_effect(spec: Object) -> None:
    assert effect(LEAVES[0], spec) == {"size": 1, "containerPort": 11211}


@pytest.mark.parametrize(
    "spec", [{"networkPolicy": {}}, {"podDisruptionBudget": {}}, {"podTemplate": {"spec": {"securityContext": {}}}}]
)
def test_some_empty_objects_have_an_effect(spec: Object) -> None:
    assert effect(LEAVES[0], spec) == {"size": 1, "containerPort": 11211} | spec


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
