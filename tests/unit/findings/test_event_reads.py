"""Which objects are late, and which of their Events are kept."""

from dataclasses import replace

import pytest

from memcached_operator.findings.creation import MAX_PERIOD
from memcached_operator.findings.event_reads import (
    CREATION_PERIOD,
    MAX_PODS,
    MAX_SLOTS,
    RUNNING_PERIOD,
    VOLUME_PERIOD,
    Late,
    late,
)
from memcached_operator.findings.volumes.mounts import READ_PERIOD, RECENT, failures
from memcached_operator.kube.resource import Object
from memcached_operator.world.snapshot import NO_MESSAGES, Snapshot
from unit.builders import NOW, container, deployment, memcached, pod, snapshot_of, typed, waiting
from unit.findings import test_creation
from unit.findings.test_creation import FAILING, LOWERED, POOL, SLOTS, observed, slots, statefulset
from unit.findings.test_mounts import (
    AUTH,
    CREATING,
    DELETED,
    NOT_FOUND,
    OLD_SERVER,
    OPTIONAL,
    REBOOTED,
    RULES,
    TIMED_OUT,
    TOKEN,
    ago,
    event,
    messages,
    running,
    stuck,
    with_status,
    without,
)
from unit.findings.test_pulls import IMAGE, MANY, backing_off, pulled

WAITING, HEALTHY = [("sessions-0", 0.0, READ_PERIOD, True)], [("sessions-0", 0.0, RUNNING_PERIOD, False)]
PODS: dict[str, tuple[list[Object], list[tuple[str, float, float, bool]]]] = {
    "no pods": ([], []),
    "no volumes": ([pod()], []),
    "no volumes of Secrets": ([stuck("a", TOKEN)], []),
    "an optional Secret": ([stuck("a", OPTIONAL)], []),
    "a pod that is not scheduled": ([without(stuck(), "PodScheduled")], []),
    "a pod that is being deleted": ([DELETED], []),
    "a completed pod": ([with_status(stuck(), phase="Failed")], []),
    "a normal start": ([stuck(since=3)], [("sessions-0", VOLUME_PERIOD - 3, READ_PERIOD, True)]),
    "a waiting pod": ([stuck()], WAITING),
    "a volume of a Secret": ([stuck("sessions-0", AUTH)], WAITING),
    "no container status yet": ([stuck(statuses=())], WAITING),
    "a container without a state": ([stuck(statuses=(container({}),))], WAITING),
    "an init container": ([with_status(stuck(), initContainerStatuses=[waiting("PodInitializing")])], WAITING),
    "an init container that ran": (
        [with_status(stuck(), initContainerStatuses=[container({"terminated": {"exitCode": 0}})])],
        [],
    ),
    "a container that waits for its image": ([stuck(statuses=(waiting("ImagePullBackOff"),))], []),
    "a pod that pulls its image": ([with_status(running(), containerStatuses=[CREATING])], HEALTHY),
    "a restarted node": ([REBOOTED], [("sessions-0", VOLUME_PERIOD - 4, READ_PERIOD, True)]),
    "a clock that is ahead": ([stuck(since=-30)], [("sessions-0", VOLUME_PERIOD, READ_PERIOD, True)]),
    "the pods that wait longest": (
        [stuck("d", since=20), stuck("c", since=30), stuck("b", since=40), stuck("a", since=5)],
        [(name, 0.0, READ_PERIOD, True) for name in ("b", "c", "d")],
    ),
    "running pods": ([running("sessions-1"), running()], HEALTHY),
    "a running and a waiting pod": ([running("sessions-1"), stuck()], WAITING),
    "a running pod without conditions": (
        [with_status(OLD_SERVER, containerStatuses=[container({"running": {"startedAt": ago(60)}})])],
        HEALTHY,
    ),
    "an image without an error": ([backing_off(IMAGE), pod("healthy")], [("cache-1", 0.0, READ_PERIOD, True)]),
    "many of them": (MANY[::-1], [(uid, 0.0, READ_PERIOD, True) for uid in ("9", "8", "7")]),
}


def rows(*pods: Object, reason: str = "AsExpected", events: tuple[Object, ...] = ()) -> list[Late]:
    """The late ones of these pods. `reason`: that of the status. `events`: those that are known."""
    status = {"conditions": [{"type": "Degraded", "reason": reason}]}
    return late(snapshot_of({**memcached(), "status": status}, pods=pods), messages(*events), NOW)


