"""Requests and limits that a pod gets although it did not have them: a resize adds them, and cannot remove them."""

import dataclasses
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.origin import digest
from memcached_operator.memcached.updates.patches import DENIED_ADDED, UNDO_ADDED
from memcached_operator.memcached.updates.record import UpdateRecord
from memcached_operator.world.snapshot import Resize
from unit.memcached.updates.test_steps import AMOUNTS, BEFORE, changed, kind, read
from unit.memcached.updates.updating import LATER, NEW, OLD, RULES, created, decided, with_condition

SPEC = dataclasses.replace(RULES, digest=partial(digest, "a"))
"""The rules, with the digest of a spec whose template is `changed()`, if only its amounts are others."""
WITHOUT = changed(agent_limit="")
LIMITED = changed(more={"cpu": "1"})
ADDED: dict[str, tuple[Object, Object, Resize | None, str]] = {
    "a CPU limit": (BEFORE, LIMITED, Resize.ANY, "recorded"),
    "a CPU limit, where memory limits cannot be lowered": (BEFORE, LIMITED, Resize.RAISE, "recorded"),
    "a CPU limit, without resize": (BEFORE, LIMITED, Resize.NONE, "deleted"),
    "a CPU limit, before it is known what the cluster can": (BEFORE, LIMITED, None, ""),
    "a CPU limit, beside another image": (
        BEFORE,
        changed(more={"cpu": "1"}, image="memcached:2"),
        Resize.ANY,
        "recorded",
    ),
    "a CPU limit, beside anything else": (BEFORE, changed(more={"cpu": "1"}, fixed="b"), Resize.ANY, "deleted"),
    "a memory limit": (WITHOUT, BEFORE, Resize.ANY, "recorded"),
    "a memory limit, where it cannot be added": (WITHOUT, BEFORE, Resize.RAISE, "deleted"),
    "another resource": (BEFORE, changed(more={"ephemeral-storage": "1Gi"}), Resize.ANY, "deleted"),
    "no CPU limit": (LIMITED, BEFORE, Resize.ANY, "deleted"),
    "no memory limit": (BEFORE, WITHOUT, Resize.ANY, "deleted"),
}


@pytest.mark.parametrize(("before", "target", "resize", "expected"), ADDED.values(), ids=ADDED.keys())
def test_amounts_are_added_in_place(before: Object, target: Object, resize: Resize | None, expected: str) -> None:
    found = decided(target, created(0, before), resize=resize, rules=SPEC)
    assert kind(found.step) == (f"cache-0 {expected}" if expected else "")


def test_other_templates_than_that_of_the_spec_are_not_compared() -> None:
    """During a pause, the template stays."""
    assert kind(decided(LIMITED, created(0, BEFORE)).step) == "cache-0 deleted"


ADDS = UpdateRecord(NEW, LATER, amounts=AMOUNTS, added={"memcached": ["limits.cpu"]})
OTHERS = msgspec.structs.replace(ADDS, added={"agent": ["limits.cpu"]})
UNDONE: dict[str, tuple[Object, UpdateRecord, str]] = {
    "the resize was made": (LIMITED, ADDS, "deleted"),
    "the resize was not made": (BEFORE, ADDS, "recorded"),
    "a policy has added the limit": (LIMITED, OTHERS, "recorded"),
}


@pytest.mark.parametrize(("spec", "update", "expected"), UNDONE.values(), ids=UNDONE.keys())
def test_added_amount_that_is_undone_needs_a_new_pod(spec: Object, update: UpdateRecord, expected: str) -> None:
    """Kubernetes cannot remove it from a pod."""
    abandoned = msgspec.structs.replace(update, revision="cache-bad")
    for target, revision in ((BEFORE, NEW), (changed(image="memcached:2"), OLD)):
        pod = {**created(0, BEFORE, revision, abandoned), "spec": spec["spec"]}
        step = decided(target, pod, rules=SPEC).step
        assert kind(step) == f"cache-0 {expected if target is BEFORE or expected == 'deleted' else 'updated'}"


def test_record_names_the_added_amounts() -> None:
    assert read(decided(LIMITED, created(0, BEFORE), rules=SPEC).step).added == {"memcached": ["limits.cpu"]}
    both = changed(more={"cpu": "1"}, cpu="20m")
    pod = {**created(0, BEFORE, record=replace(ADDS, revision="cache-bad")), "spec": LIMITED["spec"]}
    assert read(decided(both, pod, rules=SPEC).step).added == {"memcached": ["limits.cpu"]}


def test_remedy_says_what_undoing_an_added_amount_costs() -> None:
    pod = created(0, BEFORE, record=ADDS)
    step = decided(LIMITED, pod, rules=SPEC).step
    assert step is not None
    assert step.denied_remedy == DENIED_ADDED
    requested = {**pod, "spec": LIMITED["spec"]}
    pending = with_condition(requested, "PodResizeInProgress", reason="Error", message="no")
    (problem,) = decided(LIMITED, pending, rules=SPEC).problems
    assert UNDO_ADDED in problem.message
