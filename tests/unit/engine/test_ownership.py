from typing import Any

import pytest

from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.engine.writes.intent import digest_v1, with_intent
from memcached_operator.engine.writes.ownership import (
    Action,
    annotation_patch,
    controller_reference,
    decide,
    is_controlled_by,
    preparation_patch,
)
from memcached_operator.kube import labels
from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.resource import Object
from unit.builders import LABELS, memcached, owned

CR = memcached()
INTENT: Object = {
    "kind": "Deployment",
    "metadata": {"name": "cache", "labels": LABELS, "ownerReferences": [controller_reference(CR)]},
    "spec": {"replicas": 3, "minReadySeconds": 0},
}
DESIRED = with_intent(INTENT)
SPEC = {"replicas": 3, "minReadySeconds": 0, "paused": False}
APPLIED = {**owned(CR, annotations=DESIRED["metadata"]["annotations"]), "spec": SPEC}
EARLIER = [controller_reference(memcached(uid="earlier"))]
ORPHANED = {"ownerReferences": [], "managedFields": [{"manager": FIELD_MANAGER, "operation": "Update"}]}
STATUS_ONLY = [{"manager": FIELD_MANAGER, "operation": "Update", "subresource": "status"}]


def recorded(digest: str, **spec: Any) -> Object:
    """The live child with this digest of its intent, and another spec."""
    return {**APPLIED, **owned(CR, annotations={INTENT_ANNOTATION: digest}), "spec": SPEC | spec}


def changed(**meta: Any) -> Object:
    """The child as applied, with other metadata."""
    return {**APPLIED, "metadata": {**APPLIED["metadata"], **meta}}


def copied(**meta: Any) -> Object:
    """The child as a backup without managedFields restores it, with other metadata."""
    managed = [{"manager": "velero-server", "operation": "Update"}]
    return changed(**{"ownerReferences": [], "managedFields": managed, **meta})


COPY = copied()

DECISIONS = {
    "absent": (None, Action.CREATE),
    "as desired": (APPLIED, Action.SKIP),
    "value changed manually": ({**APPLIED, "spec": {"replicas": 3, "minReadySeconds": 5}}, Action.APPLY),
    "number of pods changed": ({**APPLIED, "spec": {**APPLIED["spec"], "replicas": 5}}, Action.SCALE),
    "number of pods and another value changed": (
        {**APPLIED, "spec": {"replicas": 5, "minReadySeconds": 5}},
        Action.APPLY,
    ),
    "number of pods removed": ({**APPLIED, "spec": {"minReadySeconds": 0}}, Action.APPLY),
    "applied by release 0.1.0": (recorded(digest_v1(INTENT)), Action.SKIP),
    "applied by release 0.1.0 with another number of pods": (
        recorded(digest_v1({**INTENT, "spec": {**INTENT["spec"], "replicas": 5}}), replicas=5),
        Action.APPLY,
    ),
    "applied by release 0.1.0 and then scaled manually": (recorded(digest_v1(INTENT), replicas=5), Action.APPLY),
    "applied with an earlier intent": (changed(annotations={INTENT_ANNOTATION: "old"}), Action.APPLY),
    "annotations removed": (changed(annotations=None), Action.APPLY),
    "second owner that is not the controller": (
        changed(ownerReferences=[{"kind": "X", "uid": "x"}, controller_reference(CR)]),
        Action.SKIP,
    ),
    "being deleted": (changed(deletionTimestamp="2030-01-01T12:00:00Z"), Action.WAIT),
    "of an earlier object of the same name": (changed(ownerReferences=EARLIER), Action.WAIT),
    "of an earlier object of the same name, in another API version": (
        changed(ownerReferences=[EARLIER[0] | {"apiVersion": "cache.example.com/v1alpha1"}]),
        Action.WAIT,
    ),
    "of the same kind in another group": (
        changed(ownerReferences=[EARLIER[0] | {"apiVersion": "memcached.example.org/v1"}]),
        Action.CONFLICT,
    ),
    "of another Memcached": (changed(ownerReferences=[EARLIER[0] | {"name": "other"}]), Action.CONFLICT),
    "of another kind with the same name": (changed(ownerReferences=[EARLIER[0] | {"kind": "Redis"}]), Action.CONFLICT),
    "orphaned manually": (changed(**ORPHANED), Action.APPLY),
    "orphaned manually and being deleted": (changed(**ORPHANED, deletionTimestamp="now"), Action.WAIT),
    "orphaned manually, with a label of another manager": (
        changed(**ORPHANED, labels={**LABELS, labels.MANAGED_BY: "Helm"}),
        Action.CONFLICT,
    ),
    "copy from a backup": (COPY, Action.APPLY),
    "copy with fields of others": ({**COPY, "spec": {**SPEC, "revisionHistoryLimit": 10}}, Action.APPLY),
    "copy with a status that we wrote": (copied(managedFields=STATUS_ONLY), Action.APPLY),
    "copy of an earlier release": (copied(annotations={INTENT_ANNOTATION: "earlier"}), Action.APPLY),
    "copy that is being deleted": (copied(deletionTimestamp="now"), Action.WAIT),
    "copy with another value": ({**COPY, "spec": {**SPEC, "minReadySeconds": 5}}, Action.CONFLICT),
    "copy with another number of pods": ({**COPY, "spec": {**SPEC, "replicas": 0}}, Action.CONFLICT),
    "copy without the digest of an intent": (copied(annotations={}), Action.CONFLICT),
    "copy without one of our labels": (copied(labels={**LABELS, labels.MANAGED_BY: "Helm"}), Action.CONFLICT),
    "copy of another instance": (copied(labels={**LABELS, labels.INSTANCE: "other"}), Action.CONFLICT),
    "copy with an owner that is not the controller": (
        copied(ownerReferences=[{"kind": "App", "name": "app", "uid": "x"}]),
        Action.CONFLICT,
    ),
    "with our field manager only": (changed(**ORPHANED, labels={}), Action.CONFLICT),
    "owned but not controlled by this object": (
        changed(ownerReferences=[{**controller_reference(CR), "controller": False}], managedFields=[]),
        Action.CONFLICT,
    ),
    "foreign": (changed(ownerReferences=[], labels={}, managedFields=[]), Action.CONFLICT),
    "foreign and being deleted": (
        changed(ownerReferences=[], labels={}, managedFields=[], deletionTimestamp="now"),
        Action.CONFLICT,
    ),
}


