"""Which pod is updated next, and with which step."""

from itertools import combinations
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_operator.engine.kind import PodStep
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.decision import decide
from memcached_operator.memcached.updates.origin import template_origin, with_origin
from memcached_operator.memcached.updates.record import Before, Ran, UpdateRecord
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, typed
from unit.memcached.updates.updating import (
    ARGS,
    ARGUMENTS,
    GATE,
    IMAGE,
    LATER,
    MEMORY,
    NEW,
    OLD,
    READY_SINCE,
    RULES,
    created,
    decided,
    just_unready,
    recorded,
    statefulset,
    template,
    with_condition,
    with_limit,
    with_restart,
    with_status,
)

SINCE = "2030-01-01T12:00:00Z"
AMOUNTS = {
    "memcached": {"limits": {"memory": "128Mi"}},
    "agent": {"limits": {"memory": "48Mi"}, "requests": {"cpu": "10m"}},
}
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
    return f"{step.pod.name} {verb}"


def patch_of(step: PodStep | None) -> Object:
    """The patch of a step; empty without one."""
    return (step and step.patch) or {}


def read(step: PodStep | None) -> UpdateRecord:
    """The record that a step writes."""
    return msgspec.json.decode(recorded(step and step.patch) or "", type=UpdateRecord)


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


OF_BEFORE = BEFORE["metadata"]["annotations"][ORIGIN_ANNOTATION]
OTHER_VERSION, INVALID_AMOUNT = OF_BEFORE.replace('"version":1', '"version":2'), OF_BEFORE.replace("128Mi", "many")


@pytest.mark.parametrize("text", ["", "{}", "no JSON", '{"fixed":1}', OTHER_VERSION, INVALID_AMOUNT])
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
        template_origin(with_origin({"metadata": {"labels": {}}, "spec": {"containers": [each]}}, "a"))
        for each in ({"name": "a", "image": "b", "resources": amounts} for amounts in (old, new))
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].fixed != found[1].fixed


def test_changes_are_one_patch() -> None:
    target = changed(image="memcached:2", annotations={ARGS: "-c 2", MEMORY: "64"})
    step = decided(target, created(0, BEFORE)).step
    assert patch_of(step)["spec"] == {"containers": [{"name": "memcached", "image": "memcached:2"}]}
    assert patch_of(step)["metadata"]["labels"] == {"controller-revision-hash": NEW}
    annotations = patch_of(step)["metadata"]["annotations"]
    assert (annotations[ARGS], MEMORY in annotations) == ("-c 2", False)
    assert annotations[ORIGIN_ANNOTATION] == target["metadata"]["annotations"][ORIGIN_ANNOTATION]
    record = read(step)
    assert (record.revision, record.since, record.restarts) == (NEW, SINCE, {"memcached": replace(IMAGE, args=True)})
    assert record.before is not None
    assert (record.before.revision, record.before.images) == (OLD, {"memcached": "memcached:1"})
    assert record.before.annotations[ARGS] == "-c 1"


RECORDS: dict[str, tuple[Object, UpdateRecord | None]] = {
    "arguments": (
        changed(annotations={ARGS: "-c 2", MEMORY: "64"}),
        UpdateRecord(NEW, SINCE, {"memcached": ARGUMENTS}, Before(OLD, {}, {ARGS: "-c 1"})),
    ),
    "memory": (changed(annotations={ARGS: "-c 1", MEMORY: "128"}), None),
    "a gate": (changed(annotations={ARGS: "-c 1", MEMORY: "64", GATE: "1"}), None),
    "a lower limit": (changed(limit="64Mi"), UpdateRecord(NEW, SINCE, lowers=True)),
}


@pytest.mark.parametrize(("target", "expected"), RECORDS.values(), ids=RECORDS.keys())
def test_record_says_what_to_wait_for(target: Object, expected: UpdateRecord | None) -> None:
    text = recorded(patch_of(decided(target, created(0, BEFORE)).step))
    assert (None if text is None else msgspec.json.decode(text, type=UpdateRecord)) == expected


def test_annotation_that_the_template_lacks_is_removed() -> None:
    pod = created(0, template(annotations={ARGS: "-c 1", MEMORY: "64", GATE: "1"}))
    assert patch_of(decided(BEFORE, pod).step)["metadata"]["annotations"][GATE] is None


