"""Which pod is updated next, and with which step."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from memcached_operator.kind import PodStep, Resize
from memcached_operator.kube.resource import Object
from memcached_operator.workloads.updates.decision import update
from memcached_operator.workloads.updates.origin import ORIGIN_ANNOTATION, origin_of, with_origin
from memcached_operator.workloads.updates.record import Before, Record
from unit.builders import NOW
from unit.workloads.updating import (
    ARGS,
    GATE,
    LATER,
    MEMORY,
    NEW,
    OLD,
    READY_SINCE,
    RULES,
    created,
    decided,
    recorded,
    statefulset,
    template,
    with_condition,
    with_limit,
    with_status,
)

BEFORE = template(annotations={ARGS: "-c 1", MEMORY: "64"})


def changed(**parts: Any) -> Object:
    """The template BEFORE with other parts."""
    given: dict[str, Any] = {"annotations": {ARGS: "-c 1", MEMORY: "64"}, **parts}
    return template(**given)


def kind(step: PodStep | None) -> str:
    """The kind of a step: what it does, and to which slot."""
    if step is None:
        return ""
    verb = step.verb if step.patch is None or step.subresource or "labels" in step.patch["metadata"] else "recorded"
    return f"{step.pod['metadata']['name']} {verb}"


NEEDS: dict[str, tuple[Object, Resize, str]] = {
    "the agent's image": (changed(agent="agent:2"), Resize.NONE, "updated"),
    "its image": (changed(image="memcached:2"), Resize.NONE, "updated"),
    "an annotation": (changed(annotations={ARGS: "-c 2", MEMORY: "64"}), Resize.NONE, "updated"),
    "a new annotation": (changed(annotations={ARGS: "-c 1", MEMORY: "64", GATE: "1"}), Resize.NONE, "updated"),
    "more memory": (changed(annotations={ARGS: "-c 1", MEMORY: "128"}), Resize.NONE, "updated"),
    "less memory": (changed(annotations={ARGS: "-c 1", MEMORY: "32"}), Resize.ANY, "deleted"),
    "anything else": (changed(fixed="b"), Resize.ANY, "deleted"),
    "a higher limit": (changed(limit="256Mi"), Resize.RAISE, "recorded"),
    "a higher limit, without resize": (changed(limit="256Mi"), Resize.NONE, "deleted"),
    "a lower limit": (changed(limit="64Mi"), Resize.ANY, "updated"),
    "a lower limit, without that": (changed(limit="64Mi"), Resize.RAISE, "deleted"),
    "the same limit in other units": (changed(limit="131072Ki"), Resize.ANY, "updated"),
    "nothing but the revision": (BEFORE, Resize.NONE, "updated"),
}


@pytest.mark.parametrize(("target", "resize", "expected"), NEEDS.values(), ids=NEEDS.keys())
def test_least_step(target: Object, resize: Resize, expected: str) -> None:
    assert kind(decided(target, created(0, BEFORE), resize=resize).step) == f"cache-0 {expected}"


def test_amounts_wait_until_it_is_known_what_the_cluster_can() -> None:
    found = decided(changed(limit="256Mi"), created(0, BEFORE), resize=None)
    assert (found.step, found.complete) == (None, False)
    assert kind(decided(changed(agent="agent:2"), created(0, BEFORE), resize=None).step) == "cache-0 updated"


@pytest.mark.parametrize("text", ["", "{}", "no JSON", '{"fixed":1}'])
def test_pod_of_unknown_origin_is_replaced(text: str) -> None:
    pod = created(0, BEFORE)
    pod["metadata"]["annotations"][ORIGIN_ANNOTATION] = text
    assert kind(decided(BEFORE, pod).step) == "cache-0 deleted"


SHAPES: dict[str, tuple[Object, Object]] = {
    "a limit is added": ({}, {"limits": {"cpu": "1"}}),
    "a request is removed": ({"requests": {"cpu": "1"}}, {}),
    "another resource": ({"limits": {"example.com/a": "1"}}, {"limits": {"example.com/a": "2"}}),
    "the QoS class": (
        {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "512Mi"}},
    ),
}


@pytest.mark.parametrize(("old", "new"), SHAPES.values(), ids=SHAPES.keys())
def test_what_a_resize_cannot_change_needs_a_new_pod(old: Object, new: Object) -> None:
    found = [
        origin_of(with_origin({"metadata": {"labels": {}}, "spec": {"containers": [each]}}, "a"))
        for each in ({"name": "a", "image": "b", "resources": amounts} for amounts in (old, new))
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].fixed != found[1].fixed


def test_changes_are_one_patch() -> None:
    target = changed(image="memcached:2", annotations={ARGS: "-c 2", MEMORY: "64"})
    step = decided(target, created(0, BEFORE)).step
    assert step is not None
    assert step.patch is not None
    assert step.patch["spec"] == {"containers": [{"name": "memcached", "image": "memcached:2"}]}
    assert step.patch["metadata"]["labels"] == {"controller-revision-hash": NEW}
    annotations = step.patch["metadata"]["annotations"]
    assert (annotations[ARGS], MEMORY in annotations) == ("-c 2", False)
    assert annotations[ORIGIN_ANNOTATION] == target["metadata"]["annotations"][ORIGIN_ANNOTATION]
    record = msgspec.json.decode(recorded(step.patch) or "", type=Record)
    assert (record.revision, record.restarts, record.ready_since) == (NEW, {"memcached": 0}, None)
    assert record.before is not None
    assert (record.before.revision, record.before.images) == (OLD, {"memcached": "memcached:1"})
    assert record.before.annotations[ARGS] == "-c 1"


RECORDS: dict[str, tuple[Object, Record]] = {
    "arguments": (
        changed(annotations={ARGS: "-c 2", MEMORY: "64"}),
        Record(NEW, restarts={"memcached": 0}),
    ),
    "memory": (changed(annotations={ARGS: "-c 1", MEMORY: "128"}), Record(NEW, ready_since=READY_SINCE)),
    "a gate": (changed(annotations={ARGS: "-c 1", MEMORY: "64", GATE: "1"}), Record(NEW)),
    "a lower limit": (changed(limit="64Mi"), Record(NEW, lowers=True)),
}


@pytest.mark.parametrize(("target", "expected"), RECORDS.values(), ids=RECORDS.keys())
def test_record_says_what_to_wait_for(target: Object, expected: Record) -> None:
    step = decided(target, created(0, BEFORE)).step
    assert step is not None
    assert msgspec.json.decode(recorded(step.patch) or "", type=Record) == expected


def test_annotation_that_the_template_lacks_is_removed() -> None:
    pod = created(0, template(annotations={ARGS: "-c 1", MEMORY: "64", GATE: "1"}))
    step = decided(BEFORE, pod).step
    assert step is not None
    assert step.patch is not None
    assert step.patch["metadata"]["annotations"][GATE] is None


def test_limits_rise_before_the_rest() -> None:
    target = changed(limit="256Mi", annotations={ARGS: "-c 2", MEMORY: "64"})
    begun = Record(NEW, resized=True)
    assert kind(decided(target, created(0, BEFORE)).step) == "cache-0 recorded"
    step = decided(target, created(0, BEFORE, record=begun)).step
    assert step is not None
    assert (step.subresource, step.patch) == (
        "resize",
        {"spec": {"containers": [{"name": "memcached", "resources": {"limits": {"memory": "256Mi"}}}]}},
    )
    requested = with_limit(created(0, BEFORE, record=begun), "256Mi")
    waiting = decided(target, requested)
    assert (waiting.step, waiting.doing) == (None, {"cache-0": "is being resized"})
    resized = with_limit(requested, "256Mi", in_effect=True)
    assert kind(decided(target, resized).step) == "cache-0 updated"


def test_limits_fall_after_the_rest() -> None:
    target = changed(limit="64Mi", annotations={ARGS: "-c 2", MEMORY: "64"})
    record = Record(NEW, restarts={"memcached": 0}, lowers=True)
    restarting = with_limit(created(0, target, NEW, record), "128Mi", in_effect=True)
    assert decided(target, restarting).doing == {"cache-0": "restarts with its items"}
    restarted = with_status(restarting, restartCount=1)
    step = decided(target, restarted).step
    assert step is not None
    assert (step.subresource, step.patch and step.patch["spec"]["containers"][0]["resources"]) == (
        "resize",
        {"limits": {"memory": "64Mi"}},
    )
    step = decided(target, with_limit(restarted, "64Mi")).step
    assert kind(step) == "cache-0 recorded", "a node can take long to lower a limit"
    assert step is not None
    assert "lowers" not in (recorded(step.patch) or "")


PENDING = {"reason": "Infeasible", "message": "Node didn't have enough capacity"}


def test_node_without_room_ends_the_update() -> None:
    target = changed(limit="256Mi")
    pod = with_condition(
        with_limit(created(2, BEFORE, record=Record(NEW, resized=True)), "256Mi"), "PodResizePending", **PENDING
    )
    found = decided(target, created(0, BEFORE), created(1, BEFORE), pod)
    assert found.step is None
    (problem,) = found.problems
    assert "Pod cache-2: its node cannot resize it: Node didn't have enough capacity" in problem.message
    assert "set it" in problem.message


def test_corrected_amounts_replace_those_for_which_there_is_no_room() -> None:
    pod = with_condition(
        with_limit(created(0, BEFORE, record=Record("cache-bad", resized=True)), "256Mi"), "PodResizePending", **PENDING
    )
    assert kind(decided(BEFORE, pod).step) == "cache-0 recorded"
    back = with_limit(created(0, BEFORE, NEW, Record("cache-bad", resized=True)), "256Mi")
    step = decided(BEFORE, back).step
    assert step is not None
    assert (kind(step), step.subresource) == ("cache-0 resized", "resize")
    assert kind(decided(BEFORE, with_limit(back, "128Mi", in_effect=True)).step) == "cache-0 recorded"


UNCONFIRMED: dict[str, tuple[Record, Callable[[Object], Object], str]] = {
    "not restarted": (Record(NEW, restarts={"memcached": 0}), lambda pod: pod, "restarts with its items"),
    "restarted": (Record(NEW, restarts={"memcached": 0}), lambda pod: with_status(pod, restartCount=1), ""),
    "agent not restarted": (Record(NEW, restarts={"agent": 0}), lambda pod: pod, "restarts its container agent"),
    "not grown": (Record(NEW, ready_since=READY_SINCE), lambda pod: pod, "grows"),
    "grown": (Record(NEW, ready_since=LATER), lambda pod: pod, ""),
    "grown, not ready before": (Record(NEW, ready_since=""), lambda pod: pod, ""),
}


@pytest.mark.parametrize(("record", "then", "doing"), UNCONFIRMED.values(), ids=UNCONFIRMED.keys())
def test_update_in_place_is_confirmed(record: Record, then: Callable[[Object], Object], doing: str) -> None:
    found = decided(BEFORE, then(created(0, BEFORE, NEW, record)))
    assert (found.complete, found.step) == (not doing, None)
    assert found.doing == ({"cache-0": doing} if doing else {})


PREVIOUS = Before(OLD, {"memcached": "memcached:1"}, {ARGS: "-c 1", GATE: None})
FAILED = Record(NEW, restarts={"memcached": 0}, before=PREVIOUS)
NOT_FOUND = 'failed to pull "memcached:2"'
MISSING: dict[str, Any] = {"state": {"waiting": {"reason": "ErrImagePull", "message": NOT_FOUND}}, "ready": False}


def test_pod_gets_its_image_back_if_the_new_one_is_missing() -> None:
    target = changed(image="memcached:2")
    pod = with_status(created(2, target, NEW, FAILED, ready=None), **MISSING)
    step = decided(target, created(0, BEFORE), created(1, BEFORE), pod).step
    assert kind(step) == "cache-2 updated"
    assert step is not None
    assert step.patch is not None
    assert step.patch["spec"] == {"containers": [{"name": "memcached", "image": "memcached:1"}]}
    assert step.patch["metadata"]["labels"] == {"controller-revision-hash": OLD}
    annotations = step.patch["metadata"]["annotations"]
    assert (annotations[ARGS], annotations[GATE]) == ("-c 1", None)
    record = msgspec.json.decode(recorded(step.patch) or "", type=Record)
    failed = f"the image memcached:2 cannot be pulled: {NOT_FOUND}"
    assert record == Record(NEW, restarts={"memcached": 0}, resized=True, failed=failed)


def test_failed_revision_is_not_tried_again() -> None:
    target = changed(image="memcached:2")
    pods = [created(0, BEFORE), created(1, BEFORE), created(2, BEFORE, record=Record(NEW, failed="no image"))]
    found = decided(target, *pods)
    assert found.step is None
    assert [(each.reason, each.message[:25]) for each in found.problems] == [
        ("ImageUnavailable", "Pod cache-2: no image. It")
    ]
    other = [*pods[:2], created(2, BEFORE, record=Record("cache-bad", failed="no image"))]
    assert kind(decided(target, *other).step) == "cache-2 updated"


def test_record_of_a_failure_is_removed_with_the_change() -> None:
    """Otherwise the same change, made again, would not be tried."""
    step = decided(BEFORE, created(0, BEFORE, NEW, Record("cache-bad", failed="no image"))).step
    assert step is not None
    assert (kind(step), recorded(step.patch)) == ("cache-0 recorded", None)


def slots(*states: str) -> list[Object]:
    """Pods in the states: o outdated, n new; capital letters: not ready; x: does not run; d: is being deleted."""
    return [_slot(number, state) for number, state in enumerate(states) if state != "-"]


def _slot(number: int, state: str) -> Object:
    revision = NEW if state in "nN" else OLD
    origin = changed(fixed="b") if state in "nN" else BEFORE
    pod = created(number, origin, revision, ready=None if state in "ONx" else READY_SINCE)
    if state == "x":
        return with_status(
            pod, state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": {}}, ready=False
        )
    if state == "d":
        return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": LATER}}
    return pod


ORDER: dict[str, tuple[str, str]] = {
    "the highest slot first": ("ooo", "cache-2"),
    "then the next": ("oon", "cache-1"),
    "not before it is ready": ("ooN", ""),
    "not while a pod is missing": ("oo-", ""),
    "not while a pod is deleted": ("ood", ""),
    "not while another outdated pod is not ready": ("OOo", ""),
    "one that is not ready first": ("oOo", "cache-1"),
    "one that does not run first": ("oxo", "cache-1"),
    "of several that do not run the highest": ("xxx", "cache-2"),
    "one that does not run, while others are not ready": ("OxO", "cache-1"),
    "not while a new pod does not become ready": ("oxN", ""),
    "none left": ("nnn", ""),
}


@pytest.mark.parametrize(("states", "expected"), ORDER.values(), ids=ORDER.keys())
def test_order(states: str, expected: str) -> None:
    found = decided(changed(fixed="b"), *slots(*states), size=len(states))
    assert (found.step.pod["metadata"]["name"] if found.step else "") == expected
    assert found.complete is (states == "nnn")


def test_begun_update_goes_on_before_others() -> None:
    pods = [
        created(0, BEFORE),
        with_limit(created(1, BEFORE, record=Record(NEW, resized=True)), "256Mi", in_effect=True),
    ]
    assert kind(decided(changed(limit="256Mi"), *pods, created(2, BEFORE)).step) == "cache-1 updated"


def test_pod_that_never_ran_is_replaced() -> None:
    pod = with_status(created(0, BEFORE, ready=None), state={"waiting": {"reason": "ImagePullBackOff"}}, ready=False)
    assert kind(decided(changed(image="memcached:2"), pod).step) == "cache-0 deleted"


def test_next_step_waits_for_min_ready_seconds() -> None:
    live = statefulset(changed(fixed="b"), 2)
    live["spec"]["minReadySeconds"] = 90
    pods = [created(0, BEFORE), created(1, changed(fixed="b"), NEW, ready="2030-01-01T11:59:00Z")]
    found = update(live, pods, RULES, Resize.ANY, NOW)
    assert found is not None
    assert (found.step, found.requeue_after) == (None, 30)


STALE: dict[str, Object] = {
    "not observed": {"status": {"observedGeneration": 1, "updateRevision": NEW}},
    "no revision": {"status": {"observedGeneration": 2}},
}


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_nothing_is_known_before_the_statefulset_was_observed(stale: Object) -> None:
    assert update(statefulset(BEFORE, 1, **stale), [created(0, BEFORE)], RULES, Resize.ANY, NOW) is None
