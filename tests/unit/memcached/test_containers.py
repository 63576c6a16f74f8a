"""Each container, the fields that govern it, and the messages about a failing agent, with a real kubelet's statuses."""

from typing import Any

import msgspec
import pytest

from memcached_api.images import Images
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Object, Resource, key_of, nested_map
from memcached_operator.memcached.containers import CONTAINERS, DISRUPTIONS
from memcached_operator.memcached.desired.deployment import deployment
from memcached_operator.memcached.desired.statefulset import statefulset
from memcached_operator.memcached.images import chosen
from memcached_operator.memcached.status import status_with
from unit.builders import NOW, memcached, pod, snapshot_of

IMAGES = Images("example.com/memcached:1", "example.com/agent:1")
EVERYTHING: Object = {"identity": "Stable", "monitoring": {}, "cache": {"warmRestart": True}}
status = status_with("cluster.example")


def built(**spec: Any) -> Object:
    """The workload of a Memcached."""
    decoded = msgspec.convert(spec, MemcachedSpec)
    build = statefulset if decoded.identity == "Stable" else deployment
    return build(memcached(**spec), decoded, chosen(decoded, None, IMAGES).images)


def pod_spec(**spec: Any) -> Object:
    """The spec of its pods."""
    return built(**spec)["spec"]["template"]["spec"]


def test_table_has_every_container_and_recognizes_it_by_its_ports() -> None:
    found = {each["name"]: {port["name"] for port in each["ports"]} for each in pod_spec(**EVERYTHING)["containers"]}
    assert CONTAINERS.keys() == found.keys()
    assert all(row.ports <= found[name] for name, row in CONTAINERS.items())
    assert CONTAINERS["agent"].ports == found["agent"]


def of_container(pod: Object, name: str) -> Object:
    """A container of a pod."""
    return next(each for each in pod["containers"] if each["name"] == name)


def part(pod: Object, container: str, path: str) -> Any:
    """The part of a pod that a remedy changes. `path`: in the container, or in the pod if it begins with a dot."""
    found = pod if path.startswith(".") else of_container(pod, container)
    *before, last = path.removeprefix(".").split(".")
    return nested_map(found, *before).get(last)


SECRETS: Object = {"imagePullSecrets": [{"name": "a"}]}
USER: Object = {"podTemplate": {"spec": {"securityContext": {"runAsUser": 7}}}}
LIMIT: Object = {"resources": {"limits": {"memory": "1Gi"}}}
GOVERNED: dict[tuple[str, str], tuple[Object, str]] = {
    ("memcached", "spec.image"): ({"image": "a:2"}, "image"),
    ("memcached", "spec.resources.limits.memory"): (LIMIT, "resources.limits.memory"),
    ("memcached", "spec.cache.warmRestart"): ({"cache": {"warmRestart": False}}, "command"),
    ("memcached", "spec.imagePullSecrets"): (SECRETS, ".imagePullSecrets"),
    ("memcached", "spec.podTemplate.spec.securityContext.runAsUser"): (USER, ".securityContext.runAsUser"),
    ("agent", "spec.agent.image"): ({"agent": {"image": "a:2"}}, "image"),
    ("agent", "spec.agent.resources.limits.memory"): ({"agent": LIMIT}, "resources.limits.memory"),
    ("agent", "spec.imagePullSecrets"): (SECRETS, ".imagePullSecrets"),
    ("agent", "spec.podTemplate.spec.securityContext.runAsUser"): (USER, ".securityContext.runAsUser"),
}
"""Another value of each field that a message names for a container, and what it must change."""


def named_fields(container: str) -> set[str]:
    """The fields that the messages about a container name."""
    row = CONTAINERS[container]
    actions = (row.credentials, *row.memory, *(action for _, remedy in row.start for action in remedy))
    return {row.image, *(field for action in actions for field in action.fields)}


def test_every_named_field_is_tried() -> None:
    assert {(name, field) for name in CONTAINERS for field in named_fields(name)} == GOVERNED.keys()


@pytest.mark.parametrize(("container", "field"), GOVERNED)
def test_field_changes_what_its_remedy_promises(container: str, field: str) -> None:
    spec, path = GOVERNED[container, field]
    before, after = pod_spec(**EVERYTHING), pod_spec(**{**EVERYTHING, **spec})
    assert part(before, container, path) != part(after, container, path)
    other = next(name for name in CONTAINERS if name != container)
    if field != "spec.cache.warmRestart":  # the agent restarts memcached
        assert of_container(before, other) == of_container(after, other)