def test_limits_rise_before_the_rest() -> None:
    target = changed(limit="256Mi", annotations={ARGS: "-c 2", MEMORY: "64"})
    begun = UpdateRecord(NEW, SINCE, amounts=AMOUNTS)
    first = decided(target, created(0, BEFORE)).step
    assert (kind(first), read(first)) == ("cache-0 recorded", begun)
    step = decided(target, created(0, BEFORE, record=begun)).step
    assert step is not None
    assert (step.subresource, step.remedy, step.patch) == (
        "resize",
        "To replace the pods and lose their items, set it",
        {"spec": {"containers": [{"name": "memcached", "resources": {"limits": {"memory": "256Mi"}}}]}},
    )
    requested = raised(begun)
    waiting = decided(target, requested)
    assert (waiting.step, waiting.doing) == (None, {"cache-0": "is being resized"})
    resized = with_limit(requested, "256Mi", in_effect=True)
    assert kind(decided(target, resized).step) == "cache-0 updated"


MORE: dict[str, Any] = {
    "image": "memcached:2",
    "agent": "agent:2",
    "limit": "256Mi",
    "agent_limit": "96Mi",
    "cpu": "20m",
    "annotations": {ARGS: "-c 2", MEMORY: "128"},
}
"""Another value of each part of a pod that can change in place."""
COMBINATIONS = [parts for count in (1, 2, len(MORE)) for parts in combinations(MORE, count)]
OTHER: Object = {"name": "m-proxy", "image": "proxy:1", "resources": {}}
ORDERS: dict[str, list[int]] = {"alone": [0, 1], "first": [2, 0, 1], "between": [0, 2, 1], "reversed": [1, 2, 0]}
"""The order of memcached, the agent and OTHER in a pod, as another client's webhook may have changed it."""


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("parts", COMBINATIONS, ids=" ".join)
def test_patches_list_containers_in_the_order_of_the_pod(parts: tuple[str, ...], order: list[int]) -> None:
    """The API server takes another order of a strategic merge patch for a new order of the containers."""
    target = changed(**{part: MORE[part] for part in parts})

    def with_others(containers: list[Object]) -> Object:
        return {"initContainers": [OTHER], "containers": [[*containers, OTHER][place] for place in order]}

    before = created(0, BEFORE, record=RAISED)
    pod = {**before, "spec": with_others(before["spec"]["containers"])}
    resized = [
        {**each, "image": old["image"]}
        for each, old in zip(target["spec"]["containers"], before["spec"]["containers"], strict=True)
    ]
    done = {**created(0, target, record=RAISED), "spec": with_others(resized)}
    done["metadata"]["annotations"][ORIGIN_ANNOTATION] = OF_BEFORE
    steps = [decided(target, each).step for each in (pod, done)]
    found: dict[str, Object] = {}
    for step in steps:
        listed: list[Object] = patch_of(step).get("spec", {}).get("containers", [])
        places = [["memcached", "agent", "m-proxy"].index(each["name"]) for each in listed]
        assert places == [place for place in order if place in places]
        found |= {f"{each['name']} {name}": each for each in listed for name in each if name != "name"}
    expected = {"limit": "memcached resources", "image": "memcached image", "agent": "agent image"}
    assert found.keys() == {expected.get(part, "agent resources") for part in parts if part != "annotations"}


def test_limits_fall_after_the_rest() -> None:
    target = changed(limit="64Mi", annotations={ARGS: "-c 2", MEMORY: "64"})
    record = UpdateRecord(NEW, LATER, {"memcached": ARGUMENTS}, lowers=True)
    restarting = with_limit(created(0, target, NEW, record), "128Mi", in_effect=True)
    assert decided(target, restarting).doing == {"cache-0": "is restarting and keeps its items"}
    restarted = with_restart(restarting)
    step = decided(target, restarted).step
    assert kind(step) == "cache-0 resized"
    assert patch_of(step)["spec"]["containers"][0]["resources"] == {"limits": {"memory": "64Mi"}}
    unknown = decided(target, restarted, resize=None)
    assert (unknown.step, unknown.requeue_after) == (None, 60), "what the cluster can do is not known yet"
    step = decided(target, with_limit(restarted, "64Mi")).step
    assert kind(step) == "cache-0 recorded", "a node can take long to lower a limit"
    assert not read(step).lowers


