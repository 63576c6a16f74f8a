"""A Memcached with slots: its StatefulSet, its Services and the addresses of its slots."""

from typing import Any

import pytest

from memcached_api.annotations import HELD_ANNOTATION, ORIGIN_ANNOTATION, PAUSED_ANNOTATION
from memcached_api.images import Images
from memcached_api.memcached.rules.spec import MAX_SERVICES, MAX_SLOTS
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    key_of,
)
from memcached_operator.memcached.plan import CONFLICT_DELAY, CREATION_DELAY, plan_with
from memcached_operator.memcached.slots.pause import MAX_TEMPLATE_LENGTH, OUTDATED, UP_TO_DATE
from memcached_operator.memcached.status import status_with
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW
from unit.builders import memcached as cr_of

IMAGE = "example.com/memcached:1"
NEXT = "example.com/memcached:2"
DOMAIN = "cluster.example"
PAUSE = {"rollout": {"paused": True}}


def planned(live: Object | None = None, **spec: Any) -> dict[str, Object]:
    """The children of a Memcached with slots, by kind and the rest of their names: `Service-0`."""
    plan = plan_with(Images(IMAGE), DOMAIN)(snapshot(live, **spec), NOW)
    return {f"{each['kind']}{each['metadata']['name'].removeprefix('cache')}": each for each in plan.children or ()}


def snapshot(live: Object | None = None, **spec: Any) -> Snapshot:
    """A Memcached with slots and its live StatefulSet."""
    return Snapshot(cr_of(**stable(spec)), {} if live is None else {key_of(STATEFULSETS, live): live})


