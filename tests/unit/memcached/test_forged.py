"""Forged values in all that the operator reads back from objects that a tenant can write: none raises an error."""

import json
from copy import deepcopy
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest

from memcached_api.annotations import (
    HELD_ANNOTATION,
    INTENT_ANNOTATION,
    MEMORY_ANNOTATION,
    ORIGIN_ANNOTATION,
    PAUSED_ANNOTATION,
    PINNED_AGENT_ANNOTATION,
    PINNED_IMAGE_ANNOTATION,
    RECORD_ANNOTATION,
    TEMPLATE_ANNOTATION,
    WARM_UP_ANNOTATION,
)
from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome, Plan
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.ownership import controller_reference, decide
from memcached_operator.kube.compare import digest, encoded
from memcached_operator.kube.resource import STATEFULSETS, Object, key_of
from memcached_operator.memcached.plan import plan_with
from memcached_operator.memcached.status import status_with
from memcached_operator.memcached.updates.record import Before, Ran, UpdateRecord, annotation, next_try
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, memcached, snapshot_of
from unit.memcached.updates.updating import created

DEFAULTS: Final = Images("memcached:1", "agent:1")
NEXT: Final[dict[str, Any]] = {"image": "memcached:2"}
SPEC: Final[dict[str, Any]] = {
    "identity": "Stable",
    "size": 2,
    "monitoring": {"podMonitor": {}, "tls": {"secretName": "tls"}},
    "tls": {"secretName": "tls"},
    "rollout": {"warmUp": {}},
}
"""The parts of a spec that make a plan read most of a workload."""


def planned(cr: Object, live: Object | None, *pods: Object) -> tuple[Plan, str]:
    """The plan, and the message of Degraded. As the engine, it compares each child with the live one."""
    children = {} if live is None else {key_of(STATEFULSETS, live): live}
    snapshot = snapshot_of(cr, children, pods, resize=Resize.ANY)
    plan = plan_with(DEFAULTS)(snapshot, NOW)
    for child in plan.children or ():
        decide(cr, build_intent(cr, child), live if live and child["kind"] == live["kind"] else None)
    status = status_with("cluster.example")(snapshot, Outcome(plan.problems, plan.notices, plan.update), NOW).status
    return plan, next(each["message"] for each in status["conditions"] if each["type"] == "Degraded")


def live_of(cr: Object, before: Object | None = None) -> Object:
    """The StatefulSet that the operator has written, as the API server returns it."""
    plan, _ = planned(cr, before)
    (child,) = (each for each in plan.children or () if each["kind"] == "StatefulSet")
    live = deepcopy(build_intent(cr, child))
    live["metadata"] |= {"uid": "child", "generation": 2, "ownerReferences": [controller_reference(cr)]}
    return live | {"status": {"observedGeneration": 2, "updateRevision": "cache-new"}}


PAUSE: Final[dict[str, Any]] = {"rollout": {"warmUp": {}, "paused": True}}
PAUSED: Final = memcached(**{**SPEC, **NEXT, **PAUSE})
LIVE: Final = live_of(PAUSED, live_of(memcached(**SPEC)))
"""A StatefulSet whose template is kept during a pause."""


def forged(live: Object, name: str, text: str) -> Object:
    """The object with another annotation."""
    annotations = {**live["metadata"]["annotations"], name: text}
    return {**live, "metadata": {**live["metadata"], "annotations": annotations}}


def held(template: Any) -> str:
    """The record of a template with a valid digest."""
    content = encoded(template)
    return f"{digest(content)} {content.decode()}"


def nested(levels: int) -> Any:
    """JSON with so many levels, and a field of which the engine copies what it contains."""
    value: Any = {"nodePort": 1}
    for _ in range(levels):
        value = {"a": value}
    return value


