"""The status reports failures of pods and their cause, in the words of a real kubelet; fixing the spec clears it."""

import re
from typing import Any, NamedTuple

import pytest

from support import kube
from support.images import load_program
from support.kube import Object, eventually
from support.memcached import (
    IMAGE,
    SMALL,
    conditions,
    exhaust_memory,
    memcached,
    pods_of,
    wait_until_degraded,
    wait_until_ready,
)
from support.waiting import READY

MISSING = "localhost:1/no-such:image"
PAUSE = "localhost/memcached-operator/pause:1"
"""An image that every local cluster has, and that contains neither memcached nor a shell."""
CRASHING = "crashing"
"""Replaced by an image whose memcached exits with code 71."""
MINIMAL = {**SMALL, "limits": {"memory": "95Mi"}}

pytestmark = pytest.mark.usefixtures("cluster")


class Failure(NamedTuple):
    """A spec that fails, the reason, parts of the message, and the change that fixes it."""

    spec: Object
    reason: str
    parts: tuple[str, ...]
    remedy: Object


FAILURES: dict[str, Failure] = {
    "out-of-memory": Failure(
        {"resources": MINIMAL},
        "PodsCrashing",
        ("exit code 137", "OOMKilled", "spec.resources.limits.memory"),
        {"resources": {**SMALL, "limits": {"memory": "512Mi"}}},
    ),
    "missing": Failure(
        {"image": MISSING}, "ImageUnavailable", (MISSING, "connection refused", "spec.image"), {"image": IMAGE}
    ),
    "never": Failure({"image": MISSING, "imagePullPolicy": "Never"}, "ImageUnavailable", (MISSING,), {"image": IMAGE}),
    "not-memcached": Failure(
        {"image": PAUSE},
        "PodsCrashing",
        ("cannot be started", '"memcached": executable file not found'),
        {"image": IMAGE},
    ),
    "no-shell": Failure(
        {"image": PAUSE, "identity": "Stable", "cache": {"warmRestart": True}},
        "PodsCrashing",
        ("spec.cache.warmRestart needs an image with the program sh",),
        {"image": IMAGE},
    ),
    "crashing": Failure(
        {"image": CRASHING},
        "PodsCrashing",
        ("container memcached", "exit code 71", "(Error)", "kubectl logs --previous"),
        {"image": IMAGE},
    ),
    "agent-out-of-memory": Failure(
        {"monitoring": {}, "agent": {"resources": {"limits": {"memory": "6Mi"}}}},
        "PodsCrashing",
        ("container agent", "exit code 137 (OOMKilled); raise spec.agent.resources.limits.memory"),
        {"agent": {"resources": {"limits": {"memory": "48Mi"}}}},
    ),
    "agent-missing": Failure(
        {"monitoring": {}, "agent": {"image": MISSING}},
        "ImageUnavailable",
        (f"the image {MISSING} of container agent", "correct spec.agent.image"),
        {"agent": {}},
    ),
}


def small(namespace: str, name: str = "cache", **spec: Any) -> Object:
    """A Memcached with a small pod."""
    given: Object = {"size": 1, "resources": SMALL, **spec}
    return memcached(namespace, name, **given)


def test_failures_of_pods_are_reported_until_they_are_fixed(namespace: str, cluster: Object) -> None:
    if cluster["mode"] != "node":
        pytest.skip("needs a node that runs pods")
    crashing = load_program("crashing", "exit 71")
    specs = {name: {**each.spec} for name, each in FAILURES.items()}
    specs["crashing"]["image"] = crashing
    for name, spec in specs.items():
        kube.apply(small(namespace, name, **spec))
    wait_until_ready(namespace, "out-of-memory")
    exhaust_memory(pods_of(namespace, "out-of-memory")[0], mebibytes=300)
    for name, failure in FAILURES.items():
        message = wait_until_degraded(namespace, failure.reason, name)["message"]
        assert [part for part in (*failure.parts, f"Pod {name}-") if part not in message] == [], message
    assert conditions(namespace, "crashing")["Available"]["reason"] == "MinimumReplicasUnavailable"
    since = conditions(namespace, "crashing")["Degraded"]["lastTransitionTime"]
    eventually(lambda: restarts(namespace, "crashing") >= 2, READY, "the container was restarted twice")
    found = conditions(namespace, "crashing")["Degraded"]
    assert (found["status"], found["lastTransitionTime"]) == ("True", since), "the condition must not flap"
    run_logs_command(found["message"])
    for name, failure in FAILURES.items():
        kube.apply(small(namespace, name, **{**specs[name], **failure.remedy}))
    for name in FAILURES:
        condition = wait_until_ready(namespace, name)["status"]["conditions"][2]
        assert (condition["reason"], condition["message"]) == ("AsExpected", "All components are healthy")


def run_logs_command(message: str) -> None:
    """Run the command that a message contains, as it is written."""
    command = re.search(r"see kubectl (logs [^;]+)", message)
    assert command is not None, message
    kube.kubectl(*command[1].split())


def restarts(namespace: str, name: str) -> int:
    """The restarts of an object's containers."""
    return sum(kube.restart_counts(pods_of(namespace, name)).values())
