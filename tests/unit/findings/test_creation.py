"""Why pods of a workload are not created, from what the cluster reports."""

from dataclasses import replace
from typing import Any

import pytest

from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_api.remedies import Action
from memcached_operator.findings import creation
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Key, Object, Resource
from memcached_operator.kube.times import last_seen
from memcached_operator.world.snapshot import Message, Snapshot
from unit.builders import LABELS, NOW, ago, deployment, memcached, owned, pod, snapshot_of, typed

SLOTS, POOL = Key(STATEFULSETS, "test", "cache"), Key(DEPLOYMENTS, "test", "cache")
QUOTA = "is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"
RAISE = "raise ResourceQuota none, or lower spec.size"
RULES = PodRules("Memcached", surge=(Action("set spec.rollout.maxSurge to 0"),))
DENIED = "is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: pods are kept"
UNDELETED: Any = {
    "ReplicaFailure": {
        "status": "True",
        "reason": "FailedDelete",
        "message": f'unable to delete pods: pods "cache-5d4f-aaaaa" {DENIED}',
        "lastUpdateTime": "2030-01-01T11:00:00Z",
    }
}
ALLOW = "correct the policy or the webhook that rejects the deletion"
FAILING: Any = {"ReplicaFailure": {"status": "True", "message": "no", "lastUpdateTime": "2030-01-01T11:00:00Z"}}
LATE_SET = 'Failed to create new replica set "cache-5d4f": replicasets.apps "cache-5d4f"'
NO_SETS = "is forbidden: exceeded quota: none, requested: count/replicasets.apps=1, used: count/replicasets.apps=2"
UNABLE: Any = {
    "Progressing": {
        "status": "False",
        "reason": "ReplicaSetCreateError",
        "message": f"{LATE_SET} {NO_SETS}",
        "lastUpdateTime": "2030-01-01T11:59:00Z",
    }
}


def statefulset(size: int = 3, **meta: Any) -> Object:
    """A live StatefulSet, whose controller has seen its latest spec."""
    live = owned(resource=STATEFULSETS, generation=2, **meta)
    spec = {"replicas": size, "selector": {"matchLabels": LABELS}}
    return {**live, "spec": spec, "status": {"observedGeneration": 2}}


def paused(size: int = 3, conditions: Any = None, **status: Any) -> Object:
    """A paused Deployment."""
    return {**deployment(size, conditions, **status), "spec": {"replicas": size, "paused": True}}


def event(text: str, seen: float = 5, name: str = "cache") -> Object:
    """An Event about an object with this name, last seen `seen` seconds ago."""
    return {"involvedObject": {"name": name}, "message": text, "lastTimestamp": ago(seen)}


def of_slot(slot: int, cause: str = QUOTA, seen: float = 5, verb: str = "Create") -> Object:
    """The Event that the pod of a slot cannot be created."""
    error = f'{verb} Pod cache-{slot} in StatefulSet cache failed error: pods "cache-{slot}" {cause}'
    return event(error, seen)


def of_replica_set(cause: str, seen: float = 5, name: str = "cache-5d4f", prefix: str = "") -> Object:
    """The Event that a pod of a ReplicaSet cannot be created."""
    return event(f'{prefix}Error creating: pods "{name}-x7p2j" {cause}', seen, name)


def observed(live: Object | None, *events: Object, pods: tuple[Object, ...] = (), **creating: Any) -> Snapshot:
    """A snapshot with this workload, and what was read about missing pods."""
    resource: Resource = STATEFULSETS if live is not None and live["kind"] == "StatefulSet" else DEPLOYMENTS
    key = Key(resource, "test", "cache")
    said = {"child": tuple(Message(last_seen(each) or NOW, each["message"]) for each in events)}
    taken = tuple(creating.get("taken", ()))
    return snapshot_of(memcached(), {} if live is None else {key: live}, pods, messages=said, taken=taken)