@pytest.mark.parametrize(("pods", "expected"), PODS.values(), ids=PODS.keys())
def test_pods_that_wait_for_secrets_or_images_are_late(
    pods: list[Object], expected: list[tuple[str, float, float, bool]]
) -> None:
    found = rows(*pods)
    assert [(each.uid, each.after, each.period, each.urgent) for each in found] == expected
    assert len(found) <= MAX_PODS
    assert not any(each.reported for each in found)


def test_reported_problem_of_a_running_pod_is_read_at_once() -> None:
    (found,) = rows(running(), reason="SecretUnavailable")
    assert (found.urgent, found.period, found.reported) == (True, READ_PERIOD, True)


def test_problem_of_a_running_pod_is_read_until_it_expires() -> None:
    """Also while another pod waits, because the status would else not contain it for a while."""
    (failure,) = failures(typed(running()), messages(event(seen=100)), NOW, RULES)
    assert failure.clears_in == RECENT - 100
    found = rows(running(), stuck("sessions-1"), events=(event(seen=100),))
    assert [(each.uid, each.urgent) for each in found] == [("sessions-1", True), ("sessions-0", True)]
    assert [each.urgent for each in rows(running(), events=(event(seen=RECENT),))] == [False]


def test_pod_with_several_causes_is_late_once() -> None:
    both = {**running(), "metadata": backing_off(IMAGE)["metadata"]}
    both = with_status(both, containerStatuses=backing_off(IMAGE)["status"]["containerStatuses"])
    (found,) = rows(both, reason="ImageUnavailable")
    assert (found.images, found.urgent, found.reported) == ({IMAGE}, True, True)
    assert found.source.fields.format(found.uid) == "involvedObject.uid=cache-1,source=kubelet,type=Warning"
    texts = [NOT_FOUND, TIMED_OUT, pulled(IMAGE, "no")["message"], pulled("other", "no")["message"], "Unhealthy"]
    assert [found.source.subject(text, "", found) is not None for text in texts] == [True, True, True, False, False]


SET, SETS = "involvedObject.uid=child,type=Warning", "involvedObject.kind=ReplicaSet,type=Warning"
WORKLOADS: dict[str, tuple[Snapshot, str, tuple[str, ...]]] = {
    "no workload": (observed(None), "", ()),
    "all pods exist": (observed(statefulset(), pods=slots(0, 1, 2)), "", ()),
    "the workload is being deleted": (observed(statefulset(deletionTimestamp=ago(1))), "", ()),
    "the pod of a slot is being deleted": (observed(statefulset(2), pods=(*slots(0), test_creation.DELETED)), "", ()),
    "slots": (observed(statefulset(9), pods=slots(1, 3)), SET, ("cache-0", "cache-2", "cache-4")),
    "a slot above the size": (observed(LOWERED, pods=slots(0, 1)), SET, ()),
    "a Deployment": (observed(deployment()), "", ()),
    "a Deployment that cannot create pods": (observed(deployment(conditions=FAILING)), SETS, ()),
    "a paused Deployment": (observed(test_creation.paused(replicas=3)), "", ()),
    "a paused Deployment that lacks a pod": (observed(test_creation.paused(replicas=2)), SETS, ()),
    "a Deployment that cannot delete pods": (observed(deployment(1, test_creation.UNDELETED)), SETS, ()),
}


@pytest.mark.parametrize(("snapshot", "fields", "names"), WORKLOADS.values(), ids=WORKLOADS.keys())
def test_workload_that_lacks_pods_or_keeps_them_is_late(
    snapshot: Snapshot, fields: str, names: tuple[str, ...]
) -> None:
    found = late(snapshot, NO_MESSAGES, NOW)
    assert [(each.source.fields.format(each.uid), each.slots) for each in found] == (
        [(fields, names)] if fields else []
    )
    for each in found:
        assert (each.after, each.period, each.max_period, each.retry_after) == (CREATION_PERIOD, 60, MAX_PERIOD, 60)
        assert each.workload in (SLOTS, POOL)
        assert len(each.slots) <= MAX_SLOTS


@pytest.mark.parametrize("reason", ["ApplyFailed", "Conflict"])
def test_reported_cause_of_missing_pods_is_read_at_once(reason: str) -> None:
    status = {"conditions": [{"type": "Degraded", "reason": reason}]}
    (found,) = late(replace(observed(statefulset()), cr={**memcached(), "status": status}), NO_MESSAGES, NOW)
    assert (found.reported, found.after) == (True, 0)


def test_only_events_about_the_workload_are_needed() -> None:
    (found,) = late(observed(deployment(conditions=FAILING)), NO_MESSAGES, NOW)
    text = test_creation.of_replica_set("is odd")["message"]
    names = ("cache-5d4f", "cache-a-5d4f")
    assert [found.source.subject(text, name, found) is not None for name in names] == [True, False]
