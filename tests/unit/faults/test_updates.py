"""What follows from the states of pods, in the order in which the API server stored them."""

from typing import Any

import pytest

from faults.campaigns.updates.ledger import PREFIX, REVISION, Ledger, Work, mismatch
from memcached_operator.kube.resource import Object

OLD, NEW = "cache-old", "cache-new"


def pod(slot: int, version: int, **changes: Any) -> Object:
    """A pod that is ready. `changes`: image, args, revision, uid, ready, restarts, memory (its limit), deleted."""
    given = {"image": "a:1", "args": "-m 64", "revision": OLD, "uid": f"uid-{slot}", "ready": True, "restarts": 0}
    found = {**given, "memory": "64Mi", "deleted": False, **changes}
    deleted: Object = {"deletionTimestamp": "2026-11-23T19:00:00Z"} if found["deleted"] else {}
    container = {"name": "memcached", "image": found["image"], "resources": {"limits": {"memory": found["memory"]}}}
    return {
        "metadata": {
            **deleted,
            "name": f"cache-{slot}",
            "uid": found["uid"],
            "resourceVersion": str(version),
            "labels": {REVISION: found["revision"]},
            "annotations": {f"{PREFIX}args": found["args"]},
        },
        "spec": {"containers": [container]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if found["ready"] else "False"}],
            "containerStatuses": [{"name": "memcached", "containerID": f"simulated://a-{found['restarts']}"}],
        },
    }


def ledger(*pods: Object) -> Ledger:
    """The ledger of these states, after those of three pods that are ready."""
    found = Ledger()
    for each in (*(pod(slot, 1 + slot) for slot in range(3)), *pods):
        found.record("MODIFIED", each)
    return found


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"image": "a:2"}, "image memcached"),
        ({"args": "-m 128", "revision": NEW}, "args, label"),
        ({"revision": NEW}, "label"),
        ({"memory": "128Mi"}, "resources"),
        ({"deleted": True}, "delete"),
        ({"ready": False, "restarts": 1}, ""),
    ],
)
def test_steps_are_what_an_update_changes(changes: dict[str, Any], what: str) -> None:
    found = ledger(pod(2, 10, **changes))
    assert [str(step) for step in found.steps()] == ([f"slot 2: {what}"] if what else [])
    assert found.changes() == ([] if what == "label" else found.steps())
    found.own.add(10)
    assert found.steps() == [], "a write of the test"


def test_pod_without_its_finalizer_is_deleted_once() -> None:
    found = ledger(pod(2, 10, deleted=True))
    found.record("DELETED", pod(2, 11, deleted=True))
    found.record("ADDED", pod(2, 12, uid="other"))
    assert found.count(2, "delete") == 1
    assert found.uids(2) == ["uid-2", "other"]
    assert found.uids(2, since=11) == ["uid-2", "other"]
    assert found.uids(2, since=12) == ["other"]


def test_restarts_are_counted_in_the_same_pod() -> None:
    found = ledger(pod(2, 10, restarts=1), pod(2, 11, uid="other", restarts=7), pod(2, 12, uid="other", restarts=8))
    assert found.restarts(2) == {"memcached": 2}
    assert found.restarts(2, since=10) == {"memcached": 1}
    assert found.restarts(1) == {}


@pytest.mark.parametrize(
    ("before", "grace", "problem"),
    [
        ([], 0, ""),
        ([pod(1, 8, ready=False)], 0, "slot 1 was not ready"),
        ([pod(1, 8, ready=False)], 3, ""),
        ([pod(1, 8, deleted=True)], 0, "slot 1 was not ready"),
        ([pod(1, 8, ready=False), pod(1, 9)], 0, ""),
    ],
)
def test_other_slots_must_be_ready_unless_the_operator_cannot_know_it_yet(
    before: list[Object], grace: float, problem: str
) -> None:
    found = ledger(*before, pod(2, 10, image="a:2"), pod(1, 11, ready=False))
    assert found.problem(found.changes()[-1], range(3), grace) == problem


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (Work(1, 8), "slot 1 was still being changed"),
        (Work(1, 8, 12), "slot 1 was still being changed"),
        (Work(1, 8, 9), ""),
        (Work(1, 11), ""),
        (Work(2, 8), ""),
    ],
)
def test_other_slots_must_not_be_changing(work: Work, problem: str) -> None:
    found = ledger(pod(2, 10, image="a:2"))
    found.work.append(work)
    assert found.problem(found.changes()[-1], range(3)) == problem


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        ({"image": "a:2"}, "cache-2: image"),
        ({"memory": "1Gi"}, "cache-2: resources"),
        ({"args": "-m 1"}, "cache-2: annotation args"),
        ({"revision": NEW}, "cache-2: revision"),
    ],
)
def test_pod_is_compared_with_its_template(changes: dict[str, Any], text: str) -> None:
    workload = {"spec": {"template": pod(0, 1)}, "status": {"updateRevision": OLD}}
    found = mismatch(pod(2, 1, **changes), workload)
    assert found.startswith(text)
    assert bool(found) == bool(text)
