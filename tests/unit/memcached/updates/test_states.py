"""The state of the pod of a slot: what happens to it, for messages, the next step, and how long it waits."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.decision import decide
from memcached_operator.memcached.updates.record import Ran, UpdateRecord, next_try
from memcached_operator.memcached.updates.states import OTHERS, UPDATED
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, typed
from unit.memcached.updates.test_steps import (
    AMOUNTS,
    BEFORE,
    FAILED,
    GROWN,
    MISSING,
    PENDING,
    RAISED,
    changed,
    infeasible,
    kind,
    raised,
    read,
)
from unit.memcached.updates.updating import (
    ARGS,
    ARGUMENTS,
    GATE,
    IMAGE,
    JUST_NOW,
    LATER,
    MEMORY,
    NEW,
    OLD,
    READY_SINCE,
    RULES,
    created,
    decided,
    ended,
    facts,
    just_unready,
    statefulset,
    with_condition,
    with_limit,
    with_status,
)

ROOT = Path(__file__).resolve().parents[4]
STOPPED: dict[str, Any] = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": False}


class State(NamedTuple):
    """A pod, its target, and what is expected.

    `step`: its kind; empty without one. `finishes`: whether the step is made during a pause too. `after`: seconds until
    the pod is considered again without an event, or None. `problem`: a part of the message; empty without a problem.
    """

    pod: Object
    target: Object
    doing: str
    step: str = ""
    finishes: bool = False
    after: float | None = None
    resize: Resize | None = Resize.ANY
    problem: str = ""


def without(pod: Object, name: str) -> Object:
    """A pod from which another client has removed an annotation."""
    annotations = {key: text for key, text in pod["metadata"]["annotations"].items() if key != name}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


HIGHER, LOWER, OTHER = changed(limit="256Mi"), changed(limit="64Mi"), changed(image="memcached:2")
MORE_CPU, NEW_AGENT = changed(cpu="20m"), changed(agent="agent:2")
BIGGER_AGENT = changed(agent="agent:2", agent_limit="96Mi")
KEEPS_ITEMS, RESTARTS = "is restarting and keeps its items", "restarts"
REPLACING, RESIZING, UPDATING = "is being replaced", "is being resized", "is being updated"
RESTORING, ANNOTATING = "is being restored to its previous resources", "gets its annotations back"
ABANDONING, STUCK = "is no longer being updated", "cannot be updated"
WAITS = "waits until the API server reports which APIs it serves"
NO_ROOM = replace(RAISED, failed="no room", reason="ApplyFailed")
TRIED = replace(NO_ROOM, tries=1, again=True)
BAD, RESTARTING = replace(RAISED, revision="cache-bad"), UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS})
LOWERS, NO_IMAGE = UpdateRecord(NEW, LATER, lowers=True), UpdateRecord(NEW, failed="no image")


def with_error(record: UpdateRecord) -> Object:
    """A pod whose runtime cannot resize it."""
    return with_condition(raised(record), "PodResizeInProgress", reason="Error", message="updating\nis not supported")


def deferred(**condition: str) -> Object:
    """A pod that its node cannot resize at present."""
    return with_condition(raised(RAISED), "PodResizePending", **condition)


def with_agent_limit(**status: Any) -> Object:
    """A pod whose agent has another limit in its spec, and of which the node reports the one before, or nothing."""
    pod = created(0, BEFORE, record=replace(RAISED, since=LATER))
    first, agent = BIGGER_AGENT["spec"]["containers"]
    pod = {**pod, "spec": {**pod["spec"], "containers": [first, {**agent, "image": "agent:1"}]}}
    if status:  # a container that was never created
        status |= {"state": {"waiting": {"reason": "ImagePullBackOff"}}, "resources": None, "ready": False}
    return with_status(pod, "agent", **status)


def with_other_container(pod: Object) -> Object:
    """A pod to which admission has added a container without requests and limits, as its kubelet reports it."""
    status: Object = {"name": "proxy", "state": {"running": {}}, "ready": True, "resources": {}}
    containers = [*pod["spec"]["containers"], {"name": "proxy", "image": "proxy:1"}]
    statuses = [*pod["status"]["containerStatuses"], status]
    spec, changed_status = pod["spec"] | {"containers": containers}, pod["status"] | {"containerStatuses": statuses}
    return {**pod, "spec": spec, "status": changed_status}


def not_seen(pod: Object, seen: int = 1) -> Object:
    """A pod whose node has not seen its latest spec, of generation 2."""
    status = pod["status"] | {"observedGeneration": seen}
    return {**pod, "metadata": {**pod["metadata"], "generation": 2}, "status": status}


def mirrored(pod: Object) -> Object:
    """A pod whose images admission has replaced."""
    containers = [{**each, "image": f"mirror/{each['image']}"} for each in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def stopped(finished: str) -> Object:
    """A pod whose memcached has ended."""
    state = {"terminated": {"exitCode": 1, "finishedAt": finished}}
    return with_status(created(0, BEFORE), state=state, ready=False)


UPDATED_STATES: dict[str, State] = {
    "updated": State(created(0, BEFORE, NEW), BEFORE, ""),
    "updated, with a record that explains nothing": State(
        created(0, BEFORE, NEW, UpdateRecord(NEW, LATER)), BEFORE, "", "recorded"
    ),
    "updated, and not ready": State(just_unready(created(0, BEFORE, NEW)), BEFORE, "is not ready yet"),
    "restarting": State(created(0, BEFORE, NEW, RESTARTING), BEFORE, KEEPS_ITEMS, after=540),
    "restarting, without its arguments": State(
        without(created(0, BEFORE, NEW, RESTARTING), ARGS), BEFORE, ANNOTATING, "recorded", finishes=True
    ),  # otherwise memcached cannot start, so that nothing would confirm the restart
    "updated, without an annotation": State(without(created(0, BEFORE, NEW), MEMORY), BEFORE, ANNOTATING, "recorded"),
    "its image is missing": State(
        with_status(created(0, OTHER, NEW, FAILED, ready=None), **MISSING),
        OTHER,
        "is being restored to its previous image",
        "updated",
        finishes=True,
    ),
    "its image was pulled before": State(  # the registry can fail long after the update
        with_status(created(0, OTHER, NEW, FAILED, ready=None), containerID="id-2", **MISSING), OTHER, KEEPS_ITEMS
    ),
    "the image before is missing": State(  # the kubelet reports that until it has seen the new image
        with_status(created(0, changed(image="memcached:3"), NEW, FAILED, ready=None), **MISSING),
        changed(image="memcached:3"),
        KEEPS_ITEMS,
    ),
    "an abandoned update": State(
        created(0, BEFORE, NEW, UpdateRecord("cache-bad", LATER)), BEFORE, ABANDONING, "recorded", finishes=True
    ),
    "an abandoned resize": State(raised(BAD, NEW), BEFORE, RESIZING, "resized", finishes=True),
    "an abandoned resize, if it is not known what the cluster can": State(
        raised(BAD, NEW), BEFORE, WAITS, after=60, resize=None
    ),
    "an abandoned resize, where limits cannot be lowered": State(
        raised(BAD, NEW, in_effect=True), BEFORE, RESIZING, "recorded", finishes=True, resize=Resize.RAISE
    ),
    "an abandoned resize, and its previous limit": State(
        with_limit(raised(BAD, NEW), "128Mi", in_effect=True), BEFORE, RESIZING, "recorded", finishes=True
    ),
    "its limit has fallen": State(created(0, LOWER, NEW, LOWERS), LOWER, RESIZING, "recorded", finishes=True),
    "its limit falls last": State(
        with_limit(created(0, LOWER, NEW, LOWERS), "128Mi"), LOWER, RESIZING, "resized", finishes=True
    ),
}
"""The states of a pod that has the revision of the target."""
STATES: dict[str, State] = {
    **UPDATED_STATES,
    "outdated": State(created(0, BEFORE), OTHER, UPDATING, "updated"),
    "outdated, of another template": State(created(0, BEFORE), changed(fixed="b"), REPLACING, "deleted"),
    "outdated, and its memcached never ran": State(
        with_status(created(0, BEFORE, ready=None), state={"waiting": {"reason": "ImagePullBackOff"}}, ready=False),
        OTHER,
        REPLACING,
        "deleted",
    ),
    "outdated, and its agent never ran": State(
        with_status(created(0, BEFORE), "agent", **STOPPED), NEW_AGENT, UPDATING, "updated"
    ),
    "outdated, with an agent that has just ended": State(
        with_status(created(0, BEFORE), "agent", state={"terminated": {"exitCode": 0, "finishedAt": JUST_NOW}}),
        OTHER,
        RESTARTS,
        after=57,
    ),
    "outdated, with a memcached that has just ended": State(stopped(JUST_NOW), OTHER, RESTARTS, after=57),
    "outdated, with a memcached that ended an hour ago": State(stopped(READY_SINCE), OTHER, UPDATING, "updated"),
    "outdated, and it is not known what the cluster can": State(
        created(0, BEFORE), HIGHER, WAITS, after=60, resize=None
    ),
    "outdated, with the same amounts, and it is not known what the cluster can": State(
        created(0, BEFORE), NEW_AGENT, UPDATING, "updated", resize=None
    ),
    "outdated, with the label of the target from another client": State(
        created(0, changed(image="memcached:0"), NEW), BEFORE, UPDATING, "updated"
    ),
    "outdated, of another template, with the label of the target from another client": State(
        created(0, changed(image="memcached:0"), NEW), changed(fixed="b"), REPLACING, "deleted"
    ),
    "outdated, with amounts of another client, where pods cannot be resized": State(
        with_limit(created(0, BEFORE), "64Mi", in_effect=True), NEW_AGENT, UPDATING, "updated", resize=Resize.NONE
    ),
    "before a resize": State(created(0, BEFORE), HIGHER, RESIZING, "recorded"),
    "a resize": State(created(0, BEFORE, record=RAISED), HIGHER, RESIZING, "resized"),
    "before a resize to less than a limit for which there is no room": State(
        raised(BAD, limit="8Gi"), changed(limit="256Mi", annotations=GROWN), RESIZING, "recorded"
    ),
    "a resize to less than a limit for which there is no room": State(  # it is in effect before memcached gets more
        raised(RAISED, limit="8Gi"), changed(limit="256Mi", annotations=GROWN), RESIZING, "resized"
    ),
    "during a resize": State(raised(replace(RAISED, since=LATER)), HIGHER, RESIZING, after=540),
    "a resize that its node can never make": State(
        infeasible(raised(replace(RAISED, since=LATER))), HIGHER, RESIZING, "recorded", finishes=True
    ),
    "a resize that its node can never make, of which no earlier amounts are known": State(
        infeasible(raised(UpdateRecord(NEW, LATER))), HIGHER, RESIZING, "recorded", finishes=True
    ),
    "a resize that its node can never make, for an abandoned update": State(
        infeasible(raised(BAD)), BEFORE, RESIZING, "recorded"
    ),
    "a resize that its node cannot make now": State(
        deferred(reason="Deferred", message=PENDING["message"]),
        HIGHER,
        STUCK,
        problem="ApplyFailed: Pod cache-0: its node cannot resize it: Node didn't have enough capacity.",
    ),
    "a resize that its node cannot make now, with a reason only": State(
        deferred(reason="Deferred"), HIGHER, STUCK, problem="its node cannot resize it: Deferred."
    ),
    "a resize that its node cannot make now, without a reason": State(
        deferred(), HIGHER, STUCK, problem="its node cannot resize it: no reason given."
    ),
    "a resize by a kubelet that cannot": State(
        with_status(raised(RAISED), resources=None),
        HIGHER,
        STUCK,
        problem="its kubelet does not report the resources of containers",
    ),
    "a failed resize": State(raised(NO_ROOM), HIGHER, RESTORING, "resized", finishes=True),
    "a failed resize, if it is not known what the cluster can": State(
        raised(NO_ROOM), HIGHER, WAITS, after=60, resize=None
    ),
    "a failed resize, where limits cannot be lowered": State(
        raised(NO_ROOM),
        HIGHER,
        STUCK,
        resize=Resize.RAISE,
        problem="no room. It uses its previous resources again, and its items are kept. Request less in the "
        "spec. To replace the pods and lose their items, set it",
    ),
    "a failed resize, before its next try": State(
        created(0, BEFORE, record=replace(NO_ROOM, tries=2)),
        HIGHER,
        STUCK,
        after=120,
        problem="ApplyFailed: Pod cache-0: no room. It uses its previous resources again, and its items are kept. The "
        "next try is at 2030-01-01T12:02:00Z. If its node will not have enough resources, request less in the spec. "
        "To replace the pods and lose their items, set it",
    ),
    "a failed resize, at its next try": State(
        created(0, BEFORE, record=replace(NO_ROOM, tries=1, since=LATER)),
        HIGHER,
        STUCK,
        "recorded",
        problem="no room. Its items are kept. It is being tried again.",
    ),
    "a failed resize that is tried again": State(
        created(0, BEFORE, record=TRIED), HIGHER, RESIZING, "resized", problem="It is being tried again."
    ),
    "a failed resize that is being made": State(
        raised(TRIED), HIGHER, RESIZING, after=600, problem="It is being tried again."
    ),
    "a failed resize that fails again": State(
        infeasible(raised(replace(TRIED, since=LATER))),
        HIGHER,
        RESIZING,
        "recorded",
        finishes=True,
        problem="It is being tried again.",
    ),
    "a failed resize that succeeds": State(raised(TRIED, in_effect=True), HIGHER, UPDATING, "updated"),
    "a resize that is tried again for another revision": State(
        raised(replace(TRIED, revision="cache-bad")), HIGHER, RESIZING, after=600
    ),
    "a resize with an error that may pass": State(
        with_error(replace(RAISED, since=JUST_NOW)), HIGHER, RESIZING, after=27
    ),
    "a resize with an error that lasts": State(
        with_error(replace(RAISED, since=LATER)),
        HIGHER,
        STUCK,
        problem='its node cannot resize it: "updating\\nis not supported". It keeps its items and its current '
        "resources. Set the previous values again. To replace the pods and lose their items, set it",
    ),
    "a raised limit of an agent that was never created": State(
        with_agent_limit(containerID=""), BIGGER_AGENT, UPDATING, "updated"
    ),
    "a raised limit of an agent that was never created, which its node has not seen": State(
        not_seen(with_agent_limit(containerID="")), BIGGER_AGENT, RESIZING, after=540
    ),
    "a raised limit of an agent that was never created, which its node has seen": State(
        not_seen(with_agent_limit(containerID=""), seen=2), BIGGER_AGENT, UPDATING, "updated"
    ),
    "a raised limit beside a container of another client that has no requests and limits": State(
        with_other_container(raised(RAISED, in_effect=True)), HIGHER, UPDATING, "updated"
    ),
    "a limit, refused and lowered again, of an agent that was never created": State(
        infeasible(with_agent_limit(containerID="")), NEW_AGENT, RESIZING, "resized"
    ),
    "a lower limit of a memcached whose container is gone, but which has run": State(
        with_status(created(0, BEFORE), containerID="", resources=None, state=MISSING["state"], lastState=ended(137)),
        LOWER,
        UPDATING,
        "updated",
    ),
    "a raised limit of an agent that runs": State(with_agent_limit(), BIGGER_AGENT, RESIZING, after=540),
    "a failed resize of the CPU, where limits cannot be lowered": State(
        {**created(0, BEFORE, record=NO_ROOM), "spec": MORE_CPU["spec"]},
        MORE_CPU,
        RESTORING,
        "resized",
        finishes=True,
        resize=Resize.RAISE,
    ),
    "an image that failed, if it is not known what the cluster can": State(
        created(0, BEFORE, record=NO_IMAGE),
        OTHER,
        STUCK,
        resize=None,
        problem="ImageUnavailable: Pod cache-0: no image. It uses its previous image again, and its items are kept. "
        "Correct the image. To try the same image again, set the previous one first. To replace the pods and lose "
        "their items, set it",
    ),
    "an image that failed, of a pod whose images admission replaces": State(
        mirrored(created(0, BEFORE, record=NO_IMAGE)),
        OTHER,
        STUCK,
        problem="When this pod was created, the cluster's admission replaced the image memcached:1 with "
        "mirror/memcached:1, but it does not replace images of existing pods. Correct the image if it does not exist. "
        "To replace the pods and lose their items, set it",
    ),
    "an image of another revision that failed": State(
        created(0, BEFORE, record=replace(NO_IMAGE, revision="cache-bad")), OTHER, UPDATING, "updated"
    ),
    **{
        f"a corrected image, with {resize.name}": State(
            created(0, BEFORE, record=replace(FAILED, revision="cache-bad", before=None, failed="no image")),
            changed(image="memcached:3"),
            UPDATING,
            "updated",
            resize=resize,
        )
        for resize in Resize
    },
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
def test_pod_of_a_slot(state: State) -> None:
    found = decided(state.target, state.pod, resize=state.resize)
    assert found.doing == ({"cache-0": state.doing} if state.doing else {})
    assert kind(found.step) == (f"cache-0 {state.step}" if state.step else "")
    assert (found.must_finish, found.requeue_after) == (state.finishes, state.after)
    assert [state.problem in f"{problem.reason}: {problem.message}" for problem in found.problems] == (
        [True] if state.problem else []
    )
    assert found.complete is not bool(state.doing)


def test_restart_of_an_abandoned_update_is_still_waited_for() -> None:
    record = replace(RESTARTING, revision="cache-bad", ended={"agent": "id-0"}, failed="no image")
    assert read(decided(BEFORE, created(0, BEFORE, NEW, record)).step) == RESTARTING


def test_at_most_three_pods_are_reported() -> None:
    """The highest slots, which are next."""
    missing = decided(BEFORE, size=5).doing
    assert missing == dict.fromkeys(("cache-4", "cache-3", "cache-2"), "is being replaced")
    pods = [created(slot, BEFORE, NEW) for slot in range(5)]
    for pod in pods:
        pod["metadata"]["annotations"]["memcached-operator.example.com/update"] = "forged"
    assert len(decided(BEFORE, *pods).notices) == 3


def test_pod_that_waits_for_others_is_not_reported() -> None:
    """Only the pod whose step is next is reported."""
    assert decided(OTHER, created(0, BEFORE), created(1, BEFORE)).doing == {"cache-1": "is being updated"}


RUNNING = created(0, BEFORE)
COLD = just_unready(RUNNING)
BROKEN: dict[str, tuple[Object, float | None]] = {
    "ready": (RUNNING, None),
    "all run and serve, as with a cold cache": (COLD, 600 + 900 - 60),
    "only the agent is not ready": (with_status(COLD, "agent", ready=False), 600 + 900 - 60),
    "memcached is not ready": (with_status(COLD, ready=False), 600 - 60),
    "the agent does not run": (with_status(COLD, "agent", **STOPPED), 600 - 60),
    "memcached does not run": (with_status(COLD, **STOPPED), 0),
    "memcached is not reported": ({**COLD, "status": {**COLD["status"], "containerStatuses": []}}, 0),
    "memcached is not ready for longer than a rollout may take": (
        with_status(created(0, BEFORE, ready=None), ready=False),
        0,
    ),
    "no time is reported": ({**COLD, "status": {**COLD["status"], "conditions": []}}, None),
}


@pytest.mark.parametrize(("pod", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_pod_that_is_not_ready_waits_for_others_until_it_has_failed(pod: Object, expected: float | None) -> None:
    assert facts(pod, changed(annotations={GATE: "timeout=900"})).broken_in == expected


STARTED: dict[str, tuple[Object, bool]] = {
    "runs": (RUNNING, False),
    "waits, and has not run": (with_status(RUNNING, **STOPPED), True),
    "waits, and has ended before": (with_status(RUNNING, **STOPPED, lastState=ended(1)), False),
    "has ended": (with_status(RUNNING, state=ended(1)), False),
    "is not reported": ({**RUNNING, "status": {}}, True),
    "another container runs": (with_status(RUNNING, "agent", **STOPPED), False),
}


@pytest.mark.parametrize(("pod", "expected"), STARTED.values(), ids=STARTED.keys())
def test_container_that_never_ran(pod: Object, expected: bool) -> None:
    assert facts(pod, BEFORE).has_nothing_to_lose is expected


FLIGHT = UpdateRecord("cache-middle", LATER, {"memcached": IMAGE})
IN_FLIGHT: dict[str, tuple[Object, float | None]] = {
    "not for 2 minutes": (created(0, BEFORE, "cache-middle", replace(FLIGHT, since="2030-01-01T11:58:00Z")), None),
    "not for 119 seconds": (created(0, BEFORE, "cache-middle", replace(FLIGHT, since="2030-01-01T11:58:01Z")), 1),
    "it cannot start": (
        with_status(created(0, BEFORE, "cache-middle", FLIGHT), state={"waiting": {"reason": "CreateContainerError"}}),
        None,
    ),
    "its image is missing": (with_status(created(0, BEFORE, "cache-middle", FLIGHT), **MISSING), None),
    "the pod was restored since": (created(0, BEFORE, OLD, FLIGHT), None),
}


@pytest.mark.parametrize(("pod", "after"), IN_FLIGHT.values(), ids=IN_FLIGHT.keys())
def test_next_change_waits_for_the_restart_of_the_one_before(pod: Object, after: float | None) -> None:
    target = changed(image="memcached:3")
    found = decided(target, with_status(pod, lastState=ended()))
    assert (kind(found.step), found.requeue_after) == ("" if after else "cache-0 updated", after)
    assert found.doing == {"cache-0": "restarts" if after else "is being updated"}


def test_restart_stays_open_if_the_state_before_it_is_not_recorded() -> None:
    """The record of a restored pod has none, so that nothing shows what would undo its restart."""
    record = UpdateRecord("cache-bad", LATER, {"memcached": Ran("id-1", args=True)}, amounts=AMOUNTS, failed="no image")
    assert read(decided(OTHER, created(0, BEFORE, record=record)).step).restarts == {"memcached": ARGUMENTS}


@pytest.mark.parametrize(
    ("tries", "minutes"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (10**9, 30), (-(10**9), 1)]
)
def test_failed_resize_is_tried_again_after_a_back_off(tries: int, minutes: int) -> None:
    """Another client can write any number."""
    assert (next_try(replace(NO_ROOM, tries=tries), NOW) - NOW).total_seconds() == 60 * minutes


def test_other_pods_wait_while_a_resize_is_tried_again() -> None:
    pods = [created(0, BEFORE), created(1, BEFORE), created(2, BEFORE, record=TRIED)]
    found = decide(statefulset(HIGHER, 3), typed(*pods), RULES, Resize.ANY, NOW, limit=3)
    assert found is not None
    assert (kind(found.step), found.must_finish) == ("cache-2 resized", False)
    resized = with_limit(pods[2], "256Mi")
    assert decided(HIGHER, *pods[:2], resized).step is None


def test_page_lists_all_states_in_the_order_of_the_table() -> None:
    page = (ROOT / "docs/decisions/updates-in-place.md").read_text()
    tables = page.partition("## States of a pod")[2].partition("### Deadlines")[0]
    names = re.findall(r"^\| ([^|]+) \|", tables, re.MULTILINE)
    assert [name for name in names if name != "State"] == [row.name for row in (*UPDATED, *OTHERS)]