def stable(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec with slots unless it says otherwise."""
    return {"identity": "Stable", **spec}


def template(statefulset: Object) -> Object:
    """The pod template."""
    return statefulset["spec"]["template"]


def image(statefulset: Object) -> str:
    """The image of the pods."""
    return template(statefulset)["spec"]["containers"][0]["image"]


def paused(statefulset: Object) -> str | None:
    """The annotation about a pause."""
    return statefulset["metadata"]["annotations"].get(PAUSED_ANNOTATION)


@pytest.mark.parametrize(
    "spec", [{}, {"podTemplate": {"metadata": {"labels": {"team": "web"}}}, "containerPort": 2000}]
)
def test_pods_are_those_of_a_deployment(spec: dict[str, Any]) -> None:
    """What a pooled cache is tested with, such as each field of the pod template, holds for slots too."""
    pooled = planned(identity="Pooled", **spec)["Deployment"]
    found = template(planned(**spec)["StatefulSet"])
    assert list(found["metadata"].pop("annotations")) == [ORIGIN_ANNOTATION]
    assert found == template(pooled)


def test_fixed_addresses_are_listed_only_with_services_of_ours() -> None:
    """Another owner's Service of the name of a slot has other servers."""
    spec: Object = {"identity": "Stable", "size": 3, "service": {"perPod": True}}
    children = plan_with(Images(IMAGE))(Snapshot(cr_of(**spec)), NOW).children or ()
    (workload,) = [each for each in children if each["kind"] == "StatefulSet"]
    live = {Key(STATEFULSETS, "test", "cache"): {**workload, "spec": {**workload["spec"], "replicas": 2}}}
    maps = {Key(CONFIG_MAPS, "test", "cache-connection"): each for each in children if each["kind"] == "ConfigMap"}
    services = {Key(SERVICES, "test", each["metadata"]["name"]): each for each in children if each["kind"] == "Service"}

    def listed(*missing: str, conflict: bool = False, created: bool = True) -> tuple[bool, float | None]:
        known = {key: each for key, each in services.items() if key.name not in missing}
        known |= maps if created else {}
        conditions = [{"type": "Degraded", "status": "True", "reason": "Conflict"}] if conflict else []
        cr = {**cr_of(**spec), "status": {"conditions": conditions}}
        plan = plan_with(Images(IMAGE))(Snapshot(cr, {**live, **known}), NOW)
        (config,) = [each for each in plan.children or () if each["kind"] == "ConfigMap"]
        return "fixed-servers" in config["data"], plan.requeue_if_applied

    assert listed() == (True, None)
    assert listed("cache-2") == (True, None), "this slot is new"
    assert listed("cache-1") == (False, CREATION_DELAY)
    assert listed("cache-1", conflict=True) == (False, CONFLICT_DELAY)
    assert listed("cache-1", created=False) == (True, None), "the ConfigMap is created after the Service"
    assert listed("cache-1", created=False, conflict=True) == (False, CONFLICT_DELAY)


def status_of(**spec: Any) -> dict[str, Any]:
    """The status of a Memcached without children."""
    return status_with(DOMAIN)(Snapshot(cr_of(**spec)), Outcome(), NOW).status


def test_status_lists_the_servers_of_slots_only() -> None:
    assert "servers" not in status_of(size=2)
    servers = status_of(size=2, identity="Stable")["servers"]
    assert servers == [f"cache-{slot}.cache.test.svc.cluster.example:11211" for slot in range(2)]


def test_invalid_spec_keeps_the_servers() -> None:
    cr = {**cr_of(size=0, identity="Stable"), "status": {"servers": ["a:1"]}}
    assert status_with(DOMAIN)(Snapshot(cr), Outcome(), NOW).status["servers"] == ["a:1"]


def test_status_names_the_statefulset() -> None:
    available, *_ = status_of(identity="Stable")["conditions"]
    assert available["message"] == "The StatefulSet does not exist yet"


def test_pause_before_any_change() -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    found = planned(live, image=IMAGE, size=3, **PAUSE)["StatefulSet"]
    assert template(found) == template(live)
    assert (paused(live), paused(found)) == (None, UP_TO_DATE)
    assert found["spec"]["replicas"] == 3


def test_changed_template_is_not_written_during_a_pause() -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    stored = {**live, "spec": {**live["spec"], "template": {**template(live), "defaulted": True}}}
    found = planned(stored, image=NEXT, **PAUSE)["StatefulSet"]
    assert (template(found), paused(found)) == (template(stored), OUTDATED)
    assert (found["spec"]["replicas"], paused(planned(found, image=NEXT, **PAUSE)["StatefulSet"])) == (1, OUTDATED)
    back = planned(found, image=IMAGE, **PAUSE)["StatefulSet"]
    assert (template(back), paused(back)) == (template(live), UP_TO_DATE)
    resumed = planned(found, image=NEXT)["StatefulSet"]
    assert (image(resumed), paused(resumed)) == (NEXT, None)


def test_port_of_a_template_that_is_not_written_is_not_used() -> None:
    """Clients would be sent to a port on which no pod listens."""
    live = planned(image=IMAGE)["StatefulSet"]
    found = planned(live, image=IMAGE, containerPort=12000, networkPolicy={}, **PAUSE)
    assert found["Service"]["spec"]["ports"][0]["port"] == 11211
    assert found["ConfigMap-connection"]["data"]["MEMCACHED_PORT"] == "11211"
    assert found["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"] == 11211
    paused_now = snapshot(found["StatefulSet"], image=IMAGE, containerPort=12000, **PAUSE)
    assert status_with(DOMAIN)(paused_now, Outcome(), NOW).status["servers"][0].endswith(":11211")
    assert planned(found["StatefulSet"], containerPort=12000)["Service"]["spec"]["ports"][0]["port"] == 12000


def test_removed_annotation_is_written_again_during_a_pause() -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    stripped: Object = {**live, "metadata": {**live["metadata"], "annotations": {}}}
    assert paused(planned(stripped, image=IMAGE, **PAUSE)["StatefulSet"]) == UP_TO_DATE
    assert paused(planned(stripped, image=NEXT, **PAUSE)["StatefulSet"]) == OUTDATED


def test_annotation_of_another_client_does_not_pause() -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    live["metadata"]["annotations"][PAUSED_ANNOTATION] = OUTDATED
    progressing = status_with(DOMAIN)(snapshot(live, image=IMAGE), Outcome(), NOW).status["conditions"][1]
    assert progressing["reason"] != "Paused"


def test_drift_of_an_unchanged_template_is_reverted_during_a_pause() -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    drifted = planned(image=NEXT)["StatefulSet"]
    drifted["metadata"]["annotations"] = live["metadata"]["annotations"]
    assert image(planned(drifted, image=IMAGE, **PAUSE)["StatefulSet"]) == IMAGE


def drifted(live: Object, text: str = "elsewhere:1") -> Object:
    """A live StatefulSet whose image another client changed."""
    (container,) = template(live)["spec"]["containers"]
    pods = {**template(live), "spec": {**template(live)["spec"], "containers": [{**container, "image": text}]}}
    return {**live, "spec": {**live["spec"], "template": pods}}


def annotated(live: Object, **annotations: str | None) -> Object:
    """A live object with other annotations; None removes one."""
    found = {**live["metadata"]["annotations"], **annotations}
    return {**live, "metadata": {**live["metadata"], "annotations": {k: v for k, v in found.items() if v is not None}}}


def test_drift_of_a_template_that_is_kept_is_reverted_during_a_pause() -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    found = planned(live, image=NEXT, **PAUSE)["StatefulSet"]
    assert planned(drifted(found), image=NEXT, **PAUSE)["StatefulSet"] == found
    assert HELD_ANNOTATION not in planned(found, image=NEXT)["StatefulSet"]["metadata"]["annotations"]


@pytest.mark.parametrize("change", ["{}", "", "no JSON", f'0 {{"a":{"[" * 100_000}', None])
def test_record_of_the_kept_template_that_another_client_changed_is_not_used(change: str | None) -> None:
    live = planned(image=IMAGE)["StatefulSet"]
    found = planned(live, image=NEXT, **PAUSE)["StatefulSet"]
    assert planned(annotated(found, **{HELD_ANNOTATION: change}), image=NEXT, **PAUSE)["StatefulSet"] == found
    record = found["metadata"]["annotations"][HELD_ANNOTATION].replace(IMAGE, "elsewhere:1")
    assert planned(annotated(found, **{HELD_ANNOTATION: record}), image=NEXT, **PAUSE)["StatefulSet"] == found


def test_long_template_is_not_recorded() -> None:
    """Kubernetes denies objects with annotations of more than 256 KiB."""
    live = drifted(planned(image=IMAGE)["StatefulSet"], "a" * MAX_TEMPLATE_LENGTH)
    found = planned(live, image=NEXT, **PAUSE)["StatefulSet"]
    assert (template(found), paused(found)) == (template(live), OUTDATED)
    assert HELD_ANNOTATION not in found["metadata"]["annotations"]


def test_orphan_is_adopted_with_its_template_during_a_pause() -> None:
    """Its owner reference was removed: the plan is the same as with it."""
    live = planned(image=IMAGE)["StatefulSet"]
    cr = cr_of(**stable({"image": NEXT, **PAUSE}))
    plan = plan_with(Images(IMAGE))(Snapshot(cr, orphans={key_of(STATEFULSETS, live): live}), NOW)
    (found,) = [each for each in plan.children or () if each["kind"] == "StatefulSet"]
    assert found == planned(live, image=NEXT, **PAUSE)["StatefulSet"]


def test_servers_have_the_port_of_an_orphan_that_is_not_adopted_yet() -> None:
    """The adoption can fail, for example for lack of a permission."""
    live = planned(planned()["StatefulSet"], containerPort=12000, **PAUSE)["StatefulSet"]
    cr = cr_of(**stable({"containerPort": 12000, **PAUSE}))
    orphaned = Snapshot(cr, orphans={key_of(STATEFULSETS, live): live})
    assert status_with(DOMAIN)(orphaned, Outcome(), NOW).status["servers"][0].endswith(":11211")


@pytest.mark.parametrize(("identity", "resource"), [("Stable", STATEFULSETS), ("Pooled", DEPLOYMENTS)])
def test_orphan_keeps_its_pinned_image(identity: str, resource: Resource) -> None:
    live = planned(identity=identity)[resource.kind]
    snapshot_of_orphan = Snapshot(cr_of(identity=identity), orphans={key_of(resource, live): live})
    plan = plan_with(Images(NEXT))(snapshot_of_orphan, NOW)
    (found,) = [each for each in plan.children or () if each["kind"] == resource.kind]
    assert image(found) == IMAGE


def test_new_object_is_created_although_it_is_paused() -> None:
    found = planned(image=IMAGE, **PAUSE)["StatefulSet"]
    assert (image(found), paused(found)) == (IMAGE, UP_TO_DATE)


@pytest.mark.parametrize(
    ("spec", "denied"),
    [
        ({"identity": "Stable"}, []),
        ({"identity": "Pooled"}, []),
        ({"identity": "Other"}, ["spec.identity"]),
        ({"identity": "Stable", "size": MAX_SLOTS}, []),
        ({"identity": "Stable", "size": MAX_SLOTS + 1}, ["spec.size"]),
        ({"size": MAX_SLOTS + 1}, []),
        ({"identity": "Stable", "rollout": {"maxUnavailable": 1, "maxSurge": 0}}, []),
        ({"identity": "Stable", "rollout": {"maxUnavailable": 2}}, []),
        ({"identity": "Stable", "rollout": {"maxUnavailable": "1%"}}, []),
        ({"identity": "Stable", "rollout": {"maxUnavailable": 0}}, ["spec.rollout.maxUnavailable"]),
        ({"identity": "Stable", "rollout": {"maxUnavailable": "0%"}}, ["spec.rollout.maxUnavailable"]),
        ({"rollout": {"maxUnavailable": "0%"}}, []),
        ({"identity": "Stable", "rollout": {"maxSurge": 1}}, ["spec.rollout.maxSurge"]),
        ({"identity": "Stable", "rollout": {"maxSurge": "0%"}}, ["spec.rollout.maxSurge"]),
        ({"rollout": {"maxSurge": 1}}, []),
        ({"identity": "Stable", "service": {"perPod": True}}, []),
        ({"identity": "Stable", "service": {"perPod": True}, "size": MAX_SERVICES}, []),
        ({"identity": "Stable", "service": {"perPod": True}, "size": MAX_SERVICES + 1}, ["spec.size"]),
        ({"identity": "Stable", "service": {"perPod": True}, "size": MAX_SLOTS + 1}, ["spec.size"]),
        ({"identity": "Pooled", "service": {"perPod": True}}, ["spec.service.perPod"]),
        ({"service": {"perPod": True}}, ["spec.service.perPod"]),
        ({"service": {"perPod": False}}, []),
        ({"identity": "Stable", "rollout": {"paused": True}}, []),
    ],
)
def test_what_slots_allow(spec: dict[str, Any], denied: list[str]) -> None:
    assert [error.field for error in MEMCACHED.validate(cr_of(**spec))] == denied


def test_metrics_that_are_switched_on_during_a_pause_wait_for_the_agents() -> None:
    live = planned(networkPolicy={})["StatefulSet"]
    found = planned(live, networkPolicy={}, monitoring={"podMonitor": {}}, **PAUSE)
    assert len(template(found["StatefulSet"])["spec"]["containers"]) == 1
    assert "PodMonitor" not in found
    assert len(found["NetworkPolicy"]["spec"]["ingress"]) == 1