def not_deleted(cause: str = DENIED, seen: float = 5, slot: int = 1, verb: str = "Delete") -> Object:
    """The Event that the pod of a slot cannot be deleted."""
    return event(f'{verb} Pod cache-{slot} in StatefulSet cache failed error: pods "cache-{slot}" {cause}', seen)


def not_deleted_of_replica_set(cause: str = DENIED, seen: float = 5) -> Object:
    """The Event that a pod of a ReplicaSet cannot be deleted."""
    return event(f'Error deleting: pods "cache-5d4f-x7p2j" {cause}', seen, "cache-5d4f")


def slots(*numbers: int) -> tuple[Object, ...]:
    """The pods of slots."""
    return tuple(pod(f"cache-{number}") for number in numbers)


def other(name: str = "cache-1", owner: Object | None = None, **meta: Any) -> Object:
    """The pod of another owner, as it was read."""
    references = {"ownerReferences": [{**owner, "uid": "other", "controller": True}]} if owner else {}
    read = creation.obstacle({"metadata": {"name": name, "namespace": "test", **references, **meta}}, "child")
    return {} if read is None else read


def released(without: str = "", **labels: str) -> Object:
    """A pod that the operator has made, and that has no controller. `without`: a label that it lacks."""
    own = {name: value for name, value in {**LABELS, "team": "web", **labels}.items() if name != without}
    return other(labels=own, annotations={ORIGIN_ANNOTATION: "{}"})


def restoring(labels: str) -> str:
    """The message about a pod without these labels."""
    return (
        "Pod cache-1 has the name of a slot, but lacks labels with which the StatefulSet selects it. The pod is not "
        f"modified. Restore them: kubectl label pod --overwrite -n test cache-1 {labels}. Or delete it: kubectl "
        "delete pod --wait=false -n test cache-1"
    )


