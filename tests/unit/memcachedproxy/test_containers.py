"""The fields that govern the container of a MemcachedProxy, and its messages."""

from typing import Any

import pytest

from memcached_api.annotations import RING_ANNOTATION
from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, key_of
from memcached_operator.memcachedproxy.controller import memcachedproxy as controller
from memcached_operator.memcachedproxy.references import MEMCACHEDS, reads
from unit.builders import NOW, announced, memcachedproxy, pod, slots, snapshot_of

KIND = controller(Images("docker.io/library/memcached:1.6.45"))


def built(**spec: Any) -> Object:
    """The Deployment of a proxy."""
    referenced = {Key(MEMCACHEDS, "test", "cache"): reads(slots(3))}
    found, *_ = list(
        KIND.plan(snapshot_of(announced(memcachedproxy(**spec)), referenced=referenced), NOW).children or ()
    )
    return {**found, "metadata": {**found["metadata"], "uid": "child"}}


def part(name: str, **spec: Any) -> Any:
    """A part of its pods, or of their container."""
    found = built(**spec)["spec"]
    pod_spec = found["template"]["spec"]
    return {**found, **pod_spec, **pod_spec["containers"][0]}.get(name)


FAILING: dict[str, tuple[Object, str, tuple[Object, ...], str]] = {
    "OOM-killed": (
        {"state": {}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
        "terminated with exit code 137 (OOMKilled); raise spec.resources.limits.memory, or lower spec.maxConnections",
        ({"resources": {"limits": {"memory": "1Gi"}}}, {"maxConnections": 100}),
        "resources",
    ),
    "without its program": (
        {"state": {"waiting": {"reason": "CreateContainerError", "message": "memcached: executable file not found"}}},
        "cannot be started: memcached: executable file not found; correct spec.image",
        ({"image": "memcached:1.6.46"},),
        "image",
    ),
    "as root": (
        {
            "state": {
                "waiting": {
                    "reason": "CreateContainerConfigError",
                    "message": "container has runAsNonRoot and image will run as root",
                }
            }
        },
        "cannot be started: container has runAsNonRoot and image will run as root; "
        "set spec.podTemplate.spec.securityContext.runAsUser",
        ({"podTemplate": {"spec": {"securityContext": {"runAsUser": 2}}}},),
        "securityContext",
    ),
}


@pytest.mark.parametrize(("state", "message", "remedies", "name"), FAILING.values(), ids=FAILING.keys())
def test_message_names_the_container_and_a_field_that_governs_it(
    state: Object, message: str, remedies: tuple[Object, ...], name: str
) -> None:
    live = built()
    found = pod("front-1", containerStatuses=[{"name": "proxy", "ready": False, **state}])
    found["metadata"]["annotations"] = {RING_ANNOTATION: "cache/cr/3"}
    snapshot = snapshot_of(memcachedproxy(), {key_of(DEPLOYMENTS, live): live}, (found,))
    degraded = KIND.status(snapshot, Outcome(), NOW).status["conditions"][2]
    assert degraded["message"] == f"Pod front-1: container proxy {message}"
    if name != "securityContext":
        assert [remedy for remedy in remedies if part(name) == part(name, **remedy)] == []


UNSCHEDULED: dict[str, tuple[str, str, tuple[Object, ...], str]] = {
    "memory": (
        "0/1 nodes are available: 1 Insufficient memory.",
        "lower spec.resources.requests.memory or spec.maxConnections, or add a node",
        ({"resources": {"requests": {"memory": "32Mi"}}}, {"maxConnections": 100}),
        "resources",
    ),
    "another pod": (
        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
        "add a node, or set spec.rollout.maxSurge to 0, which replaces one pod at a time",
        ({"rollout": {"maxSurge": 0}},),
        "strategy",
    ),
}


@pytest.mark.parametrize(("text", "remedy", "changes", "name"), UNSCHEDULED.values(), ids=UNSCHEDULED.keys())
def test_pod_that_is_not_scheduled_names_fields(text: str, remedy: str, changes: tuple[Object, ...], name: str) -> None:
    live = built()
    since = {"lastTransitionTime": "2030-01-01T11:00:00Z"}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text, **since}
    found = pod("front-1", phase="Pending", conditions=[condition])
    meta = {**found["metadata"], "creationTimestamp": "2030-01-01T11:00:00Z"}
    snapshot = snapshot_of(memcachedproxy(), {key_of(DEPLOYMENTS, live): live}, ({**found, "metadata": meta},))
    progressing = KIND.status(snapshot, Outcome(), NOW).status["conditions"][1]
    assert remedy.lower() in progressing["message"].lower()
    assert [change for change in changes if part(name) == part(name, **change)] == []