RAISED = UpdateRecord(NEW, SINCE, amounts=AMOUNTS)
PENDING = {"reason": "Infeasible", "message": "Node didn't have enough capacity"}
GROWN = {ARGS: "-c 1", MEMORY: "128"}


def raised(record: UpdateRecord, revision: str = OLD, limit: str = "256Mi", *, in_effect: bool = False) -> Object:
    """A pod whose limit was raised by an update with this record."""
    return with_limit(created(0, BEFORE, revision, record), limit, in_effect=in_effect)


def infeasible(pod: Object) -> Object:
    """A pod that its node can never resize."""
    return with_condition(pod, "PodResizePending", **PENDING)


def test_pod_gets_its_resources_back_if_its_node_can_never_resize_it() -> None:
    target, record = changed(limit="256Mi"), replace(RAISED, since=LATER)
    pod = infeasible(raised(record))
    found = decided(target, pod)
    record = read(found.step)
    assert (kind(found.step), found.must_finish, record.reason) == ("cache-0 recorded", True, "ApplyFailed")
    failed = raised(record)
    step = decided(target, failed).step
    assert kind(step) == "cache-0 resized"
    assert patch_of(step)["spec"]["containers"][0]["resources"] == {"limits": {"memory": "128Mi"}}
    found = decided(target, with_limit(failed, "128Mi"))
    (problem,) = found.problems
    assert (found.step, problem.reason) == (None, "ApplyFailed")
    assert "It uses its previous resources again, and its items are kept. The next try is at" in problem.message


def test_pod_gets_what_its_node_has_allocated_if_an_earlier_resize_was_refused_too() -> None:
    """A node tries a refused resize again only if the spec of the pod changes."""
    same = replace(RAISED, since=LATER, amounts={"memcached": {"limits": {"memory": "256Mi"}}})
    pod = infeasible(raised(same))
    pod = with_status(pod, "agent", allocatedResources={"cpu": "5m"})
    record = read(decided(changed(limit="256Mi"), pod).step)
    agent = {"limits": {"memory": "48Mi"}, "requests": {"cpu": "5m"}}
    assert record.amounts == {"memcached": {"limits": {"memory": "128Mi"}}, "agent": agent}


DEADLINES = {"2030-01-01T11:50:01Z": 1, "2030-01-01T11:50:00Z": None, "": None, "2031-01-01T00:00:00Z": None}


@pytest.mark.parametrize(("since", "after"), DEADLINES.items())
def test_resize_has_a_deadline(since: str, after: float | None) -> None:
    record = msgspec.structs.replace(RAISED, since=since)
    pod = with_condition(raised(record), "PodResizeInProgress")
    found = decided(changed(limit="256Mi"), pod)
    assert (found.step, found.requeue_after) == (None, after)
    late = "its node cannot resize it: the resize has not finished within 10 minutes. It keeps its items"
    assert [late in problem.message for problem in found.problems] == ([] if after else [True])


@pytest.mark.parametrize(("since", "after"), [(SINCE, 10), ("2030-01-01T11:59:51Z", 1), ("2030-01-01T11:59:50Z", None)])
def test_node_has_a_moment_to_say_that_it_can_never_resize_a_pod(since: str, after: float | None) -> None:
    """Before, the condition can be about the previous resize."""
    record = msgspec.structs.replace(RAISED, since=since)
    pod = infeasible(raised(record))
    found = decided(changed(limit="256Mi"), pod)
    assert (kind(found.step), found.requeue_after) == ("" if after else "cache-0 recorded", after)


@pytest.mark.parametrize(("allocated", "busy"), [("10m", True), ("20m", False), ("0.02", False), (None, False)])
def test_requests_are_in_effect_when_they_are_allocated(allocated: str | None, busy: bool) -> None:
    """A node reports only later why it cannot allocate them."""
    target = changed(cpu="20m")
    pod = {**created(0, BEFORE, record=RAISED), "spec": target["spec"]}
    found = decided(
        target, pod if allocated is None else with_status(pod, "agent", allocatedResources={"cpu": allocated})
    )
    assert (found.step is None, "resized" in found.doing["cache-0"]) == (busy, busy)