@pytest.mark.parametrize(("live", "action"), DECISIONS.values(), ids=DECISIONS.keys())
def test_decision(live: Object | None, action: Action) -> None:
    assert decide(CR, DESIRED, live).action is action


def test_orphan_without_a_label_of_the_spec_is_adopted() -> None:
    meta = INTENT["metadata"]
    desired = with_intent({**INTENT, "metadata": {**meta, "labels": {**LABELS, "team": "a"}}})
    assert decide(CR, desired, changed(**ORPHANED)).action is Action.APPLY


REASONS = {
    "being deleted": (changed(deletionTimestamp="now"), "Deployment cache is being deleted"),
    "blocked by finalizers": (
        changed(deletionTimestamp="now", finalizers=[f"example.com/{n}" for n in range(4)]),
        "Deployment cache is being deleted: its finalizers example.com/0, example.com/1, example.com/2 and 1 more "
        "block it",
    ),
    "waits for its dependents": (
        changed(deletionTimestamp="now", finalizers=["foregroundDeletion", "orphan"]),
        "Deployment cache is being deleted",
    ),
    "copy that a finalizer blocks": (
        copied(deletionTimestamp="now", finalizers=["example.com/dns"]),
        "Deployment cache is being deleted: its finalizer example.com/dns blocks it",
    ),
    "of an earlier object": (
        changed(ownerReferences=EARLIER, finalizers=["example.com/dns"]),
        "Deployment cache of an earlier Memcached with the same name is still being deleted",
    ),
    "of an earlier object, blocked by a finalizer": (
        changed(ownerReferences=EARLIER, deletionTimestamp="now", finalizers=["example.com/dns"]),
        "Deployment cache of an earlier Memcached with the same name is still being deleted: its finalizer "
        "example.com/dns blocks it",
    ),
    "of another owner": (
        changed(ownerReferences=[EARLIER[0] | {"kind": "Redis", "name": "r"}]),
        "Deployment cache belongs to Redis r",
    ),
    "of another owner, whose name is not one": (
        changed(ownerReferences=[EARLIER[0] | {"kind": "Redis", "name": "a\nb"}]),
        'Deployment cache belongs to Redis "a\\nb"',
    ),
    "foreign": (
        copied(labels={}),
        "Deployment cache exists and is not managed by this operator",
    ),
    "copy with other values": (
        {**COPY, "spec": {"replicas": 0, "minReadySeconds": 5}},
        "Deployment cache has another value of spec.replicas, spec.minReadySeconds",
    ),
}


