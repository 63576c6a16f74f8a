"""Whether memcached fails with an image, by the pods of a cache that is degraded."""

from typing import Any

import pytest

from kubectl_memcached.model.failing import REASONS, RECORD, signs
from memcached_api.annotations import RECORD_ANNOTATION
from unit.memcached.updates.test_steps import FAILED, MISSING, changed
from unit.memcached.updates.updating import NEW as REVISION
from unit.memcached.updates.updating import created, decided, recorded, with_status
from unit.plugin.fleet import CRASH, LATE, NEW, OLD, PULL
from unit.plugin.samples import memcached

Object = dict[str, Any]

SINCE, EARLIER = "2026-11-20T10:00:00Z", "2026-11-20T09:00:00Z"
RUNNING: Object = {"ready": True, "containerID": "id", "state": {"running": {}}}
UPDATED: Object = {
    RECORD: '{"revision": "r", "restarts": {"memcached": {"id": "old"}}, "ended": {"memcached": "older"}}'
}


def pod(image: str = NEW, agent: Object | None = None, annotations: Object | None = None, **status: Any) -> Object:
    """A pod with a status of memcached. `agent`: the status of the agent."""
    statuses = [{"name": "agent", **RUNNING, **(agent or {})}, {"name": "memcached", **RUNNING, **status}]
    return {
        "metadata": {"uid": "u", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "agent", "image": "a"}, {"name": "memcached", "image": image}]},
        "status": {
            "phase": "Running",
            "containerStatuses": statuses,
            "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}],
        },
    }


def waiting(reason: str, **last: Any) -> Object:
    """A container that waits. `last`: its last end."""
    return {"ready": False, "state": {"waiting": {"reason": reason}}, "lastState": {"terminated": last} if last else {}}


def crashed(code: int = 1, container: str = "id-1", at: str = SINCE) -> Object:
    """The end of a container."""
    return {"terminated": {"exitCode": code, "containerID": container, "finishedAt": at}}


def found(reason: str, *pods: Object, image: str = NEW, before: str = OLD) -> list[str]:
    """The signs of a cache that is degraded since SINCE."""
    cr = memcached(None, {"Degraded": "True"}, Degraded=reason)
    cr["status"]["conditions"][0]["lastTransitionTime"] = SINCE
    return sorted(signs(cr, pods, image, before))


UNREADY: Object = {"ready": False}
FAILING: dict[str, tuple[Object, str]] = {
    "image": (pod(**waiting("ErrImagePull")), f"u/{NEW}"),
    "no start": (pod(**waiting("CreateContainerConfigError")), f"u/{NEW}"),
    "no start in place": (
        pod(annotations=UPDATED, **waiting("RunContainerError", containerID="old", exitCode=0)),
        f"u/{NEW}",
    ),
    "back-off": (pod(**waiting("CrashLoopBackOff", containerID="id-1", exitCode=0)), "u/id-1"),
    "end": (pod(state=crashed()), "u/id-1"),
    "restart": (pod(lastState=crashed(at=EARLIER), ready=False), "u/id-1"),
    "restart and ready": (pod(lastState=crashed()), "u/id-1"),
    "mirror": (pod("mirror/memcached:1.6.45", state=crashed()), "u/id-1"),
    "digest of a webhook": (pod(f"{NEW}@sha256:{'a' * 64}", state=crashed()), "u/id-1"),
    "second crash in place": (pod(annotations=UPDATED, state=crashed()), "u/id-1"),
    "forged record": (pod(annotations={RECORD: "[" * 99999}, state=crashed()), "u/id-1"),
}
WORKING: dict[str, Object] = {
    "runs": pod(),
    "old image": pod(OLD, state=crashed()),
    "other container": pod(agent={"ready": False, "state": crashed()}),
    "no status": {"metadata": {}, "status": {}},
    "creating": pod(**waiting("ContainerCreating")),
    "planned end": pod(state=crashed(0)),
    "crash long ago": pod(lastState=crashed(at=EARLIER)),
    "crash of the old image": pod(annotations=UPDATED, lastState=crashed(container="old"), ready=False),
    "earlier crash of the old image": pod(annotations=UPDATED, lastState=crashed(container="older"), ready=False),
    "deleted": {**pod(state=crashed()), "metadata": {"deletionTimestamp": SINCE}},
    "evicted": {**pod(state=crashed()), "status": {**pod(state=crashed())["status"], "phase": "Failed"}},
    "failed resize": pod(OLD, annotations={RECORD: '{"revision": "r", "failed": "x", "reason": "ApplyFailed"}'}),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("reason", REASONS)
def test_pod_whose_memcached_fails_has_a_sign(reason: str, name: str) -> None:
    failing, sign = FAILING[name]
    assert sign in found(reason, pod(), failing)


@pytest.mark.parametrize("name", FAILING)
def test_more_severe_reason_does_not_hide_a_container_that_is_not_ready(name: str) -> None:
    failing, sign = FAILING[name]
    assert found("Conflict", failing) == ([] if name == "restart and ready" else [sign])


@pytest.mark.parametrize("name", WORKING)
def test_other_pods_have_none(name: str) -> None:
    assert found(CRASH, WORKING[name]) == found(PULL, WORKING[name]) == found("Conflict", WORKING[name]) == []


@pytest.mark.parametrize(
    ("late", "is_found"),
    [
        (pod(**UNREADY), True),
        (pod(agent=UNREADY), True),
        (pod(**waiting("ContainerCreating")), True),
        (pod(**waiting("PodInitializing")), False),
        (pod(agent=waiting("ContainerCreating")), False),
        (pod(OLD, **UNREADY), False),
        (pod(annotations=UPDATED, ready=False, containerID="old"), False),
        ({**pod(), "status": {**pod(**waiting("ContainerCreating"))["status"], "conditions": []}}, False),
    ],
)
def test_pod_that_is_not_ready_counts_if_the_rollout_is_late(late: Object, is_found: bool) -> None:
    assert (bool(found(LATE, late)), found(CRASH, late)) == (is_found, [])


@pytest.mark.parametrize(
    ("own", "image", "before", "is_found"),
    [
        (OLD, "", "", True),
        ("b/a:1", "a/a:1", "b/a:1", False),
        ("b/a:1@sha256:0", "a/a:1", "b/a:1", False),
        ("a/a:1@sha256:0", "a/a:1@sha256:1", "a/a:0", False),
    ],
)
def test_image_is_any_or_that_of_the_spec(own: str, image: str, before: str, is_found: bool) -> None:
    """Another registry with the same tag is not the mirror of the new one, but the image before."""
    assert bool(found(PULL, pod(own, **waiting("ErrImagePull")), image=image, before=before)) is is_found


def test_image_that_the_operator_has_taken_back_is_a_sign() -> None:
    target = changed(image="memcached:2")
    step = decided(target, with_status(created(0, target, REVISION, FAILED, ready=None), **MISSING)).step
    record = recorded(step and step.patch)
    restored = pod(OLD, annotations={RECORD_ANNOTATION: record})
    assert (found(PULL, restored), found(CRASH, restored)) == ([f"u/{REVISION}"], [])
