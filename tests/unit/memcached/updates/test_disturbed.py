"""Updates of pods while something else happens: second changes, failures of nodes and registries, other clients."""

from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from memcached_api.annotations import ORIGIN_ANNOTATION, RECORD_ANNOTATION
from memcached_operator.findings.failures import failures
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.containers import CONTAINERS
from memcached_operator.memcached.updates.confirmation import takes_back
from memcached_operator.memcached.updates.origin import template_origin, with_origin
from memcached_operator.memcached.updates.record import Before, Ran, UpdateRecord
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, typed
from unit.memcached.updates.test_steps import (
    AMOUNTS,
    BEFORE,
    FAILED,
    MISSING,
    PENDING,
    RAISED,
    SINCE,
    changed,
    kind,
    patch_of,
    raised,
    read,
)
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
    created,
    decided,
    ended,
    just_unready,
    recorded,
    template,
    with_condition,
    with_limit,
    with_restart,
    with_status,
)

RULES = PodRules("Memcached", CONTAINERS, takes_back=takes_back)


@pytest.mark.parametrize("record", [replace(RAISED, revision="cache-bad"), RAISED])
def test_resize_is_verified_also_if_the_rest_changes_meanwhile(record: UpdateRecord) -> None:
    pod = with_limit(created(0, BEFORE, record=record), "8Gi")
    pod = with_condition(pod, "PodResizePending", **PENDING)
    found = decided(changed(limit="8Gi", agent="agent:2"), pod)
    assert (found.step, len(found.problems), found.requeue_after) == (None, 1, 10)


@pytest.mark.parametrize("what", ["PodResizeInProgress", "PodResizePending"])
def test_resize_that_is_left_to_do_is_not_in_effect(what: str) -> None:
    pod = raised(RAISED, in_effect=True)
    assert decided(changed(limit="256Mi"), with_condition(pod, what)).step is None
    assert kind(decided(changed(limit="256Mi"), pod).step) == "cache-0 updated"


def test_image_is_taken_back_also_if_the_container_before_started_once_more() -> None:
    """It ended while the kubelet had not seen the new image yet, and started with its own."""
    target = changed(image="memcached:2")
    pod = with_status(created(0, target, NEW, FAILED, ready=None), containerID="id-2", **MISSING)
    step = decided(target, with_status(pod, imageID=IMAGE.image)).step
    assert patch_of(step)["spec"]["containers"] == [{"name": "memcached", "image": "memcached:1"}]


RESTARTS: dict[str, tuple[str, dict[str, Ran], dict[str, str]]] = {
    "restarted": ("id-2", {"memcached": Ran("id-2", args=True)}, {}),
    "not yet": ("id-1", {}, {"memcached": "id-1"}),
}


@pytest.mark.parametrize(("present", "waits", "ended"), RESTARTS.values(), ids=RESTARTS.keys())
def test_memcached_restarts_again_with_arguments_that_are_taken_back(
    present: str, waits: dict[str, Ran], ended: dict[str, str]
) -> None:
    """The image of the agent is missing. Neither restart of memcached is a crash."""
    target = changed(agent="agent:2", annotations={ARGS: "-c 2", MEMORY: "64"})
    restarts = {"memcached": ARGUMENTS, "agent": Ran("id-1", "sha-agent:1")}
    before = Before(OLD, {"agent": "agent:1"}, {ARGS: "-c 1"})
    pod = with_status(created(0, target, NEW, UpdateRecord(NEW, LATER, restarts, before)), containerID=present)
    message = 'failed to pull "agent:2"'
    waiting = {"waiting": {"reason": "ErrImagePull", "message": message}}
    record = read(decided(target, with_status(pod, "agent", imageID="sha-agent:1", state=waiting)).step)
    assert record.restarts == {"agent": Ran("id-1"), **waits}
    assert record.ended == ended


