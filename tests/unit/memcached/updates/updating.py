"""Builders for tests of updates of pods: templates, pods that were created from them, and what happened to them."""

from typing import Any

from memcached_api.annotations import RECORD_ANNOTATION
from memcached_operator.kube.resource import STATEFULSETS, Object
from memcached_operator.memcached.updates.decision import UpdateDecision, decide
from memcached_operator.memcached.updates.facts import Facts
from memcached_operator.memcached.updates.origin import template_origin, with_origin
from memcached_operator.memcached.updates.record import Ran, UpdateRecord, annotation
from memcached_operator.memcached.updates.target import InPlace, Target
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, owned, pod_of, typed

OLD, NEW = "cache-old", "cache-new"
ARGS, MEMORY, GATE = (f"memcached-operator.example.com/{name}" for name in ("args", "memory", "warm-up"))
RULES = InPlace((ARGS, MEMORY, GATE), ARGS, "agent", frozenset({MEMORY}), "set it")
READY_SINCE, LATER = "2030-01-01T11:00:00Z", "2030-01-01T11:59:00Z"
JUST_NOW = "2030-01-01T11:59:57Z"
IMAGE, ARGUMENTS = Ran("id-1", "sha-memcached:1"), Ran("id-1", args=True)
"""The restart of memcached with another image, and with other arguments."""


def template(
    fixed: str = "a",
    image: str = "memcached:1",
    agent: str = "agent:1",
    limit: str = "128Mi",
    annotations: dict[str, str] | None = None,
    cpu: str = "10m",
    agent_limit: str = "48Mi",
    more: dict[str, str] | None = None,
) -> Object:
    """A pod template of two containers. `more`: further limits of the first one. No `agent_limit`: empty."""
    first = {"name": "memcached", "image": image, "resources": {"limits": {"memory": limit, **(more or {})}}}
    limits = {"limits": {"memory": agent_limit}} if agent_limit else {}
    second = {"name": "agent", "image": agent, "resources": {**limits, "requests": {"cpu": cpu}}}
    given: Object = {
        "metadata": {"labels": {}, "annotations": annotations or {}},
        "spec": {"containers": [first, second]},
    }
    return with_origin(given, fixed)


def created(
    slot: int, origin: Object, revision: str = OLD, record: UpdateRecord | None = None, ready: str | None = READY_SINCE
) -> Object:
    """A running pod that was created from a template. `ready`: since when it is; None if it is not."""
    meta = {
        "name": f"cache-{slot}",
        "namespace": "test",
        "uid": f"uid-{slot}",
        "resourceVersion": "7",
        "labels": {"controller-revision-hash": revision},
        "annotations": {**origin["metadata"]["annotations"], **{n: t for n, t in annotation(record).items() if t}},
    }
    statuses: list[Object] = [
        {
            "name": each["name"],
            "ready": True,
            "restartCount": 0,
            "containerID": "id-1",
            "imageID": f"sha-{each['image']}",
            "state": {"running": {"startedAt": READY_SINCE}},
            "resources": each["resources"],
        }
        for each in reversed(origin["spec"]["containers"])  # the kubelet sorts them by name
    ]
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ready or READY_SINCE}
    status = {"phase": "Running", "conditions": [condition], "containerStatuses": statuses}
    return {"kind": "Pod", "metadata": meta, "spec": origin["spec"], "status": status}


def with_status(pod: Object, container: str = "memcached", **changed: Any) -> Object:
    """A pod with another status of a container."""
    statuses = [each | (changed if each["name"] == container else {}) for each in pod["status"]["containerStatuses"]]
    return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}


def just_unready(pod: Object, since: str = LATER) -> Object:
    """A pod that has not been ready since then, by default for a minute."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": since}
    return {**pod, "status": {**pod["status"], "conditions": [condition]}}


def ended(code: int = 0, container: str = "id-1") -> Object:
    """The last state of a container that has ended."""
    return {"terminated": {"containerID": container, "exitCode": code, "reason": "Completed"}}


def with_restart(
    pod: Object, since: str = LATER, container: str = "memcached", code: int = 0, **changed: Any
) -> Object:
    """A pod with a container that was restarted, and runs since then."""
    given: dict[str, Any] = {
        "containerID": "id-2",
        "state": {"running": {"startedAt": since}},
        "lastState": ended(code),
    }
    return with_status(pod, "memcached", **(given | changed))


def with_condition(pod: Object, name: str, **condition: str) -> Object:
    """A pod with a further condition that is true."""
    conditions = [*pod["status"]["conditions"], {"type": name, "status": "True", **condition}]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def with_limit(pod: Object, limit: str, *, in_effect: bool = False) -> Object:
    """A pod whose first container has another memory limit in its spec, and in its status if it is in effect."""
    first, *others = pod["spec"]["containers"]
    resources = {"limits": {"memory": limit}}
    found = {**pod, "spec": {**pod["spec"], "containers": [{**first, "resources": resources}, *others]}}
    return with_status(found, resources=resources) if in_effect else found


def statefulset(target: Object, size: int = 3, **changed: Any) -> Object:
    """A live StatefulSet whose controller has seen this template as the revision NEW."""
    status: Object = {"observedGeneration": 2, "updateRevision": NEW}
    spec: Object = {"replicas": size, "template": target}
    return {**owned(resource=STATEFULSETS, generation=2), "spec": spec, "status": status} | changed


def decided(
    target: Object,
    *pods: Object,
    resize: Resize | None = Resize.ANY,
    size: int | None = None,
    rules: InPlace = RULES,
) -> UpdateDecision:
    """The update of these pods to a template."""
    found = decide(statefulset(target, len(pods) if size is None else size), typed(*pods), rules, resize, NOW)
    assert found is not None
    return found


def facts(pod: Object, target: Object) -> Facts:
    """The facts about a pod that is updated to a template."""
    origin = template_origin(target)
    assert origin is not None
    return Facts.of(pod_of(pod), Target(NEW, target, origin, RULES, Resize.ANY, min_ready=0), NOW)


def recorded(patch: Object | None) -> str | None:
    """The record in a patch."""
    return (patch or {}).get("metadata", {}).get("annotations", {}).get(RECORD_ANNOTATION)
