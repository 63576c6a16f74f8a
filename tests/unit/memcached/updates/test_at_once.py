"""Several slots at once: never more than the limit are changed or not ready because of the operator."""

import random
from datetime import datetime, timedelta
from typing import Final

import pytest
from msgspec.structs import replace

from memcached_operator.kind import PodStep, Resize
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.decision import UpdateDecision, decide
from memcached_operator.memcached.updates.observed import runs
from memcached_operator.memcached.updates.record import UpdateRecord, annotation
from memcached_operator.workloads.pods import condition_of
from memcached_operator.workloads.rollout import PROGRESS_DEADLINE
from unit.builders import NOW
from unit.memcached.updates.fleet import Fleet
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
from unit.memcached.updates.world import IMAGES, random_template

WALKS: Final = 10
FAULTY_TICKS: Final = 25
MAX_DECISIONS: Final = 1500


def check(fleet: Fleet, step: PodStep) -> None:
    """A step on one more slot keeps the limit, and so does one on a ready pod whose update has begun."""
    if step.patch == {"metadata": {"annotations": annotation(None)}}:
        return  # an update is completed, or its record was not valid
    name = step.pod["metadata"]["name"]
    world, others = fleet.worlds[name], fleet.affected() - {name}
    assert world.unready or world.begun or len(others) < fleet.limit, (name, others, fleet.limit)
    others = fleet.unready() - {name}
    lost = not runs(world.pod, "memcached") or unready_for(fleet, name) >= PROGRESS_DEADLINE
    assert lost or not disturbs(step) or len(others) < fleet.limit, (name, others, fleet.limit)


def unready_for(fleet: Fleet, name: str) -> timedelta:
    """The time for which a pod has not been ready."""
    ready = condition_of(fleet.worlds[name].pod, "Ready")
    since = datetime.fromisoformat(ready["lastTransitionTime"])
    return timedelta() if ready["status"] == "True" else fleet.now - since


def disturbs(step: PodStep) -> bool:
    """Whether a step stops memcached: it deletes the pod, or changes an image or the arguments."""
    patch = step.patch or {}
    return not patch or "image" in str(patch.get("spec")) or ARGS in patch.get("metadata", {}).get("annotations", {})


def walk(fleet: Fleet, faults: float, second: bool) -> UpdateDecision:
    """Update the pods while slots fail, and then until nothing happens any more; returns the last decision."""
    ticks = 0
    found = fleet.decide()
    for _ in range(MAX_DECISIONS):
        if found.step is not None:
            check(fleet, found.step)
            fleet.write(found.step)
        elif found.complete and not found.requeue_after and ticks > FAULTY_TICKS:
            break
        else:
            fleet.pass_time(faults if ticks < FAULTY_TICKS else 0)
            ticks += 1
            if second and ticks == FAULTY_TICKS // 3:
                fleet.set_target(random_template(fleet.chance))
            if second and ticks == FAULTY_TICKS // 2:
                fleet.set_target(random_template(fleet.chance, IMAGES[:2]))
                fleet.limit = fleet.chance.randint(2, len(fleet.worlds))
        found = fleet.decide()
    return found


@pytest.mark.parametrize("seed", range(8))
def test_walks_keep_the_limit_and_end(seed: int) -> None:
    """Slots fail, the template and the limit change; when that is over, the update is completed."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(WALKS):
        size = chance.randint(2, 8)
        target = random_template(chance, IMAGES[:2])
        fleet = Fleet(chance, size, chance.randint(2, size), target, forged=False)
        fleet.start_from(random_template(chance, IMAGES[:2]))
        found = walk(fleet, chance.choice((0.0, 0.02, 0.1)), second=chance.random() < 0.6)
        assert found.complete, (found, [(n, w.unready) for n, w in fleet.worlds.items()])


@pytest.mark.parametrize("seed", range(8))
def test_walks_from_any_state_keep_the_limit(seed: int) -> None:
    """Also with forged records, nodes without room, images that are missing, and kubelets that do not act."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(WALKS):
        size = chance.randint(2, 8)
        fleet = Fleet(chance, size, chance.randint(2, size), random_template(chance), forged=True)
        found = walk(fleet, chance.choice((0.0, 0.02, 0.1)), second=chance.random() < 0.5)
        waits = any(world.unready or world.asleep for world in fleet.worlds.values())
        assert found.complete or found.problems or waits, found


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