def test_resize_without_a_record_gets_its_time() -> None:
    """Another client has removed the record, or has resized the pod."""
    pod = with_limit(created(0, BEFORE), "256Mi")
    target = changed(limit="256Mi")
    step = decided(target, pod).step
    assert (kind(step), read(step).since) == ("cache-0 recorded", SINCE)
    begun = with_limit(created(0, BEFORE, record=replace(read(step), since=LATER)), "256Mi")
    assert (decided(target, begun).problems, decided(target, begun).step) == ((), None)
    refused = read(decided(target, with_condition(begun, "PodResizePending", **PENDING)).step)
    assert (bool(refused.failed), (refused.amounts or {}).get("memcached")) == (True, {"limits": {"memory": "128Mi"}})


def test_resize_of_another_client_after_an_update_gets_its_time() -> None:
    """The record of the update before is complete, and says nothing about this resize."""
    done = UpdateRecord(OLD, READY_SINCE, {"memcached": Ran("id-0", "sha-memcached:0")})
    pod = with_limit(created(0, BEFORE, record=done), "256Mi")
    step = decided(changed(limit="256Mi"), pod).step
    assert (kind(step), read(step).since) == ("cache-0 recorded", SINCE)


def test_pod_that_lacks_a_container_of_its_template_raises_nothing() -> None:
    pod = created(0, BEFORE)
    pod["spec"] = {"containers": pod["spec"]["containers"][:1]}
    assert decided(changed(limit="256Mi"), pod).step is not None


def test_image_before_two_missing_ones_is_restored() -> None:
    missing, grown = changed(image="missing:1"), {ARGS: "-c 1", MEMORY: "128"}
    target = changed(image="missing:2", annotations=grown)
    failing = created(0, missing, "cache-bad", replace(FAILED, revision="cache-bad"))
    step = decided(target, with_status(failing, lastState=ended(), **MISSING)).step
    before = read(step).before
    assert before is not None
    assert (before.revision, before.images) == (OLD, {"memcached": "memcached:1"})
    annotations = dict(before.annotations)
    assert annotations.pop(ORIGIN_ANNOTATION) == missing["metadata"]["annotations"][ORIGIN_ANNOTATION]
    assert annotations == {ARGS: "-c 1", GATE: None, MEMORY: "64"}, "of the first change, and of the second one"


MIDDLE = changed(annotations={ARGS: "-c 2", MEMORY: "64"})
UNSEEN = UpdateRecord("cache-middle", LATER, {"memcached": ARGUMENTS}, Before(OLD, {}, {ARGS: "-c 1"}))
THIRD = changed(annotations={ARGS: "-c 3", MEMORY: "64"})


@pytest.mark.parametrize(("target", "waits"), [(THIRD, {"memcached": ARGUMENTS}), (BEFORE, {})])
def test_change_that_nothing_makes_is_superseded(target: Object, waits: dict[str, Ran]) -> None:
    """The agent does not run, or the kubelet has not acted for 2 minutes. What is undone is not waited for."""
    stopped = with_status(created(0, MIDDLE, "cache-middle", UNSEEN), "agent", state={"waiting": {}})
    expired = created(0, MIDDLE, "cache-middle", replace(UNSEEN, since=READY_SINCE))
    for pod in (stopped, expired):
        step = decided(target, pod).step
        assert kind(step) == "cache-0 updated"
        assert (read(step).restarts if recorded(step and step.patch) else {}) == waits


NEVER: dict[str, Any] = {"containerID": "", "state": {"waiting": {"reason": "ImagePullBackOff"}}, "ready": False}