FAILURES: dict[str, tuple[Snapshot, str]] = {
    "no workload": (observed(None, of_slot(0)), ""),
    "no Event": (observed(statefulset()), ""),
    "all pods exist": (observed(statefulset(), of_slot(0), pods=slots(0, 1, 2)), ""),
    "a pod has ended, and a finalizer holds it": (
        replace(observed(statefulset(), of_slot(1), pods=slots(0, 2)), ended=typed(*slots(1))),
        "",
    ),
    "no pod of a StatefulSet": (
        observed(statefulset(), of_slot(0)),
        f'Pods cannot be created: pods "cache-0" {QUOTA}; {RAISE}',
    ),
    "a message of an earlier release": (
        observed(statefulset(), of_slot(1, "is odd", verb="create"), pods=slots(0, 2)),
        'Pods cannot be created: pods "cache-1" is odd',
    ),
    "a pod of a StatefulSet": (
        observed(statefulset(), of_slot(1, "is odd"), pods=slots(0, 2)),
        'Pods cannot be created: pods "cache-1" is odd',
    ),
    "the Event is about another pod": (observed(statefulset(), of_slot(2), pods=slots(0, 2)), ""),
    "other slots exist": (
        observed({**statefulset(), "spec": {"replicas": 2, "ordinals": {"start": 5}}}, of_slot(0)),
        "",
    ),
    "the last of several Events counts": (
        observed(statefulset(), of_slot(0, "is old", 9), of_slot(1, "is new", 3), of_slot(0, "is older", 20)),
        'Pods cannot be created: pods "cache-1" is new',
    ),
    "an Event with another text": (observed(statefulset(), event("no")), ""),
    "an Event with a long text": (
        observed(statefulset(), of_slot(0, "x" * 5000)),
        f'Pods cannot be created: "pods \\"cache-0\\" {"x" * 733}…{"x" * 250}"',
    ),
    "an Event with control characters": (
        observed(statefulset(), of_slot(0, "is\nodd\x1b[31m")),
        'Pods cannot be created: "pods \\"cache-0\\" is\\nodd\\u001b[31m"',
    ),
    "a Deployment": (observed(deployment(conditions=FAILING)), "Pods cannot be created: no"),
    "a Deployment whose ReplicaSet cannot be created": (
        observed(deployment(conditions=UNABLE)),
        f"Pods cannot be created: {LATE_SET} {NO_SETS}; raise ResourceQuota none",
    ),
    "a Deployment that has returned to a ReplicaSet that exists": (
        observed(deployment(conditions=UNABLE, updatedReplicas=3)),
        "",
    ),
    "a Deployment that makes no progress for another reason": (
        observed(deployment(conditions={"Progressing": {**UNABLE["Progressing"], "reason": "ReplicaSetUpdated"}})),
        "",
    ),
    "a Deployment with a newer Event": (
        observed(deployment(conditions=FAILING), of_replica_set("is odd")),
        'Pods cannot be created: pods "cache-5d4f-…" is odd',
    ),
    "a Deployment with similar Events": (
        observed(deployment(conditions=FAILING), of_replica_set("is odd", prefix="(combined from similar events): ")),
        'Pods cannot be created: pods "cache-5d4f-…" is odd',
    ),
    "a Deployment with an older Event": (
        observed(deployment(conditions=FAILING), of_replica_set("is odd", 3601)),
        "Pods cannot be created: no",
    ),
    "a Deployment whose pods can be created again": (
        observed(deployment(conditions={"ReplicaFailure": {"status": "False"}}), of_replica_set("is odd")),
        "",
    ),
    "a paused Deployment that lacks a pod": (
        observed(paused(replicas=2), of_replica_set("is odd")),
        'Pods cannot be created: pods "cache-5d4f-…" is odd',
    ),
    "a paused Deployment with all pods, and the condition from before": (
        observed(paused(replicas=3, conditions=FAILING), of_replica_set("is odd")),
        "",
    ),
    "the pod of another owner": (
        observed(statefulset(), pods=slots(0, 2), taken=[other(owner={"kind": "Job", "name": "a"})]),
        "Pod cache-1 has the name of a slot, and belongs to Job a. The pod is not modified. Delete it: "
        "kubectl delete pod --wait=false -n test cache-1",
    ),
    "a pod without an owner, and a quota": (
        observed(statefulset(), of_slot(2, "is odd"), pods=slots(0), taken=[other()]),
        "Pod cache-1 has the name of a slot, and is not managed by this operator. The pod is not modified. Delete it: "
        'kubectl delete pod --wait=false -n test cache-1; Pods cannot be created: pods "cache-2" is odd',
    ),
    "the pod of another owner with a slot that exists now": (
        observed(statefulset(), pods=slots(0, 1), taken=[other()]),
        "",
    ),
    "a pod of the slot without a label": (
        observed(statefulset(), pods=slots(0, 2), taken=[released("app.kubernetes.io/instance")]),
        restoring("app.kubernetes.io/instance=cache"),
    ),
    "a pod of the slot with other labels": (
        observed(
            statefulset(),
            pods=slots(0, 2),
            taken=[released("app.kubernetes.io/name", **{"app.kubernetes.io/managed-by": "x" * 999})],
        ),
        restoring("app.kubernetes.io/name=memcached app.kubernetes.io/managed-by=memcached-operator"),
    ),
    "a pod of the slot that the StatefulSet adopts": (
        observed(statefulset(), pods=slots(0, 2), taken=[released()]),
        "",
    ),
    "a pod of the slot that another owner has adopted": (
        observed(
            statefulset(),
            pods=slots(0, 2),
            taken=[other(owner={"kind": "Job", "name": "a"}, annotations={ORIGIN_ANNOTATION: "{}"})],
        ),
        "Pod cache-1 has the name of a slot, and belongs to Job a. The pod is not modified. Delete it: "
        "kubectl delete pod --wait=false -n test cache-1",
    ),
    "an owner with a strange name": (
        observed(statefulset(1), taken=[other("cache-0", {"kind": "a\nb", "name": "x" * 999})]),
        f'Pod cache-0 has the name of a slot, and belongs to "a\\nb" "{"x" * 100}…". The pod is not modified. '
        "Delete it: kubectl delete pod --wait=false -n test cache-0",
    ),
}