FAILING: Final = with_status(updated(AFTER), ready=False, lastState=ended(1))
COLD: Final = [just_unready(created(slot, BEFORE, ready=None)) for slot in range(4)]
STATES: dict[str, tuple[Object, list[Object], str]] = {
    "all are ready": (AFTER, outdated(0, 1, 2, 3), "cache-3 deleted"),
    "one has no pod": (AFTER, outdated(0, 1, 2), "cache-2 deleted"),
    "two have no pod": (AFTER, outdated(0, 1), ""),
    "one warms up": (AFTER, [*outdated(0, 1, 2), updated(AFTER)], "cache-2 deleted"),
    "two warm up": (AFTER, [*outdated(0, 1), updated(AFTER), updated(AFTER, 2)], ""),
    "one warms up, and one has no pod": (AFTER, [*outdated(0, 1), updated(AFTER)], ""),
    "one is deleted": (
        AFTER,
        [*outdated(0, 1, 2), {**FAILING, "metadata": {**FAILING["metadata"], "deletionTimestamp": LATER}}],
        "cache-2 deleted",
    ),
    "one has crashed": (AFTER, [*outdated(0, 1, 2), FAILING], ""),
    "one cannot pull its image": (
        AFTER,
        [*outdated(0, 1, 2), with_status(updated(AFTER), ready=False, state=PULL)],
        "",
    ),
    "one has warmed up for an hour, of two": (
        AFTER,
        [*outdated(0, 1, 2), created(3, AFTER, NEW, ready=None)],
        "cache-2 deleted",
    ),
    "one has not been ready for an hour": (
        WITHOUT_GATE,
        [*outdated(0, 1, 2), created(3, WITHOUT_GATE, NEW, ready=None)],
        "",
    ),
    "one has not been ready for 10 minutes": (
        WITHOUT_GATE,
        [*outdated(0, 1, 2), just_unready(created(3, WITHOUT_GATE, NEW), "2030-01-01T11:50:00Z")],
        "",
    ),
    "one has not been ready for a second less": (
        WITHOUT_GATE,
        [*outdated(0, 1, 2), just_unready(created(3, WITHOUT_GATE, NEW), "2030-01-01T11:50:01Z")],
        "cache-2 deleted",
    ),
    "one that is not ready was created a minute ago": (
        WITHOUT_GATE,
        [*outdated(0, 1, 2), born(created(3, WITHOUT_GATE, NEW, ready=None), LATER)],
        "cache-2 deleted",
    ),
    "one that is not ready was updated a minute ago": (
        WITHOUT_GATE,
        [*outdated(0, 1, 2), created(3, WITHOUT_GATE, NEW, UpdateRecord(NEW, LATER), ready=None)],
        "cache-2 deleted",
    ),
    "one restarts": (
        ARGUED,
        [*outdated(0, 1, 2), created(3, ARGUED, NEW, UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS}))],
        "cache-2 updated",
    ),
    "one does not restart": (
        ARGUED,
        [*outdated(0, 1, 2), created(3, ARGUED, NEW, UpdateRecord(NEW, "", {"memcached": ARGUMENTS}))],
        "",
    ),
    "one is being resized": (
        RAISED,
        [*outdated(0, 1, 2), with_limit(created(3, BEFORE, record=BEGUN), "256Mi")],
        "cache-2 updated",
    ),
    "one cannot be resized": (
        RAISED,
        [
            *outdated(0, 1, 2),
            with_condition(
                with_limit(created(3, BEFORE, record=BEGUN), "256Mi"), "PodResizePending", reason="Deferred"
            ),
        ],
        "",
    ),
    "two have begun": (
        RAISED,
        [*outdated(2, 3), *(created(slot, BEFORE, record=BEGUN) for slot in (0, 1))],
        "cache-1 resized",
    ),
    "three have begun, when more were allowed": (
        RAISED,
        [*outdated(3), *(created(slot, BEFORE, record=BEGUN) for slot in (0, 1, 2))],
        "cache-2 resized",
    ),
    "two have begun another update": (
        AFTER,
        [*outdated(2, 3), *(created(slot, BEFORE, record=replace(BEGUN, revision="cache-bad")) for slot in (0, 1))],
        "cache-1 deleted",
    ),
    "one is not ready": (AFTER, [*outdated(1, 2, 3), COLD[0]], "cache-0 deleted"),
    "two are not ready": (AFTER, [*outdated(2, 3), *COLD[:2]], "cache-1 deleted"),
    "three are not ready": (AFTER, [*outdated(3), *COLD[:3]], ""),
    "one of three that are not ready has ended": (
        AFTER,
        [*outdated(3), *COLD[1:3], with_status(COLD[0], state={"terminated": {"exitCode": 1}})],
        "cache-0 deleted",
    ),
    "one that has ended waits for two that are replaced": (
        AFTER,
        [*outdated(1), with_status(COLD[0], state={"terminated": {"exitCode": 1}})],
        "",
    ),
}


@pytest.mark.parametrize(("target", "pods", "expected"), STATES.values(), ids=STATES.keys())
def test_next_of_four_slots_of_which_two_may_be_unavailable(target: Object, pods: list[Object], expected: str) -> None:
    found = decide(statefulset(target, 4), pods, RULES, Resize.ANY, NOW, limit=2)
    assert found is not None
    step = found.step
    assert (f"{step.pod['metadata']['name']} {step.verb}" if step else "") == expected, recorded(step and step.patch)


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
    found = decide(statefulset(target, len(pods)), pods, RULES, Resize.ANY, NOW, limit=limit)
    assert found is not None
    assert (f"{found.step.pod['metadata']['name']} {found.step.verb}" if found.step else "") == expected
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
    found = decide(statefulset(target, 4), pods, RULES, Resize.ANY, NOW, limit=4, creates_pods=False)
    assert found is not None
    assert (f"{found.step.pod['metadata']['name']} {found.step.verb}" if found.step else "") == expected
    assert (found.doing, found.complete, found.problems) == (doing, False, ())
    assert found.requeue_after == (None if expected else 60)


@pytest.mark.parametrize(("limit", "rounds"), [(1, 100), (5, 20), (10, 10)])
def test_rounds_of_100_slots(limit: int, rounds: int) -> None:
    """Each new pod exists after 20 s, and is warm after 40 s more."""
    fleet = Fleet(random.Random(0), 100, limit, AFTER, forged=False)  # noqa: S311 - no secret
    fleet.start_from(BEFORE)
    started: set[datetime] = set()
    while not (found := fleet.decide()).complete:
        if found.step is None:
            fleet.pass_time(0)
            continue
        started.add(fleet.now)
        fleet.write(found.step)
        world = fleet.worlds[found.step.pod["metadata"]["name"]]
        world.absent, world.cold = 1, 2
        assert len(fleet.affected()) <= limit
    assert len(started) == rounds