def test_image_of_a_container_that_never_ran_is_not_restored() -> None:
    """The agent's first image is missing. The next change corrects it, and has a memcached that is missing."""
    target = changed(image="memcached:2", agent="agent:2")
    step = decided(target, with_status(created(0, BEFORE), "agent", **NEVER)).step
    before = read(step).before
    assert before is not None
    assert before.images == {"memcached": "memcached:1"}
    pod = with_status(created(0, target, NEW, read(step)), "agent", containerID="id-2")
    step = decided(target, with_status(pod, **MISSING)).step
    assert patch_of(step)["spec"]["containers"] == [{"name": "memcached", "image": "memcached:1"}]
    origin = template_origin({"metadata": patch_of(step)["metadata"]})
    assert origin is not None
    assert origin.images == {"memcached": "memcached:1", "agent": "agent:2"}, "otherwise agent:2 would be changed again"


def test_image_that_was_never_pulled_before_is_reported_by_the_pod() -> None:
    """Nothing can be restored: the message names the image, and no other pod follows."""
    target = changed(agent="agent:2")
    pod = with_status(created(1, BEFORE), "agent", **NEVER)
    record = read(decided(target, created(0, BEFORE), pod).step)
    assert (record.before and record.before.images, record.restarts) == ({}, {"agent": Ran("", "sha-agent:1")})
    state = {"waiting": {"reason": "ErrImagePull", "message": 'failed to pull "agent:2"'}}
    waiting = with_status(created(1, target, NEW, record), "agent", **NEVER | {"state": state})
    found = decided(target, created(0, BEFORE), just_unready(waiting))
    assert (found.step, found.problems) == (None, ())
    assert failures(typed(waiting), NOW, RULES)[0].reason == "ImageUnavailable"


@pytest.mark.parametrize(("text", "reported"), [('"memcached:2"', False), ('"memcached:1"', True), ("", False)])
def test_error_of_the_image_that_is_taken_back_is_reported_once(text: str, reported: bool) -> None:
    """The decision reports it. The kubelet reports it until it has seen the previous image."""
    record = UpdateRecord(NEW, LATER, {"memcached": Ran("id-1")}, failed="the image memcached:2 cannot be pulled")
    state = {"waiting": {"reason": "ErrImagePull", "message": f"failed to pull {text}"}}
    pod = with_status(created(0, BEFORE, record=record), state=state, ready=False)
    assert bool(failures(typed(pod), NOW, RULES)) is reported
    (problem,) = decided(changed(image="memcached:2"), pod).problems
    assert problem.message.startswith("Pod cache-0: the image memcached:2 cannot be pulled")


@pytest.mark.parametrize(("revision", "reported"), [(NEW, 0), ("cache-later", 1)])
def test_error_of_an_image_is_reported_unless_it_is_taken_back_next(revision: str, reported: int) -> None:
    record = UpdateRecord(NEW, LATER, {"memcached": Ran("id-1")}, Before(OLD, {"memcached": "memcached:1"}, {}))
    state = {"waiting": {"reason": "ErrImagePull", "message": 'failed to pull "memcached:2"'}}
    pod = with_status(created(0, changed(image="memcached:2"), NEW, record), state=state, ready=False)
    rules = PodRules("Memcached", CONTAINERS, takes_back=partial(takes_back, revision=revision))
    assert len(failures(typed(pod), NOW, rules)) == reported


def test_end_that_an_earlier_update_caused_stays_explained() -> None:
    """The next update begins before the record of the one before is removed."""
    middle = created(
        0, changed(image="memcached:2"), "cache-middle", UpdateRecord("cache-middle", LATER, {"memcached": IMAGE})
    )
    for target in (changed(image="memcached:3"), changed(image="memcached:2", agent="agent:2")):
        assert read(decided(target, with_restart(middle)).step).ended == {"memcached": "id-1"}


def test_new_agent_signals_for_the_arguments_that_wait() -> None:
    pod = with_status(created(0, MIDDLE, "cache-middle", UNSEEN), "agent", state={"waiting": {}})
    step = decided(changed(annotations={ARGS: "-c 2", MEMORY: "64"}, agent="agent:2"), pod).step
    assert read(step).restarts == {"memcached": ARGUMENTS, "agent": Ran("id-1", "sha-agent:1")}


