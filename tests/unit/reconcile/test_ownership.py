from typing import Any

import pytest

from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.resource import Object
from memcached_operator.reconcile.compare import INTENT_ANNOTATION, with_intent
from memcached_operator.reconcile.ownership import (
    Action,
    controller_reference,
    decide,
    is_controlled_by,
    migration_patch,
)
from unit.builders import LABELS, memcached, owned

CR = memcached()
DESIRED = with_intent(
    {
        "kind": "Deployment",
        "metadata": {"name": "cache", "labels": LABELS, "ownerReferences": [controller_reference(CR)]},
        "spec": {"replicas": 3},
    }
)
APPLIED = {**owned(CR, annotations=DESIRED["metadata"]["annotations"]), "spec": {"replicas": 3, "paused": False}}
EARLIER = [controller_reference(memcached(uid="earlier"))]
OURS_NO_MORE = {"ownerReferences": [], "managedFields": [{"manager": FIELD_MANAGER, "operation": "Update"}]}
STATUS_ONLY = [{"manager": FIELD_MANAGER, "operation": "Update", "subresource": "status"}]


def changed(**meta: Any) -> Object:
    """The child as applied, with other metadata."""
    return {**APPLIED, "metadata": {**APPLIED["metadata"], **meta}}


DECISIONS = {
    "absent": (None, Action.CREATE),
    "as desired": (APPLIED, Action.SKIP),
    "a value changed by hand": ({**APPLIED, "spec": {"replicas": 5}}, Action.APPLY),
    "something left over of an earlier intent": (changed(annotations={INTENT_ANNOTATION: "old"}), Action.APPLY),
    "annotations gone": (changed(annotations=None), Action.APPLY),
    "another owner beside us": (
        changed(ownerReferences=[{"kind": "X", "uid": "x"}, controller_reference(CR)]),
        Action.SKIP,
    ),
    "being deleted": (changed(deletionTimestamp="2030-01-01T12:00:00Z"), Action.WAIT),
    "of an earlier object of our name": (changed(ownerReferences=EARLIER), Action.WAIT),
    "of an earlier object, in another version of the API": (
        changed(ownerReferences=[EARLIER[0] | {"apiVersion": "cache.example.com/v1alpha1"}]),
        Action.WAIT,
    ),
    "of the same kind in another group": (
        changed(ownerReferences=[EARLIER[0] | {"apiVersion": "memcached.example.org/v1"}]),
        Action.CONFLICT,
    ),
    "of another object of ours": (changed(ownerReferences=[EARLIER[0] | {"name": "other"}]), Action.CONFLICT),
    "of another kind of our name": (changed(ownerReferences=[EARLIER[0] | {"kind": "Redis"}]), Action.CONFLICT),
    "orphaned by hand": (changed(**OURS_NO_MORE), Action.APPLY),
    "orphaned by hand and being deleted": (changed(**OURS_NO_MORE, deletionTimestamp="now"), Action.WAIT),
    "with our labels only": (changed(ownerReferences=[], managedFields=[{"manager": "kubectl"}]), Action.CONFLICT),
    "with our labels, and a status we wrote": (changed(ownerReferences=[], managedFields=STATUS_ONLY), Action.CONFLICT),
    "with our field manager only": (changed(**OURS_NO_MORE, labels={}), Action.CONFLICT),
    "an owner that does not control it": (
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


REASONS = {
    "being deleted": (changed(deletionTimestamp="now"), "Deployment cache is being deleted"),
    "of an earlier object": (
        changed(ownerReferences=EARLIER),
        "Deployment cache of an earlier Memcached with the same name is still being deleted",
    ),
    "of another": (
        changed(ownerReferences=[EARLIER[0] | {"kind": "Redis", "name": "r"}]),
        "Deployment cache belongs to Redis r",
    ),
    "foreign": (
        changed(ownerReferences=[], managedFields=[]),
        "Deployment cache exists and is not managed by this operator",
    ),
}


@pytest.mark.parametrize(("live", "message"), REASONS.values(), ids=REASONS.keys())
def test_a_decision_names_the_object_and_why(live: Object, message: str) -> None:
    assert decide(CR, DESIRED, live).message == message


def test_ours_is_what_this_very_object_controls() -> None:
    assert is_controlled_by(APPLIED, CR)
    assert not is_controlled_by(APPLIED, memcached(uid="later"))
    assert not is_controlled_by(changed(ownerReferences=None), CR)


UPDATE, APPLY, OTHER = (
    {"manager": FIELD_MANAGER, "operation": "Update"},
    {"manager": FIELD_MANAGER, "operation": "Apply"},
    {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"},
)
NOTHING_TO_HAND_OVER = {
    "no fields at all": [],
    "fields of others": [OTHER],
    "applied already": [APPLY, OTHER],
    "applied beside an update": [UPDATE, APPLY],
    "only a status": STATUS_ONLY,
}


@pytest.mark.parametrize("fields", NOTHING_TO_HAND_OVER.values(), ids=NOTHING_TO_HAND_OVER.keys())
def test_nothing_to_hand_over(fields: list[Object]) -> None:
    assert migration_patch(changed(managedFields=fields)) == []


@pytest.mark.parametrize(("fields", "index"), [([UPDATE], 0), ([OTHER, UPDATE], 1)], ids=["alone", "behind others"])
def test_the_handover_changes_our_entry_in_its_place_and_tests_that_it_is_ours(
    fields: list[Object], index: int
) -> None:
    path = f"/metadata/managedFields/{index}"
    assert migration_patch(changed(managedFields=fields)) == [
        {"op": "test", "path": "/metadata/uid", "value": "child"},
        {"op": "test", "path": f"{path}/manager", "value": FIELD_MANAGER},
        {"op": "test", "path": f"{path}/operation", "value": "Update"},
        {"op": "replace", "path": f"{path}/operation", "value": "Apply"},
    ]