DISRUPTED: dict[str, tuple[Object, str, str]] = {
    "spec.resources.limits.ephemeral-storage": (
        {"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
        "memcached",
        "resources.limits.ephemeral-storage",
    ),
    "spec.agent.resources.limits.ephemeral-storage": (
        {"agent": {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}},
        "agent",
        "resources.limits.ephemeral-storage",
    ),
    "spec.resources.requests.memory": (
        {"resources": {"requests": {"memory": "1Gi"}}},
        "memcached",
        "resources.requests.memory",
    ),
    "spec.cache.verbosity": ({"cache": {"verbosity": 2}}, "memcached", "command"),
    "spec.podTemplate.spec.priorityClassName": (
        {"podTemplate": {"spec": {"priorityClassName": "a"}}},
        "memcached",
        ".priorityClassName",
    ),
    "spec.podTemplate.spec.tolerations": (
        {"podTemplate": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
        "memcached",
        ".tolerations",
    ),
    "spec.podTemplate.spec.nodeSelector": (
        {"podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}},
        "memcached",
        ".nodeSelector",
    ),
}
"""Another value of each field that a message about stopped pods names, and what it must change."""


def test_pods_that_kubernetes_stops_have_remedies_that_change_them() -> None:
    named = {field for remedy in DISRUPTIONS.values() for action in remedy for field in action.fields}
    assert named == DISRUPTED.keys()
    base: Object = {"identity": "Stable", "monitoring": {}}
    for spec, container, path in DISRUPTED.values():
        assert part(pod_spec(**base), container, path) != part(pod_spec(**{**base, **spec}), container, path), path


RUNNING: Object = {"name": "memcached", "ready": True, "restartCount": 0, "state": {"running": {}}, "lastState": {}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1m20s restarting failed container=agent"}}
NOT_ADMITTED = 'failed to pull and unpack image "localhost:1/agent:2": unexpected status: 401 Unauthorized'
NOT_REACHED = (
    'failed to pull and unpack image "localhost:1/agent:2": failed to resolve reference "localhost:1/agent:2": failed '
    'to do request: Head "http://localhost:1/v2/agent/manifests/2": dial tcp 127.0.0.1:1: connect: connection refused'
)
NO_PROGRAM = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    'unable to start container process: exec: "memcached-agent": executable file not found in $PATH: unknown'
)
ROOT = 'container has runAsNonRoot and image will run as root (pod: "cache-0_test(a539c6cb)", container: agent)'


def ended(code: int, reason: str, message: str = "") -> Object:
    """The status of an agent in a crash loop."""
    last = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"state": BACK_OFF, "lastState": last}


FAILING: dict[str, tuple[Object, str, str]] = {
    "OOM-killed": (
        ended(137, "OOMKilled"),
        "PodsCrashing",
        "container agent terminated with exit code 137 (OOMKilled); raise spec.agent.resources.limits.memory",
    ),
    "crashing": (
        ended(1, "Error"),
        "PodsCrashing",
        "container agent terminated with exit code 1 (Error); see kubectl logs --previous -n test cache-0 -c agent",
    ),
    "without its image": (
        {"state": {"waiting": {"reason": "ErrImagePull", "message": NOT_ADMITTED}}},
        "ImageUnavailable",
        f"the image localhost:1/agent:2 of container agent cannot be pulled: {NOT_ADMITTED}; the registry does not "
        "allow the pull with the credentials of the pod; name a Secret with the registry's credentials in "
        "spec.imagePullSecrets, or correct spec.agent.image",
    ),
    "without its registry": (
        {"state": {"waiting": {"reason": "ErrImagePull", "message": NOT_REACHED}}},
        "ImageUnavailable",
        f"the image localhost:1/agent:2 of container agent cannot be pulled: {NOT_REACHED}; the node cannot reach "
        "the registry, and the kubelet tries again by itself; correct spec.agent.image if its host or tag is wrong",
    ),
    "without its program": (
        ended(128, "StartError", NO_PROGRAM),
        "PodsCrashing",
        f"container agent cannot be started: {NO_PROGRAM}; correct spec.agent.image",
    ),
    "as root": (
        {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": ROOT}}},
        "PodsCrashing",
        f"container agent cannot be started: {ROOT}; set spec.podTemplate.spec.securityContext.runAsUser",
    ),
}


LOSSES = {
    "Pooled": {
        "OOM-killed": "This",
        "without its image": "Changing spec.imagePullSecrets or spec.agent.image",
        "without its registry": "This",
        "without its program": "This",
        "as root": "This",
    },
    "Stable": {"without its image": "Changing spec.imagePullSecrets", "as root": "This"},
}


@pytest.mark.parametrize("resource", [DEPLOYMENTS, STATEFULSETS], ids=["Pooled", "Stable"])
@pytest.mark.parametrize("name", FAILING)
def test_failing_agent_is_never_blamed_on_memcached(name: str, resource: Resource) -> None:
    """In a slot, limits and the image of the agent are changed in place."""
    state, reason, message = FAILING[name]
    identity = "Stable" if resource is STATEFULSETS else "Pooled"
    cr = memcached(identity=identity, monitoring={}, agent={"image": "localhost:1/agent:2"})
    live = built(**cr["spec"])
    live["metadata"]["uid"] = "child"
    agent = {"name": "agent", "ready": False, "restartCount": 4, **state}
    found = {**pod("cache-0", containerStatuses=[agent, RUNNING]), "spec": live["spec"]["template"]["spec"]}
    found["spec"]["containers"][1]["image"] = "localhost:1/agent:2"
    degraded = status(snapshot_of(cr, {key_of(resource, live): live}, (found,)), Outcome(), NOW).status["conditions"][2]
    loss = LOSSES[identity].get(name, "")
    expected = f"Pod cache-0: {message}{loss and f'. {loss} replaces the pods, and their items are lost'}"
    assert (degraded["reason"], degraded["message"]) == (reason, expected)