@pytest.mark.parametrize(("live", "message"), REASONS.values(), ids=REASONS.keys())
def test_message_names_the_object_and_the_reason(live: Object, message: str) -> None:
    assert decide(CR, DESIRED, live).message == message


def test_child_is_ours_if_this_object_controls_it() -> None:
    assert is_controlled_by(APPLIED, CR)
    assert not is_controlled_by(APPLIED, memcached(uid="later"))
    assert not is_controlled_by(changed(ownerReferences=None), CR)


SAME = [
    {"op": "test", "path": "/metadata/uid", "value": "child"},
    {"op": "test", "path": "/metadata/ownerReferences", "value": [controller_reference(CR)]},
]
UPDATE, APPLY, OTHER = (
    {"manager": FIELD_MANAGER, "operation": "Update"},
    {"manager": FIELD_MANAGER, "operation": "Apply"},
    {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"},
)
NOTHING_TO_MIGRATE = {
    "no fields": [],
    "fields of others": [OTHER],
    "applied already": [APPLY, OTHER],
    "applied beside an update": [UPDATE, APPLY],
    "only a status": STATUS_ONLY,
}


@pytest.mark.parametrize("fields", NOTHING_TO_MIGRATE.values(), ids=NOTHING_TO_MIGRATE.keys())
def test_nothing_to_migrate(fields: list[Object]) -> None:
    assert preparation_patch(DESIRED, changed(managedFields=fields)) == []


@pytest.mark.parametrize(("fields", "index"), [([UPDATE], 0), ([OTHER, UPDATE], 1)], ids=["only entry", "second entry"])
def test_migration_replaces_our_entry_and_tests_that_it_is_ours(fields: list[Object], index: int) -> None:
    path = f"/metadata/managedFields/{index}"
    assert preparation_patch(DESIRED, changed(managedFields=fields)) == [
        *SAME,
        {"op": "test", "path": f"{path}/manager", "value": FIELD_MANAGER},
        {"op": "test", "path": f"{path}/operation", "value": "Update"},
        {"op": "replace", "path": f"{path}/operation", "value": "Apply"},
    ]


ON_DELETE: Object = {"type": "OnDelete", "rollingUpdate": None}
ROLLING: Object = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
REMOVALS: dict[str, tuple[Object, Object, list[Object]]] = {
    "map of another client": (
        {"updateStrategy": ON_DELETE},
        {"updateStrategy": ROLLING},
        [{"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}}],
    ),
    "other fields stay": (
        {"outer": {"inner": ON_DELETE}},
        {"outer": {"inner": {**ROLLING, "theirs": 1}}},
        [{"op": "replace", "path": "/spec/outer/inner", "value": {"type": "OnDelete", "theirs": 1}}],
    ),
    "absent": ({"updateStrategy": ON_DELETE}, {"updateStrategy": {"type": "OnDelete"}}, []),
    "an apply removes numbers": ({"limits": {"minAvailable": None}}, {"limits": {"minAvailable": 1}}, []),
    "not wanted otherwise": ({"updateStrategy": {"type": "OnDelete"}}, {"updateStrategy": ROLLING}, []),
    "no map": ({"updateStrategy": ON_DELETE}, {"updateStrategy": None}, []),
}


@pytest.mark.parametrize(("desired", "live", "expected"), REMOVALS.values(), ids=REMOVALS.keys())
def test_maps_of_others_that_an_apply_would_keep_are_removed(
    desired: Object, live: Object, expected: list[Object]
) -> None:
    found = {**changed(managedFields=[APPLY]), "spec": live}
    assert preparation_patch({**DESIRED, "spec": desired}, found) == ([*SAME, *expected] if expected else [])


def test_orphan_gets_its_controller_with_the_removal() -> None:
    """The operator may not change an object without a controller otherwise."""
    desired = {**DESIRED, "spec": {"updateStrategy": ON_DELETE}}
    orphan = {**changed(**ORPHANED), "spec": {"updateStrategy": ROLLING}}
    patch = preparation_patch(desired, orphan)
    assert {"op": "add", "path": "/metadata/ownerReferences", "value": [controller_reference(CR)]} in patch
    assert patch[-1]["path"] == "/spec/updateStrategy"
    kept = preparation_patch(DESIRED, changed(**ORPHANED))
    assert not any(step["path"] == "/metadata/ownerReferences" for step in kept)


def test_annotation_is_added_to_no_object_of_another_owner() -> None:
    add = {"op": "add", "path": "/metadata/annotations/example.com~1at", "value": "now"}
    assert annotation_patch(APPLIED, "example.com/at", "now") == [*SAME, add]