OF_SLOT = f'Pods cannot be deleted: pods "cache-1" {DENIED}; {ALLOW}'
OF_POOL = f'Pods cannot be deleted: pods "cache-5d4f-…" {DENIED}; {ALLOW}'
KEEP = ", or raise spec.size again to keep the pods"
ENDED = pod("cache-1", phase="Failed", reason="Evicted")
LOWERED = {**statefulset(1), "status": {"observedGeneration": 2, "replicas": 2}}
DELETED = {**pod("cache-1"), "metadata": {**pod("cache-1")["metadata"], "deletionTimestamp": ago(1)}}
DELETIONS: dict[str, tuple[Snapshot, str]] = {
    "a pod of a StatefulSet above its size": (observed(LOWERED, not_deleted(), pods=slots(0, 1)), f"{OF_SLOT}{KEEP}"),
    "a message of an earlier release about a deletion": (
        observed(LOWERED, not_deleted(verb="delete"), pods=slots(0, 1)),
        f"{OF_SLOT}{KEEP}",
    ),
    "a pod above the size that is being deleted": (observed(LOWERED, not_deleted(), pods=(*slots(0), DELETED)), ""),
    "a pod above the size, and no Event": (observed(LOWERED, of_slot(1), pods=slots(0, 1)), ""),
    "an old Event about a pod that is wanted now": (observed(statefulset(2), not_deleted(), pods=slots(0, 1)), ""),
    "a pod that has failed, and is not replaced": (
        replace(observed(statefulset(2), not_deleted(), pods=slots(0)), ended=typed(ENDED)),
        OF_SLOT,
    ),
    "pods of a Deployment above its size": (
        observed(deployment(1, UNDELETED, replicas=2, updatedReplicas=2)),
        f"{OF_POOL}{KEEP}",
    ),
    "pods of a Deployment above its size, with a newer Event": (
        observed(
            deployment(1, UNDELETED, replicas=2, updatedReplicas=2),
            not_deleted_of_replica_set("is odd"),
            of_replica_set("not this one", 1),
        ),
        f'Pods cannot be deleted: pods "cache-5d4f-…" is odd; {ALLOW}{KEEP}',
    ),
    "earlier pods of a rollout": (observed(deployment(2, UNDELETED, replicas=3, updatedReplicas=2)), OF_POOL),
    "pods of a paused Deployment above its size": (
        observed(paused(1, replicas=2, updatedReplicas=2), not_deleted_of_replica_set()),
        f"{OF_POOL}{KEEP}",
    ),
    "pods of the rollout of a paused Deployment": (
        observed(paused(2, UNDELETED, replicas=3, updatedReplicas=1), not_deleted_of_replica_set()),
        "",
    ),
    "a pod above the size, and one that is missing": (
        observed(LOWERED, not_deleted(), of_slot(0), pods=slots(1)),
        f'Pods cannot be created: pods "cache-0" {QUOTA}; {RAISE}; {OF_SLOT}{KEEP}',
    ),
    "a text about a deletion with control characters": (
        observed(LOWERED, not_deleted("is\nodd\x1b[31m"), pods=slots(0, 1)),
        f'Pods cannot be deleted: "pods \\"cache-1\\" is\\nodd\\u001b[31m"; {ALLOW}{KEEP}',
    ),
}


@pytest.mark.parametrize(
    ("snapshot", "expected"), [*FAILURES.values(), *DELETIONS.values()], ids=[*FAILURES, *DELETIONS]
)
def test_failure(snapshot: Snapshot, expected: str) -> None:
    assert "; ".join(problem.message for problem in creation.problems(snapshot, PodRules(""))) == expected


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (observed(statefulset(1), of_slot(0)), f'Pods cannot be created: pods "cache-0" {QUOTA}; {RAISE}'),
        (observed(LOWERED, not_deleted(), pods=slots(0, 1)), ""),
        (observed(deployment(1, UNDELETED, replicas=2, updatedReplicas=2)), ""),
        (
            observed(LOWERED, not_deleted(), of_slot(0), pods=slots(1)),
            f'Pods cannot be created: pods "cache-0" {QUOTA}; {RAISE}',
        ),
    ],
)
def test_rejected_deletion_does_not_prevent_a_creation(snapshot: Snapshot, expected: str) -> None:
    """Otherwise, no outdated slot would be replaced while a policy keeps a pod above the size."""
    assert creation.creation_failure(snapshot) == expected


