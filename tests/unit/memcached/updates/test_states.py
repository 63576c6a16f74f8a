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
from unit.memcached.updates.test_steps import AMOUNTS, BEFORE, FAILED, MISSING, PENDING, RAISED, changed, kind, read
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


class State(NamedTuple):
    """A pod, its target, and what is expected.

    `step`: its kind; empty without one. `finishes`: whether the step is made during a pause too. `after`: seconds until
    the pod is considered again without an event, or None. `problem`: a part of the message; empty without a problem.
    """

    pod: Object
    doing: str
    step: str = ""
    finishes: bool = False
    after: float | None = None
    target: Object = BEFORE
    resize: Resize | None = Resize.ANY
    problem: str = ""


def without(pod: Object, name: str) -> Object:
    """A pod from which another client has removed an annotation."""
    annotations = {key: text for key, text in pod["metadata"]["annotations"].items() if key != name}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


HIGHER, LOWER, OTHER = changed(limit="256Mi"), changed(limit="64Mi"), changed(image="memcached:2")
WAITS = "waits until the API server reports which APIs it serves"
NO_ROOM = replace(RAISED, failed="no room", reason="ApplyFailed")
TRIED = replace(NO_ROOM, tries=1, again=True)
BIGGER_AGENT = changed(agent="agent:2", agent_limit="96Mi")


def with_error(record: UpdateRecord) -> Object:
    """A pod whose runtime cannot resize it."""
    pod = with_limit(created(0, BEFORE, record=record), "256Mi")
    return with_condition(pod, "PodResizeInProgress", reason="Error", message="updating\nis not supported")


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