META: Final = {"labels": {"a": "b"}}
TEMPLATE: Final = LIVE["spec"]["template"]
FIRST: Final = {"name": "memcached", "image": "memcached:1"}
SHAPES: Final[dict[str, Any]] = {
    "no spec": {"metadata": {}},
    "no metadata": {"spec": TEMPLATE["spec"]},
    "empty": {},
    "metadata is a list": {**TEMPLATE, "metadata": []},
    "labels are null": {**TEMPLATE, "metadata": {"labels": None}},
    "labels are numbers": {**TEMPLATE, "metadata": {"labels": {"a": 1}}},
    "annotations are a text": {**TEMPLATE, "metadata": {**META, "annotations": "a"}},
    "an annotation is a map": {**TEMPLATE, "metadata": {**META, "annotations": {WARM_UP_ANNOTATION: {}}}},
    "spec is a text": {"metadata": META, "spec": "a"},
    "containers are a map": {"metadata": META, "spec": {"containers": {}}},
    "containers are texts": {"metadata": META, "spec": {"containers": ["memcached"]}},
    "a container has no name": {"metadata": META, "spec": {"containers": [{"image": "memcached:1"}]}},
    "a container has no image": {"metadata": META, "spec": {"containers": [{"name": "memcached"}]}},
    "ports are null": {"metadata": META, "spec": {"containers": [{**FIRST, "ports": None}]}},
    "a port has no number": {"metadata": META, "spec": {"containers": [{**FIRST, "ports": [{"name": "memcached"}]}]}},
    "a command is a number": {"metadata": META, "spec": {"containers": [{**FIRST, "name": "agent", "command": 1}]}},
    "a volume has no name": {"metadata": META, "spec": {"containers": [FIRST], "volumes": [{}]}},
    "a volume has texts as sources": {
        "metadata": META,
        "spec": {**TEMPLATE["spec"], "volumes": [{"name": "tls", "projected": {"sources": "a"}}]},
    },
    "deep": {**TEMPLATE, "a": nested(450)},
}
UNUSABLE: Final = {
    "empty": "",
    "no JSON": "0 no JSON",
    "too deep for JSON": "0 " + "[" * 100_000,
    **{name: held(template) for name, template in SHAPES.items()},
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_forged_record_of_a_kept_template_is_ignored_with_a_notice(text: str) -> None:
    plan, message = planned(PAUSED, forged(LIVE, HELD_ANNOTATION, text))
    (child,) = (each for each in plan.children or () if each["kind"] == "StatefulSet")
    assert child["spec"]["template"] == TEMPLATE
    assert f"StatefulSet cache: another client changed the annotation {HELD_ANNOTATION}; the operator" in message
    assert "another client" not in planned(PAUSED, live_of(PAUSED, forged(LIVE, HELD_ANNOTATION, text)))[1]


@pytest.mark.parametrize("volume", [{"emptyDir": {}}, {"projected": {"sources": []}}, {"projected": None}])
def test_kept_template_without_its_certificate_has_metrics_without_a_name(volume: Object) -> None:
    """The API server accepts such a template from another client, and the operator keeps it during a pause."""
    live = deepcopy(LIVE)
    live["spec"]["template"]["spec"]["volumes"] = [{"name": "tls", **volume}]
    del live["metadata"]["annotations"][HELD_ANNOTATION]
    assert "PodMonitor" in [child["kind"] for child in planned(PAUSED, live)[0].children or ()]


@pytest.mark.parametrize("name", [PINNED_IMAGE_ANNOTATION, PINNED_AGENT_ANNOTATION])
@pytest.mark.parametrize("text", ["", "no image", "A" * 2000])
def test_forged_image_is_replaced_with_the_default(name: str, text: str) -> None:
    cr = memcached(**SPEC)
    live = live_of(cr)
    plan, message = planned(cr, forged(live, name, text))
    assert f"another client changed the annotation {name}, which is not an image" in message
    (child,) = (each for each in plan.children or () if each["kind"] == "StatefulSet")
    assert child["metadata"]["annotations"][name] == live["metadata"]["annotations"][name]


TEXTS: Final = (
    "",
    " ",
    "x",
    "null",
    "0",
    "-1",
    "9" * 5000,
    "[]",
    "{}",
    '{"a":1}',
    "\u0663",
    "[" * 100_000,
    "é\n" * 500,
)
ANNOTATIONS: Final = (
    *(HELD_ANNOTATION, PAUSED_ANNOTATION, TEMPLATE_ANNOTATION, PINNED_IMAGE_ANNOTATION, PINNED_AGENT_ANNOTATION),
    *(INTENT_ANNOTATION, ORIGIN_ANNOTATION, WARM_UP_ANNOTATION, MEMORY_ANNOTATION, RECORD_ANNOTATION),
    "memcached-operator.example.com/args",
)


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_no_text_in_an_annotation_raises(name: str) -> None:
    """Of the StatefulSet, of its template, and of a pod; also while the rollout is paused."""
    for cr in (PAUSED, memcached(**SPEC)):
        for text in TEXTS:
            for live in (forged(LIVE, name, text), deepcopy(LIVE)):
                template, pod = deepcopy(TEMPLATE), created(0, TEMPLATE, "cache-old")
                template["metadata"]["annotations"][name] = text
                pod["metadata"]["annotations"][name] = text
                live["spec"]["template"] = template
                planned(cr, live, pod)


RECORD: Final = UpdateRecord("cache-bad", "2030-01-01T11:59:00Z", {"memcached": Ran("id-1")}, Before("", {}, {}))
TIMES: Final = ("", "x", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2030-01-01", "2030-01-01T12:00:00")
PARTS: Final[dict[str, tuple[Any, ...]]] = {
    "revision": ("", "cache-new", "-", 1, None),
    "since": (*TIMES, 1, None),
    "restarts": ({}, {"other": {"id": "a"}}, {"memcached": {}}, {"memcached": {"id": 1}}, [], nested(50)),
    "before": (None, {}, {"revision": "", "images": {"memcached": "no image"}, "annotations": {}}),
    "amounts": (
        {},
        {"memcached": {"limits": {"memory": "many"}}},
        {"memcached": {"x": {"memory": "1"}}},
        {"memcached": 1},
    ),
    "lowers": (True, "true", None),
    "failed": ("x" * 100_000, "a\nb", 1),
    "reason": ("", "Forged", 1),
    "ended": ({"memcached": "id-1"}, {"other": "a"}, {"memcached": 1}),
    "more": (1,),
}


@pytest.mark.parametrize(("field", "values"), PARTS.items(), ids=PARTS.keys())
def test_no_value_in_the_record_of_an_update_raises(field: str, values: tuple[Any, ...]) -> None:
    text = annotation(RECORD)[RECORD_ANNOTATION]
    for value in values:
        for revision in ("cache-old", "cache-new", "cache-bad", ""):
            pod = created(1, TEMPLATE, revision)
            pod["metadata"]["annotations"][RECORD_ANNOTATION] = json.dumps({**json.loads(text or ""), field: value})
            _, message = planned(memcached(**SPEC, **NEXT), live_of(memcached(**SPEC, **NEXT)), pod)
            assert len(message) < 4096


@pytest.mark.parametrize("since", TIMES)
def test_no_time_of_a_failed_resize_raises(since: str) -> None:
    assert next_try(msgspec.structs.replace(RECORD, since=since, failed="x"), NOW) <= NOW + timedelta(minutes=30)


def test_pod_without_its_label_gets_a_record_that_is_read() -> None:
    """Another client has removed the label with the revision."""
    cr = memcached(**SPEC, agent={"image": "agent:2"})
    live, pods = live_of(cr), [created(slot, live_of(memcached(**SPEC))["spec"]["template"], "") for slot in range(2)]
    plan, _ = planned(cr, live, *pods)
    assert plan.update is not None
    assert plan.update.step is not None
    pod = deepcopy(pods[1])
    pod["metadata"]["annotations"] |= (plan.update.step.patch or {})["metadata"]["annotations"]
    assert "another client" not in planned(cr, live, pods[0], pod)[1]


def test_number_of_pods_of_another_client_does_not_decide_how_much_is_computed() -> None:
    """A StatefulSet accepts two billion."""
    live = {**LIVE, "spec": {**LIVE["spec"], "replicas": 100_000}}
    plan, _ = planned(memcached(**SPEC, **NEXT), live)
    assert plan.update is not None
    assert list(plan.update.doing) == ["cache-999", "cache-998", "cache-997"]