def test_image_of_a_change_that_was_superseded_proves_nothing() -> None:
    target = changed(image="memcached:3")
    expired = UpdateRecord(
        "cache-middle", READY_SINCE, {"memcached": IMAGE}, Before(OLD, {"memcached": "memcached:1"}, {})
    )
    step = decided(target, created(0, changed(image="memcached:2"), "cache-middle", expired)).step
    assert read(step).restarts == {"memcached": Ran("id-1")}


@pytest.mark.parametrize("name", [ARGS, MEMORY, ORIGIN_ANNOTATION])
def test_annotation_that_another_client_changes_is_restored(name: str) -> None:
    for other in (dict[str, str](), {name: "other"}):
        pod = created(0, BEFORE, NEW)
        del pod["metadata"]["annotations"][name]
        pod["metadata"]["annotations"] |= other
        step = decided(BEFORE, pod).step
        assert patch_of(step) == {"metadata": {"annotations": {name: BEFORE["metadata"]["annotations"][name]}}}


FREE: dict[str, tuple[Object, Resize, str]] = {
    "the gate": (template(annotations={GATE: "80"}), Resize.ANY, "cache-2 updated"),
    "the agent": (template(annotations={GATE: "99"}, agent="agent:2"), Resize.ANY, "cache-2 updated"),
    "a limit": (template(annotations={GATE: "99"}, limit="256Mi"), Resize.ANY, "cache-2 recorded"),
    "memcached": (template(annotations={GATE: "99"}, image="memcached:2"), Resize.ANY, ""),
    "all": (template(annotations={GATE: "99"}, fixed="b"), Resize.ANY, ""),
}


@pytest.mark.parametrize(("target", "resize", "expected"), FREE.values(), ids=FREE.keys())
def test_what_does_not_touch_memcached_reaches_pods_that_are_not_ready(
    target: Object, resize: Resize, expected: str
) -> None:
    cold = [created(number, template(annotations={GATE: "99"}), ready=None) for number in range(3)]
    assert kind(decided(target, *map(just_unready, cold), resize=resize).step) == expected


def test_pods_that_are_not_ready_get_back_what_another_client_has_changed() -> None:
    """That does not touch memcached. A pod that is ready waits for those that are not."""
    target = changed(image="memcached:2")
    pod, cold = created(1, target, NEW), just_unready(created(0, BEFORE))
    del pod["metadata"]["annotations"][MEMORY]
    assert kind(decided(target, just_unready(pod), cold).step) == "cache-1 recorded"
    assert kind(decided(target, pod, cold).step) == "cache-0 updated"


def test_resize_of_another_client_gets_its_time_on_pods_that_are_not_ready() -> None:
    pods = [just_unready(with_limit(created(slot, BEFORE), "256Mi")) for slot in range(2)]
    assert kind(decided(changed(limit="256Mi"), *pods).step) == "cache-1 recorded"


def test_pod_whose_agent_fails_is_not_replaced_beside_one_that_is_not_ready() -> None:
    failing = with_status(created(0, BEFORE, ready=None), "agent", state={"waiting": {"reason": "CrashLoopBackOff"}})
    short = just_unready(failing)
    other = just_unready(created(1, BEFORE, ready=None))
    waiting = decided(changed(fixed="b"), short, other)
    assert (waiting.step, waiting.requeue_after) == (None, 540)
    assert kind(decided(changed(fixed="b"), failing, other).step) == "cache-0 deleted", "it has failed for an hour"


@pytest.mark.parametrize(("warm_up", "step"), [("", "cache-2 deleted"), ("timeout=90000", "")])
def test_correction_reaches_pods_none_of_which_becomes_ready(warm_up: str, step: str) -> None:
    """All run and serve, but their agents say that they are not ready, for an hour."""
    gate = {GATE: warm_up} if warm_up else {}
    pods = [created(number, template(annotations=gate), ready=None) for number in range(3)]
    found = decided(template("b", annotations=gate), *pods)
    assert kind(found.step) == step
    assert step or found.requeue_after