RESTARTING = UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS})
STATES: dict[str, State] = {
    "updated": State(created(0, BEFORE, NEW), ""),
    "updated, with a record that explains nothing": State(
        created(0, BEFORE, NEW, UpdateRecord(NEW, LATER)), "", "recorded"
    ),
    "updated, and not ready": State(just_unready(created(0, BEFORE, NEW)), "is not ready yet"),
    "restarting": State(created(0, BEFORE, NEW, RESTARTING), "is restarting and keeps its items", after=540),
    "restarting, without its arguments": State(
        without(created(0, BEFORE, NEW, RESTARTING), ARGS), "gets its annotations back", "recorded", finishes=True
    ),
    "updated, without an annotation": State(
        without(created(0, BEFORE, NEW), MEMORY), "gets its annotations back", "recorded"
    ),
    "its image is missing": State(
        with_status(created(0, OTHER, NEW, FAILED, ready=None), **MISSING),
        "is being restored to its previous image",
        "updated",
        finishes=True,
        target=OTHER,
    ),
    "an abandoned update": State(
        created(0, BEFORE, NEW, UpdateRecord("cache-bad", LATER)),
        "is no longer being updated",
        "recorded",
        finishes=True,
    ),
    "an abandoned resize": State(
        with_limit(created(0, BEFORE, NEW, replace(RAISED, revision="cache-bad")), "256Mi"),
        "is being resized",
        "resized",
        finishes=True,
    ),
    "an abandoned resize, if it is not known what the cluster can": State(
        with_limit(created(0, BEFORE, NEW, replace(RAISED, revision="cache-bad")), "256Mi"),
        WAITS,
        after=60,
        resize=None,
    ),
    "its limit has fallen": State(
        created(0, LOWER, NEW, UpdateRecord(NEW, LATER, lowers=True)),
        "is being resized",
        "recorded",
        finishes=True,
        target=LOWER,
    ),
    "its limit falls last": State(
        with_limit(created(0, LOWER, NEW, UpdateRecord(NEW, LATER, lowers=True)), "128Mi"),
        "is being resized",
        "resized",
        finishes=True,
        target=LOWER,
    ),
    "outdated": State(created(0, BEFORE), "is being updated", "updated", target=OTHER),
    "outdated, of another template": State(
        created(0, BEFORE), "is being replaced", "deleted", target=changed(fixed="b")
    ),
    "outdated, with a container that has just ended": State(
        with_status(created(0, BEFORE), "agent", state={"terminated": {"exitCode": 0, "finishedAt": JUST_NOW}}),
        "restarts",
        after=57,
        target=OTHER,
    ),
    "outdated, and it is not known what the cluster can": State(
        created(0, BEFORE), WAITS, after=60, target=HIGHER, resize=None
    ),
    "before a resize": State(created(0, BEFORE), "is being resized", "recorded", target=HIGHER),
    "a resize": State(created(0, BEFORE, record=RAISED), "is being resized", "resized", target=HIGHER),
    "during a resize": State(
        with_limit(created(0, BEFORE, record=replace(RAISED, since=LATER)), "256Mi"),
        "is being resized",
        after=540,
        target=HIGHER,
    ),
    "a resize that its node can never make": State(
        with_condition(
            with_limit(created(0, BEFORE, record=replace(RAISED, since=LATER)), "256Mi"), "PodResizePending", **PENDING
        ),
        "is being resized",
        "recorded",
        finishes=True,
        target=HIGHER,
    ),
    "a resize that its node can never make, of which no earlier amounts are known": State(
        with_condition(
            with_limit(created(0, BEFORE, record=UpdateRecord(NEW, LATER)), "256Mi"), "PodResizePending", **PENDING
        ),
        "is being resized",
        "recorded",
        target=HIGHER,
        finishes=True,
    ),
    "a resize that its node cannot make now, with a reason only": State(
        with_condition(with_limit(created(0, BEFORE, record=RAISED), "256Mi"), "PodResizePending", reason="Deferred"),
        "cannot be updated",
        target=HIGHER,
        problem="its node cannot resize it: Deferred.",
    ),
    "a resize that its node cannot make now, without a reason": State(
        with_condition(with_limit(created(0, BEFORE, record=RAISED), "256Mi"), "PodResizePending"),
        "cannot be updated",
        target=HIGHER,
        problem="its node cannot resize it: no reason given.",
    ),
    "a failed resize": State(
        with_limit(created(0, BEFORE, record=NO_ROOM), "256Mi"),
        "is being restored to its previous resources",
        "resized",
        finishes=True,
        target=HIGHER,
    ),
    "a failed resize, if it is not known what the cluster can": State(
        with_limit(created(0, BEFORE, record=NO_ROOM), "256Mi"), WAITS, after=60, target=HIGHER, resize=None
    ),
    "a failed resize, where limits cannot be lowered": State(
        with_limit(created(0, BEFORE, record=NO_ROOM), "256Mi"),
        "cannot be updated",
        target=HIGHER,
        resize=Resize.RAISE,
        problem="no room. It uses its previous resources again, and its items are kept. Request less in the "
        "spec. To replace the pods and lose their items, set it",
    ),
    "a failed resize, before its next try": State(
        created(0, BEFORE, record=replace(NO_ROOM, tries=2)),
        "cannot be updated",
        after=120,
        target=HIGHER,
        problem="no room. It uses its previous resources again, and its items are kept. The next try is at "
        "2030-01-01T12:02:00Z. If its node will not have enough resources, request less in the spec. To replace the "
        "pods and lose their items, set it",
    ),
    "a failed resize, at its next try": State(
        created(0, BEFORE, record=replace(NO_ROOM, tries=1, since=LATER)),
        "cannot be updated",
        "recorded",
        target=HIGHER,
        problem="no room. Its items are kept. It is being tried again.",
    ),
    "a failed resize that is tried again": State(
        created(0, BEFORE, record=TRIED),
        "is being resized",
        "resized",
        target=HIGHER,
        problem="It is being tried again.",
    ),
    "a failed resize that is being made": State(
        with_limit(created(0, BEFORE, record=TRIED), "256Mi"),
        "is being resized",
        after=600,
        target=HIGHER,
        problem="It is being tried again.",
    ),
    "a failed resize that fails again": State(
        with_condition(
            with_limit(created(0, BEFORE, record=replace(TRIED, since=LATER)), "256Mi"), "PodResizePending", **PENDING
        ),
        "is being resized",
        "recorded",
        finishes=True,
        target=HIGHER,
        problem="It is being tried again.",
    ),
    "a failed resize that succeeds": State(
        with_limit(created(0, BEFORE, record=TRIED), "256Mi", in_effect=True),
        "is being updated",
        "updated",
        target=HIGHER,
    ),
    "a resize that is tried again for another revision": State(
        with_limit(created(0, BEFORE, record=replace(TRIED, revision="cache-bad")), "256Mi"),
        "is being resized",
        after=600,
        target=HIGHER,
    ),
    "a resize with an error that may pass": State(
        with_error(replace(RAISED, since=JUST_NOW)), "is being resized", after=27, target=HIGHER
    ),
    "a resize with an error that lasts": State(
        with_error(replace(RAISED, since=LATER)),
        "cannot be updated",
        target=HIGHER,
        problem='its node cannot resize it: "updating\\nis not supported". It keeps its items and its current '
        "resources. Set the previous values again. To replace the pods and lose their items, set it",
    ),
    "a raised limit of an agent that was never created": State(
        with_agent_limit(containerID=""), "is being updated", "updated", target=BIGGER_AGENT
    ),
    "a raised limit of an agent that was never created, which its node has not seen": State(
        not_seen(with_agent_limit(containerID="")), "is being resized", after=540, target=BIGGER_AGENT
    ),
    "a raised limit of an agent that was never created, which its node has seen": State(
        not_seen(with_agent_limit(containerID=""), seen=2), "is being updated", "updated", target=BIGGER_AGENT
    ),
    "a raised limit beside a container of another client that has no requests and limits": State(
        with_other_container(with_limit(created(0, BEFORE, record=RAISED), "256Mi", in_effect=True)),
        "is being updated",
        "updated",
        target=HIGHER,
    ),
    "a limit, refused and lowered again, of an agent that was never created": State(
        with_condition(with_agent_limit(containerID=""), "PodResizePending", **PENDING),
        "is being resized",
        "resized",
        target=changed(agent="agent:2"),
    ),
    "a lower limit of a memcached whose container is gone, but which has run": State(
        with_status(created(0, BEFORE), containerID="", resources=None, state=MISSING["state"], lastState=ended(137)),
        "is being updated",
        "updated",
        target=changed(limit="64Mi"),
    ),
    "a raised limit of an agent that runs": State(
        with_agent_limit(), "is being resized", after=540, target=BIGGER_AGENT
    ),
    "a failed resize of the CPU, where limits cannot be lowered": State(
        {**created(0, BEFORE, record=NO_ROOM), "spec": changed(cpu="20m")["spec"]},
        "is being restored to its previous resources",
        "resized",
        finishes=True,
        target=changed(cpu="20m"),
        resize=Resize.RAISE,
    ),
    "an image that failed, if it is not known what the cluster can": State(
        created(0, BEFORE, record=UpdateRecord(NEW, failed="no image")),
        "cannot be updated",
        target=OTHER,
        resize=None,
        problem="no image. It uses its previous image again, and its items are kept. Correct the image. To try the "
        "same image again, set the previous one first. To replace the pods and lose their items, set it",
    ),
    "an image that failed, of a pod whose images admission replaces": State(
        mirrored(created(0, BEFORE, record=UpdateRecord(NEW, failed="no image"))),
        "cannot be updated",
        target=OTHER,
        problem="When this pod was created, the cluster's admission replaced the image memcached:1 with "
        "mirror/memcached:1, but it does not replace images of existing pods. Correct the image if it does not exist. "
        "To replace the pods and lose their items, set it",
    ),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
def test_pod_of_a_slot(state: State) -> None:
    found = decided(state.target, state.pod, resize=state.resize)
    assert found.doing == ({"cache-0": state.doing} if state.doing else {})
    assert kind(found.step) == (f"cache-0 {state.step}" if state.step else "")
    assert (found.must_finish, found.requeue_after) == (state.finishes, state.after)
    assert [state.problem in problem.message for problem in found.problems] == ([True] if state.problem else [])
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
STOPPED: dict[str, Any] = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": False}
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


def test_pod_whose_agent_never_ran_keeps_its_items() -> None:
    pod = with_status(created(0, BEFORE), "agent", **STOPPED)
    assert kind(decided(changed(agent="agent:2"), pod).step) == "cache-0 updated"


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