PREVIOUS = Before(OLD, {"memcached": "memcached:1"}, {ARGS: "-c 1", GATE: None})
FAILED = UpdateRecord(NEW, SINCE, {"memcached": IMAGE}, PREVIOUS, AMOUNTS)
NOT_FOUND = 'failed to pull "memcached:2"'
MISSING: dict[str, Any] = {"state": {"waiting": {"reason": "ErrImagePull", "message": NOT_FOUND}}, "ready": False}


def test_pod_gets_its_image_back_if_the_new_one_is_missing() -> None:
    target = changed(image="memcached:2")
    pod = with_status(created(2, target, NEW, FAILED, ready=None), **MISSING)
    step = decided(target, created(0, BEFORE), created(1, BEFORE), pod).step
    assert kind(step) == "cache-2 updated"
    assert patch_of(step)["spec"] == {"containers": [{"name": "memcached", "image": "memcached:1"}]}
    assert patch_of(step)["metadata"]["labels"] == {"controller-revision-hash": OLD}
    annotations = patch_of(step)["metadata"]["annotations"]
    assert (annotations[ARGS], annotations[GATE]) == ("-c 1", None)
    failed = f"the image memcached:2 of container memcached cannot be pulled: {NOT_FOUND}"
    assert read(step) == UpdateRecord(NEW, SINCE, {"memcached": Ran("id-1")}, amounts=AMOUNTS, failed=failed)


def test_record_of_a_failure_is_removed_with_the_change() -> None:
    """Otherwise the same change, made again, would not be tried."""
    step = decided(BEFORE, created(0, BEFORE, NEW, UpdateRecord("cache-bad", failed="no image"))).step
    assert (kind(step), recorded(patch_of(step))) == ("cache-0 recorded", None)


def slots(*states: str) -> list[Object]:
    """Pods in the states: o outdated, n new; capitals: not ready for a minute; x: does not run; d: is being deleted."""
    return [_slot(number, state) for number, state in enumerate(states) if state != "-"]


def _slot(number: int, state: str) -> Object:
    revision = NEW if state in "nN" else OLD
    origin = changed(fixed="b") if state in "nN" else BEFORE
    pod = created(number, origin, revision, ready=None if state in "ONx" else READY_SINCE)
    if state == "x":
        return with_status(
            pod, state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": {}}, ready=False
        )
    if state in "ON":
        return just_unready(pod)
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
    assert (found.step.pod.name if found.step else "") == expected
    assert found.complete is (states == "nnn")


def test_begun_update_goes_on_before_others() -> None:
    pods = [
        created(0, BEFORE),
        with_limit(created(1, BEFORE, record=RAISED), "256Mi", in_effect=True),
    ]
    assert kind(decided(changed(limit="256Mi"), *pods, created(2, BEFORE)).step) == "cache-1 updated"


def test_highest_slot_is_completed_first() -> None:
    pods = [created(slot, BEFORE, NEW, UpdateRecord("cache-bad", failed="no image")) for slot in range(2)]
    assert kind(decided(BEFORE, *pods).step) == "cache-1 recorded"


@pytest.mark.parametrize(
    ("seconds", "ready", "step", "after"),
    [
        ({"minReadySeconds": 90}, LATER, "", 30),
        ({"minReadySeconds": 60}, LATER, "cache-0 deleted", None),
        ({}, SINCE, "cache-0 deleted", None),
    ],
)
def test_next_step_waits_for_min_ready_seconds(
    seconds: dict[str, int], ready: str, step: str, after: float | None
) -> None:
    live = statefulset(changed(fixed="b"), 2)
    live["spec"] |= seconds
    pods = [created(0, BEFORE), created(1, changed(fixed="b"), NEW, ready=ready)]
    found = decide(live, typed(*pods), RULES, Resize.ANY, NOW)
    assert found is not None
    assert (kind(found.step), found.requeue_after) == (step, after)


STALE: dict[str, Object] = {
    "not observed": {"status": {"observedGeneration": 1, "updateRevision": NEW}},
    "no revision": {"status": {"observedGeneration": 2}},
}


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_nothing_is_known_before_the_statefulset_was_observed(stale: Object) -> None:
    assert decide(statefulset(BEFORE, 1, **stale), typed(created(0, BEFORE)), RULES, Resize.ANY, NOW) is None