def test_image_of_the_pod_is_restored_and_not_that_of_its_template() -> None:
    pod = created(0, BEFORE)
    mirrored = {**pod["spec"]["containers"][0], "image": "mirror/memcached:1"}
    pod["spec"] = {"containers": [mirrored, pod["spec"]["containers"][1]]}
    step = decided(changed(image="memcached:2"), pod).step
    before = read(step).before
    assert before is not None
    assert before.images == {"memcached": "mirror/memcached:1"}


def test_container_that_another_client_puts_first_is_not_taken_for_memcached() -> None:
    pod = with_status(created(0, BEFORE), lastState={"terminated": {}})
    sidecar = {"name": "proxy", "image": "proxy:1"}
    pod["spec"] = {"containers": [sidecar, *pod["spec"]["containers"]]}
    step = decided(changed(annotations={ARGS: "-c 2", MEMORY: "64"}), pod).step
    assert read(step).restarts == {"memcached": ARGUMENTS}


DEEP = "[" * 100_000
ORIGIN = '{"fixed":"a","images":{"memcached":"a"},"resources":{"memcached":{"limits":{"memory":"%s"}}}}'
RECORD = '{"revision":"%s","restarts":{"memcached":{"id":"id-1"}}}'
FORGED = {
    "deep record": {RECORD_ANNOTATION: f'{{"revision":"a","x":{DEEP}}}'},
    "deep origin": {ORIGIN_ANNOTATION: f'{{"x":{DEEP}}}'},
    "long number": {MEMORY: "9" * 5000},
    "origin without images": {ORIGIN_ANNOTATION: '{"fixed":"a","images":{},"resources":{}}'},
    "restart that never comes": {
        RECORD_ANNOTATION: f'{{"revision":"{OLD}","restarts":{{"memcached":{{"id":"id-1"}}}}}}'
    },
    "amount in the origin": {ORIGIN_ANNOTATION: ORIGIN % "many"},
    "another version": {ORIGIN_ANNOTATION: ORIGIN.replace("{", '{"version":2,', 1) % "1Gi"},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_annotations_of_other_clients_do_not_stop_an_update(forged: dict[str, str]) -> None:
    pod = created(0, BEFORE)
    pod["metadata"]["annotations"] |= forged
    assert decided(changed(image="memcached:2"), pod).step is not None


def test_record_that_names_a_container_of_others_does_not_stop_an_update() -> None:
    forged = UpdateRecord("other", LATER, {"sidecar": Ran("id-9")}, Before(OLD, {}, {}))
    pod = created(0, BEFORE)
    sidecar = {**pod["spec"]["containers"][1], "name": "sidecar"}
    spec = {**pod["spec"], "containers": [*pod["spec"]["containers"], sidecar]}
    pod = {**pod, "spec": spec, "metadata": created(0, BEFORE, record=forged)["metadata"]}
    assert decided(changed(image="memcached:2"), pod).step is not None


INVALID: dict[str, dict[str, Any]] = {
    "revision": {"revision": "a b"},
    "container": {"restarts": {"other": {"id": "a"}}},
    "image": {"before": {"revision": OLD, "images": {"memcached": "no image"}, "annotations": {}}},
    "restored revision": {"before": {"revision": "a b", "images": {}, "annotations": {}}},
    "restored container": {"before": {"revision": OLD, "images": {"other": "a"}, "annotations": {}}},
    "amount": {"amounts": {"memcached": {"limits": {"memory": "many"}}}},
    "reason": {"failed": "a", "reason": "Other"},
}


@pytest.mark.parametrize("invalid", INVALID.values(), ids=INVALID.keys())
def test_record_of_another_client_is_ignored_and_reported(invalid: dict[str, Any]) -> None:
    pod = created(0, BEFORE, NEW)
    pod["metadata"]["annotations"][RECORD_ANNOTATION] = msgspec.json.encode({"revision": NEW, **invalid}).decode()
    found = decided(BEFORE, pod)
    assert (found.complete, len(found.notices)) == (True, 1)
    assert "Pod cache-0: another client changed the annotation" in found.notices[0]
    assert patch_of(found.step) == {"metadata": {"annotations": {RECORD_ANNOTATION: None}}}


def test_image_of_a_confirmed_restart_is_restored_with_that_of_another_container() -> None:
    """memcached has restarted with its new image, and that of the agent is missing."""
    target = changed(image="memcached:2", agent="agent:2")
    before = Before(OLD, {"memcached": "memcached:1", "agent": "agent:1"}, {})
    pod = created(0, target, NEW, UpdateRecord(NEW, LATER, {"agent": Ran("id-1", "sha-agent:1")}, before))
    waiting = {"waiting": {"reason": "ErrImagePull", "message": 'failed to pull "agent:2"'}}
    record = read(decided(target, with_status(pod, "agent", imageID="sha-agent:1", state=waiting)).step)
    assert record.restarts == {"memcached": Ran("id-1", "sha-memcached:2"), "agent": Ran("id-1")}


def test_amounts_of_containers_of_others_are_not_restored() -> None:
    forged = replace(RAISED, failed="no room", reason="ApplyFailed", amounts={"sidecar": AMOUNTS["memcached"]})
    pod = created(0, BEFORE, record=forged)
    sidecar = {**pod["spec"]["containers"][1], "name": "sidecar"}
    pod = {**pod, "spec": {**pod["spec"], "containers": [*pod["spec"]["containers"], sidecar]}}
    assert decided(changed(limit="256Mi"), pod).step is None


def test_annotations_that_are_restored_are_those_of_an_update() -> None:
    target = changed(image="memcached:2")
    before = Before(OLD, {"memcached": "memcached:1"}, {ARGS: "-c 1", "example.com/other": "a"})
    pod = created(0, target, NEW, replace(FAILED, before=before), ready=None)
    step = decided(target, with_status(pod, **MISSING)).step
    assert "example.com/other" not in patch_of(step)["metadata"]["annotations"]


def test_text_of_others_is_bounded() -> None:
    record = UpdateRecord(NEW, failed="a\nb" * 100_000)
    (problem,) = decided(changed(image="memcached:2"), created(0, BEFORE, record=record)).problems
    assert len(problem.message) < 900
    assert "\n" not in problem.message


def test_memcached_that_is_not_ready_for_a_moment_is_not_replaced_beside_another_one() -> None:
    busy = [with_status(created(number, BEFORE, ready=None), ready=False) for number in range(2)]
    short = list(map(just_unready, busy))
    assert decided(changed(fixed="b"), *short).step is None
    assert kind(decided(changed(fixed="b"), *busy).step) == "cache-1 deleted"


def test_origin_of_this_release_is_read_by_later_ones() -> None:
    """Otherwise the next change of each object would replace its pods."""
    written = {
        "fixed": "a",
        "images": {"memcached": "memcached:1"},
        "resources": {"memcached": {"limits": {"memory": "1Gi"}}},
        "version": 1,
    }
    text = msgspec.json.encode(written).decode()
    found = template_origin({"metadata": {"annotations": {ORIGIN_ANNOTATION: text}}})
    assert found is not None
    assert (found.fixed, found.images, found.resources, found.version) == tuple(written.values())
    first = {"name": "a", "image": "b", "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}}}
    made = template_origin(with_origin({"metadata": {"labels": {}}, "spec": {"containers": [first]}}, ["x", {"y": 1}]))
    assert made is not None
    assert made.fixed == "c38b6ce301a6383c"
