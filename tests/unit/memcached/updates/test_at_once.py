"""Several slots at once: never more than the limit are changed or not ready because of the operator."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import pytest
from msgspec.structs import replace

from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.decision import UpdateDecision, decide
from memcached_operator.memcached.updates.record import UpdateRecord
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, typed
from unit.memcached.updates.updating import (
    ARGS,
    ARGUMENTS,
    GATE,
    LATER,
    MEMORY,
    NEW,
    RULES,
    created,
    ended,
    just_unready,
    recorded,
    statefulset,
    template,
    with_condition,
    with_limit,
    with_status,
)

GATED: Final = {GATE: "timeout=7200"}
BEFORE: Final = template(annotations=GATED)
AFTER: Final = template("b", annotations=GATED)
WITHOUT_GATE: Final = template("b")
ARGUED: Final = template(annotations={ARGS: "-c 2", MEMORY: "64"})
RAISED: Final = template(annotations=GATED, limit="256Mi")
BEGUN: Final = UpdateRecord(NEW, LATER, amounts={"memcached": {"limits": {"memory": "128Mi"}}})
PULL: Final = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}


def updated(target: Object, slot: int = 3, record: UpdateRecord | None = None) -> Object:
    """A pod that has been updated, and is not ready yet."""
    return just_unready(created(slot, target, NEW, record, ready=None))


def outdated(*slots: int) -> list[Object]:
    """Pods of the template before."""
    return [created(slot, BEFORE) for slot in slots]


def born(pod: Object, at: str) -> Object:
    """A pod that was created then."""
    return {**pod, "metadata": {**pod["metadata"], "creationTimestamp": at}}


def deleted(pod: Object) -> Object:
    """A pod that is being deleted."""
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": LATER}}


def begun(*slots: int, revision: str = NEW) -> list[Object]:
    """Pods whose resize to a revision has begun."""
    return [created(slot, BEFORE, record=replace(BEGUN, revision=revision)) for slot in slots]


FAILING: Final = with_status(updated(AFTER), ready=False, lastState=ended(1))
COLD: Final = [just_unready(created(slot, BEFORE, ready=None)) for slot in range(4)]
COLD_FOURTH: Final = created(3, WITHOUT_GATE, NEW, ready=None)
ENDED: Final = with_status(COLD[0], state={"terminated": {"exitCode": 1}})
RESTARTING: Final = UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS})
RESIZED: Final = with_limit(created(3, BEFORE, record=BEGUN), "256Mi")
FOURTH: dict[str, tuple[Object, Object, str]] = {
    "warms up": (AFTER, updated(AFTER), "cache-2 deleted"),
    "is deleted": (AFTER, deleted(FAILING), "cache-2 deleted"),
    "has crashed": (AFTER, FAILING, ""),
    "cannot pull its image": (AFTER, with_status(updated(AFTER), ready=False, state=PULL), ""),
    "has warmed up for an hour, of two": (AFTER, created(3, AFTER, NEW, ready=None), "cache-2 deleted"),
    "has not been ready for an hour": (WITHOUT_GATE, COLD_FOURTH, ""),
    "has not been ready for 10 minutes": (WITHOUT_GATE, just_unready(COLD_FOURTH, "2030-01-01T11:50:00Z"), ""),
    "has not been ready for a second less": (
        WITHOUT_GATE,
        just_unready(COLD_FOURTH, "2030-01-01T11:50:01Z"),
        "cache-2 deleted",
    ),
    "is not ready, and was created a minute ago": (WITHOUT_GATE, born(COLD_FOURTH, LATER), "cache-2 deleted"),
    "is not ready, and was updated a minute ago": (
        WITHOUT_GATE,
        created(3, WITHOUT_GATE, NEW, UpdateRecord(NEW, LATER), ready=None),
        "cache-2 deleted",
    ),
    "restarts": (ARGUED, created(3, ARGUED, NEW, RESTARTING), "cache-2 updated"),
    "does not restart": (ARGUED, created(3, ARGUED, NEW, replace(RESTARTING, since="")), ""),
    "is being resized": (RAISED, RESIZED, "cache-2 updated"),
    "cannot be resized": (RAISED, with_condition(RESIZED, "PodResizePending", reason="Deferred"), ""),
}
"""The fourth pod beside three that are outdated and ready, and the next step."""
STATES: dict[str, tuple[Object, list[Object], str]] = {
    **{f"one {state}": (target, [*outdated(0, 1, 2), pod], then) for state, (target, pod, then) in FOURTH.items()},
    "all are ready": (AFTER, outdated(0, 1, 2, 3), "cache-3 deleted"),
    "one has no pod": (AFTER, outdated(0, 1, 2), "cache-2 deleted"),
    "two have no pod": (AFTER, outdated(0, 1), ""),
    "two warm up": (AFTER, [*outdated(0, 1), updated(AFTER), updated(AFTER, 2)], ""),
    "one warms up, and one has no pod": (AFTER, [*outdated(0, 1), updated(AFTER)], ""),
    "two have begun": (RAISED, [*outdated(2, 3), *begun(0, 1)], "cache-1 resized"),
    "three have begun, when more were allowed": (RAISED, [*outdated(3), *begun(0, 1, 2)], "cache-2 resized"),
    "two have begun another update": (AFTER, [*outdated(2, 3), *begun(0, 1, revision="cache-bad")], "cache-1 deleted"),
    "one is not ready": (AFTER, [*outdated(1, 2, 3), COLD[0]], "cache-0 deleted"),
    "two are not ready": (AFTER, [*outdated(2, 3), *COLD[:2]], "cache-1 deleted"),
    "three are not ready": (AFTER, [*outdated(3), *COLD[:3]], ""),
    "one of three that are not ready has ended": (AFTER, [*outdated(3), *COLD[1:3], ENDED], "cache-0 deleted"),
    "one that has ended waits for two that are replaced": (AFTER, [*outdated(1), ENDED], ""),
}


@pytest.mark.parametrize(("target", "pods", "expected"), STATES.values(), ids=STATES.keys())
def test_next_of_four_slots_of_which_two_may_be_unavailable(target: Object, pods: list[Object], expected: str) -> None:
    found = decide(statefulset(target, 4), typed(*pods), RULES, Resize.ANY, NOW, limit=2)
    assert found is not None
    step = found.step
    assert (f"{step.pod.name} {step.verb}" if step else "") == expected, recorded(step and step.patch)


RESTARTS: Final = UpdateRecord("cache-middle", LATER, {"memcached": ARGUMENTS})
FLYING: Final = created(1, template(annotations=GATED | {ARGS: "-c 2"}), "cache-middle", RESTARTS)
STOPPED: Final = with_status(COLD[3], state={"terminated": {"exitCode": 1}}, ready=False)
LANDED: Final = with_status(FLYING, containerID="id-2")
IN_FLIGHT: dict[str, tuple[Object, list[Object], int, str]] = {
    "it is next itself": (AFTER, [FLYING, *outdated(0, 2)], 1, "cache-1 deleted"),
    "another slot may follow": (AFTER, [FLYING, *outdated(0, 2)], 2, "cache-2 deleted"),
    "it was seen": (AFTER, [LANDED, *outdated(0, 2)], 1, "cache-2 deleted"),
    "it is not waited for any more": (
        AFTER,
        [created(1, BEFORE, "cache-middle", replace(RESTARTS, since="")), *outdated(0, 2)],
        1,
        "cache-2 deleted",
    ),
    "another slot does not run": (AFTER, [FLYING, *outdated(0, 2), STOPPED], 1, ""),
    "another slot does not run, and two may change": (AFTER, [FLYING, *outdated(0, 2), STOPPED], 2, "cache-3 deleted"),
}


@pytest.mark.parametrize(("target", "pods", "limit", "expected"), IN_FLIGHT.values(), ids=IN_FLIGHT.keys())
def test_slot_that_is_about_to_restart_counts_for_a_change_that_needs_new_pods(
    target: Object, pods: list[Object], limit: int, expected: str
) -> None:
    """Its earlier step is in flight: the kubelet may restart it at any moment."""
    found = decide(statefulset(target, len(pods)), typed(*pods), RULES, Resize.ANY, NOW, limit=limit)
    assert found is not None
    assert (f"{found.step.pod.name} {found.step.verb}" if found.step else "") == expected
    assert found.requeue_after == (60 if FLYING in pods else None)


REJECTED: dict[str, tuple[Object, list[Object], str, dict[str, str]]] = {
    "a pod to be replaced": (AFTER, outdated(0, 1, 2), "", {"cache-3": "cannot be created"}),
    "a pod that does not run": (AFTER, [*outdated(0, 1, 2), STOPPED], "", {}),
    "a pod that is updated in place": (
        ARGUED,
        outdated(0, 1, 2),
        "cache-2 updated",
        {"cache-2": "is being updated", "cache-3": "cannot be created"},
    ),
}


@pytest.mark.parametrize(("target", "pods", "expected", "doing"), REJECTED.values(), ids=REJECTED.keys())
def test_no_pod_is_deleted_while_the_cluster_rejects_new_pods(
    target: Object, pods: list[Object], expected: str, doing: dict[str, str]
) -> None:
    found = decide(statefulset(target, 4), typed(*pods), RULES, Resize.ANY, NOW, limit=4, creates_pods=False)
    assert found is not None
    assert (f"{found.step.pod.name} {found.step.verb}" if found.step else "") == expected
    assert (found.doing, found.complete, found.problems) == (doing, False, ())
    assert found.requeue_after == (None if expected else 60)


@pytest.mark.parametrize(("limit", "rounds"), [(1, 100), (5, 20), (10, 10)])
def test_rounds_of_100_slots(limit: int, rounds: int) -> None:
    """Each new pod exists after 20 s, and is warm after 40 s more."""
    pods = {slot: created(slot, BEFORE) for slot in range(100)}
    left: dict[int, int] = {}  # ticks until a slot is warm again
    started: set[datetime] = set()
    now = NOW
    while not (found := _decided(pods.values(), limit, now)).complete:
        if found.step is not None:
            slot = int(found.step.pod.name.removeprefix("cache-"))
            del pods[slot]
            left[slot] = 3
            started.add(now)
            assert len(left) <= limit
            continue
        now += timedelta(seconds=20)
        for slot, ticks in left.items():
            cold = just_unready(created(slot, AFTER, NEW), timestamp(now))
            pods[slot] = cold if ticks > 1 else created(slot, AFTER, NEW, ready=timestamp(now))
        left = {slot: ticks - 1 for slot, ticks in left.items() if ticks > 1}
    assert len(started) == rounds


def _decided(pods: Iterable[Object], limit: int, now: datetime) -> UpdateDecision:
    found = decide(statefulset(AFTER, 100), typed(*pods), RULES, Resize.ANY, now, limit=limit)
    assert found is not None
    return found
