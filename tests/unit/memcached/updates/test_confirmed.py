"""Whether an update in place is in effect in a pod, and for how long the pod waits for it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.record import LONG_AGO, Ran, UpdateRecord, age
from unit.builders import NOW
from unit.memcached.updates.test_steps import BEFORE, changed, kind
from unit.memcached.updates.updating import (
    ARGS,
    ARGUMENTS,
    GATE,
    IMAGE,
    JUST_NOW,
    LATER,
    MEMORY,
    NEW,
    READY_SINCE,
    created,
    decided,
    ended,
    facts,
    recorded,
    with_restart,
    with_status,
)

RESTARTS = "is restarting and keeps its items"
CONFIRMED: dict[str, tuple[Ran, Callable[[Object], Object], str, float | None]] = {
    "not restarted": (IMAGE, lambda pod: pod, RESTARTS, 570),
    "its count has changed, but it is the same": (IMAGE, lambda pod: with_status(pod, restartCount=7), RESTARTS, 570),
    "its count was reset": (IMAGE, lambda pod: with_restart(pod, restartCount=0), "", None),
    "another image": (IMAGE, lambda pod: with_restart(pod, JUST_NOW, imageID="sha-memcached:2"), "", None),
    "the same image for 3 s": (IMAGE, lambda pod: with_restart(pod, JUST_NOW), RESTARTS, 7),
    "the same image for 9 s": (IMAGE, lambda pod: with_restart(pod, "2030-01-01T11:59:51Z"), RESTARTS, 1),
    "the same image for 10 s": (IMAGE, lambda pod: with_restart(pod, "2030-01-01T11:59:50Z"), "", None),
    "the same image for a minute": (IMAGE, with_restart, "", None),
    "no image is reported": (IMAGE, lambda pod: with_restart(pod, JUST_NOW, imageID=""), RESTARTS, 7),
    "no time is reported": (IMAGE, lambda pod: with_restart(pod, ""), "", None),
    "another image than that of two changes": (Ran("id-1"), lambda pod: with_restart(pod, JUST_NOW), RESTARTS, 7),
    "it does not run": (IMAGE, lambda pod: with_restart(pod, state={"waiting": {}}), RESTARTS, 570),
    "no container is reported": (IMAGE, lambda pod: with_status(pod, containerID=""), RESTARTS, 570),
    "new arguments for 3 s": (ARGUMENTS, lambda pod: with_restart(pod, JUST_NOW), RESTARTS, 7),
    "new arguments": (ARGUMENTS, with_restart, "", None),
    "new arguments after a crash, ready": (ARGUMENTS, lambda pod: with_restart(pod, code=1), "", None),
    "new arguments after a second restart": (
        ARGUMENTS,
        lambda pod: with_restart(pod, lastState=ended(0, "id-x")),
        "",
        None,
    ),
    "the record of the end is lost": (ARGUMENTS, lambda pod: with_restart(pod, lastState={}), "", None),
}


@pytest.mark.parametrize(("ran", "then", "doing", "after"), CONFIRMED.values(), ids=CONFIRMED.keys())
def test_restart_is_confirmed_by_identities_and_times(
    ran: Ran, then: Callable[[Object], Object], doing: str, after: float | None
) -> None:
    record = UpdateRecord(NEW, "2030-01-01T11:59:30Z", {"memcached": ran})
    found = decided(BEFORE, then(created(0, BEFORE, NEW, record)))
    assert (found.complete, found.doing) == (not doing, {"cache-0": doing} if doing else {})
    assert (found.requeue_after, found.problems) == (after, ())


@pytest.mark.parametrize("ran", [IMAGE, ARGUMENTS])
def test_what_ran_before_the_update_confirms_nothing(ran: Ran) -> None:
    """The status of the pod was late, or the clock of its node is slow."""
    pod = with_restart(created(0, BEFORE, NEW, UpdateRecord(NEW, JUST_NOW, {"memcached": ran})), code=137)
    found = decided(BEFORE, pod)
    assert (found.complete, found.step, found.requeue_after) == (False, None, 7)


def test_arguments_that_were_removed_are_restored_before_memcached_runs() -> None:
    """Without them, memcached does not start, so that nothing would confirm the restart."""
    pod = created(0, BEFORE, NEW, UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS}))
    del pod["metadata"]["annotations"][ARGS]
    found = decided(BEFORE, pod)
    assert found.step is not None
    assert found.must_finish
    assert found.step.patch == {"metadata": {"annotations": {ARGS: "-c 1"}}}


@pytest.mark.parametrize(("since", "after"), [(JUST_NOW, 17), (LATER, None)])
def test_arguments_after_a_crash_are_confirmed_by_the_readiness_of_the_agent(since: str, after: float | None) -> None:
    pod = with_restart(created(0, BEFORE, NEW, UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS}), ready=since), code=1)
    found = decided(BEFORE, pod)
    assert (found.complete, found.requeue_after) == (after is None, after)
    cold = with_restart(created(0, BEFORE, NEW, UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS}), ready=None), code=1)
    found = decided(BEFORE, cold)
    assert (found.doing, found.requeue_after) == ({"cache-0": RESTARTS}, 540)


def test_record_is_removed_when_it_explains_nothing_any_more() -> None:
    """Until then, the end of the container that the update has caused is not taken for a crash."""
    record = UpdateRecord(NEW, LATER, {"memcached": IMAGE})
    found = decided(BEFORE, with_restart(created(0, BEFORE, NEW, record, ready=JUST_NOW)))
    assert (found.complete, found.step, found.requeue_after) == (True, None, 27)
    for then in (with_restart(created(0, BEFORE, NEW, record)), with_restart(created(0, BEFORE, NEW, record), code=1)):
        found = decided(BEFORE, then)
        assert (found.complete, kind(found.step), recorded(found.step and found.step.patch)) == (
            True,
            "cache-0 recorded",
            None,
        )


def updating(record: UpdateRecord, **agent: Any) -> Object:
    """A pod whose update is not in effect, and what else is reported of its agent."""
    return with_status(created(0, BEFORE, NEW, record), "agent", **agent)


IMAGE_MISSING: dict[str, Any] = {"waiting": {"reason": "ErrImagePull", "message": 'failed to pull "agent:1"'}}
STOPPED: dict[str, Any] = {"lastState": ended(1), "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
TIMES = {minutes: f"2030-01-01T11:{60 - minutes}:00Z" for minutes in (1, 2, 9, 10, 15, 20)}
NEW_IMAGE = {minutes: UpdateRecord(NEW, since, {"memcached": IMAGE}) for minutes, since in TIMES.items()}
NEW_ARGUMENTS = {minutes: UpdateRecord(NEW, since, {"memcached": ARGUMENTS}) for minutes, since in TIMES.items()}
OVERDUE: dict[str, tuple[Object, str, float | None]] = {
    "an image after 9 minutes": (updating(NEW_IMAGE[9]), "", 60),
    "an image after 10 minutes": (
        updating(NEW_IMAGE[10]),
        "it is restarting and keeps its items, but this was not confirmed",
        None,
    ),
    "arguments after 9 minutes": (updating(NEW_ARGUMENTS[9]), "", 60),
    "arguments after 10 minutes": (updating(NEW_ARGUMENTS[10]), "within 10 minutes", None),
    "arguments without an agent after a minute": (updating(NEW_ARGUMENTS[1], **STOPPED), "", 60),
    "arguments without an agent after 2 minutes": (
        updating(NEW_ARGUMENTS[2], **STOPPED),
        "its container agent, which restarts memcached with the new arguments, is not running; see kubectl logs "
        "--previous -n test cache-0 -c agent. To replace the pod and lose its items, delete it",
        None,
    ),
    "arguments with an agent that was never created": (
        updating(NEW_ARGUMENTS[2], state={"waiting": {"reason": "ContainerCreating"}}),
        "its container agent, which restarts memcached with the new arguments, has not started: ContainerCreating",
        None,
    ),
    "an image that is missing, of a container that was never created": (
        with_status(
            updating(UpdateRecord(NEW, TIMES[20], {"agent": Ran("")}), containerID=""), "agent", state=IMAGE_MISSING
        ),
        "",
        None,
    ),
    "an image without an agent after 2 minutes": (updating(NEW_IMAGE[2], **STOPPED), "", 480),
    "no time": (updating(replace(NEW_IMAGE[1], since="")), "within 10 minutes", None),
    "a time in the future": (updating(replace(NEW_IMAGE[1], since="2031-01-01T00:00:00Z")), "within 10 minutes", None),
}


@pytest.mark.parametrize(("pod", "problem", "after"), OVERDUE.values(), ids=OVERDUE.keys())
def test_each_wait_has_a_deadline(pod: Object, problem: str, after: float | None) -> None:
    found = decided(BEFORE, pod)
    assert [problem in each.message for each in found.problems] == ([True] if problem else [])
    assert (found.step, found.requeue_after) == (None, after)


@pytest.mark.parametrize(("minutes", "problem", "after"), [(15, "", 300), (20, "within 20 minutes", None)])
def test_deadline_includes_the_time_to_warm_up(minutes: int, problem: str, after: float | None) -> None:
    target = changed(annotations={ARGS: "-c 1", MEMORY: "64", GATE: "timeout=600"})
    found = decided(target, created(0, target, NEW, NEW_IMAGE[minutes]))
    assert [problem in each.message for each in found.problems] == ([True] if problem else [])
    assert found.requeue_after == after


def test_other_restart_is_checked_if_the_first_one_is_confirmed() -> None:
    """Only memcached has items; another container is named."""
    record = UpdateRecord(NEW, LATER, {"memcached": IMAGE, "agent": Ran("id-1", "sha-agent:1")})
    found = decided(BEFORE, with_restart(created(0, BEFORE, NEW, record)))
    assert (found.complete, found.doing) == (False, {"cache-0": "is restarting its container agent"})


def test_restart_of_which_no_time_is_known_is_not_waited_for() -> None:
    pod = with_restart(created(0, BEFORE, NEW, UpdateRecord(NEW, "", {"memcached": IMAGE})), since="")
    assert decided(BEFORE, pod).complete


@pytest.mark.parametrize(("ready", "failing"), [(READY_SINCE, False), (None, True)])
def test_updated_pod_fails_only_if_it_is_not_ready(ready: str | None, failing: bool) -> None:
    assert facts(created(0, BEFORE, NEW, ready=ready), BEFORE).is_failing() is failing


AGES: dict[str, tuple[str, timedelta]] = {
    "a minute": (LATER, timedelta(seconds=60)),
    "a clock that is 60 s fast": ("2030-01-01T12:01:00Z", timedelta()),
    "a clock that is 61 s fast": ("2030-01-01T12:01:01Z", LONG_AGO),
    "no time": ("", LONG_AGO),
}


@pytest.mark.parametrize(("since", "expected"), AGES.values(), ids=AGES.keys())
def test_age_of_a_record_that_another_leader_has_written(since: str, expected: timedelta) -> None:
    assert age(UpdateRecord(NEW, since), NOW) == expected