def test_only_names_of_the_operator_are_kept_of_labels() -> None:
    """Anyone can set others, of any number."""
    assert released()["metadata"]["labels"] == LABELS


def test_loss_of_a_pod_that_is_deleted_instead() -> None:
    snapshot = observed(statefulset(), pods=slots(0, 2), taken=[released("app.kubernetes.io/name")])
    (problem,) = creation.problems(snapshot, PodRules("Memcached", loss="its items are then lost"))
    assert problem.message == f"{restoring('app.kubernetes.io/name=memcached')}; its items are then lost"


def test_reasons() -> None:
    snapshot = observed(statefulset(), of_slot(2), pods=slots(0), taken=[other()])
    assert [(each.reason, each.blocks) for each in creation.problems(snapshot, RULES)] == [
        ("Conflict", True),
        ("ApplyFailed", True),
    ]


OBSTACLES: dict[str, tuple[Object, bool]] = {
    "of nothing": ({}, True),
    "of another owner": ({"ownerReferences": [{"kind": "Job", "name": "a", "uid": "b", "controller": True}]}, True),
    "of the StatefulSet": ({"ownerReferences": [{"uid": "child", "controller": True}]}, False),
    "being deleted": ({"deletionTimestamp": ago(1)}, False),
}


@pytest.mark.parametrize(("meta", "expected"), OBSTACLES.values(), ids=OBSTACLES.keys())
def test_obstacle(meta: Object, expected: bool) -> None:
    assert bool(other(**meta)) is expected


@pytest.mark.parametrize(("generation", "expected"), [(2, True), (3, False)])
def test_controller_has_observed_the_spec(generation: int, expected: bool) -> None:
    live = statefulset()
    live["metadata"]["generation"] = generation
    assert creation.is_observed(STATEFULSETS, live) is expected


def test_controller_is_made_to_try_again_to_create_a_replica_set() -> None:
    """It has not stored that it has observed the spec, and gives up."""
    for conditions, expected in ((UNABLE, True), (FAILING, False)):
        live = deployment(conditions=conditions, observedGeneration=1)
        live["metadata"]["generation"] = 2
        assert creation.is_observed(DEPLOYMENTS, live) is expected


def test_excessive_size_is_not_enumerated() -> None:
    """Another client can set any number."""
    assert len(creation.missing_slots(observed(statefulset(2**31 - 1)))) == creation.MAX_SIZE


SUBJECTS = {
    "a slot": (of_slot(0), ("creat", "cache-0")),
    "a slot of an earlier release": (of_slot(1, verb="create"), ("creat", "cache-1")),
    "a deletion": (not_deleted(), ("delet", "cache-1")),
    "a ReplicaSet": (of_replica_set("is odd"), ("creat", "")),
    "a deletion of a ReplicaSet": (not_deleted_of_replica_set(), ("delet", "")),
    "another text": (event("no"), None),
}


@pytest.mark.parametrize(("obj", "expected"), SUBJECTS.values(), ids=SUBJECTS.keys())
def test_subjects_are_the_verb_and_the_pod(obj: Object, expected: tuple[str, str] | None) -> None:
    assert creation.subject(obj["message"]) == expected


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("cache", SLOTS, True),
        ("cache-5d4f", SLOTS, False),
        ("cache-5d4f", POOL, True),
        ("cache-a-5d4f", POOL, False),
        ("cache", POOL, False),
    ],
)
def test_replica_sets_of_a_deployment(name: str, key: Key, expected: bool) -> None:
    assert creation.is_about(name, key) is expected
