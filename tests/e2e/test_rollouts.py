"""A new object replaces its pods one at a time and loses no capacity; pauses, restarts and `kubectl replace`."""

import json
from typing import Any

import pytest

from support import kube
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import (
    IMAGE,
    OTHER_IMAGE,
    SMALL,
    conditions,
    memcached,
    pods_of,
    wait_until_degraded,
    wait_until_ready,
)
from support.serving import observed

pytestmark = pytest.mark.usefixtures("cluster")

RESTARTED_AT = "2026-11-22T10:00:00Z"
SIZES = {"one": 1, "two": 2}
"""The size of each object whose rollouts are observed."""


def small(namespace: str, name: str = "cache", **spec: Any) -> Object:
    """A Memcached with small pods."""
    given: Object = {"resources": SMALL, **spec}
    return memcached(namespace, name, **given)


def change(namespace: str, **spec: Any) -> None:
    """Merge fields into the spec of the Memcached `cache`."""
    kubectl("patch", "mc/cache", "-n", namespace, "--type=merge", "-p", json.dumps({"spec": spec}))


def uids(namespace: str, name: str = "cache") -> set[str]:
    """The uids of an object's pods, without those being deleted."""
    return {pod["metadata"]["uid"] for pod in pods_of(namespace, name)}


def images(namespace: str) -> list[str]:
    """The images of the pods of the Memcached `cache`."""
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods_of(namespace))


def is_paused(namespace: str, updated: int, size: int) -> bool:
    """Whether the current status says that the rollout is paused, with these counts."""
    found = conditions(namespace)["Progressing"]
    generation = must_get("memcacheds", namespace, "cache")["metadata"]["generation"]
    assert (found["status"], found["reason"], found["observedGeneration"]) == ("True", "Paused", generation), found
    return f"{updated} of {size} pods are updated" in found["message"]


LIMITED: Object = {"image": OTHER_IMAGE, "resources": {**SMALL, "limits": {"memory": "100Mi"}}}
CHANGES: dict[str, Object] = {
    "image": {"image": OTHER_IMAGE},
    "arguments": {"image": OTHER_IMAGE, "cache": {"threads": 2, "verbosity": 0}},
    "resources": LIMITED,
    "restart": {**LIMITED, "rollout": {"restartedAt": RESTARTED_AT}},
}
"""Specs, one after the other, each of which replaces the pods."""


def apply_to_all(namespace: str, **spec: Any) -> None:
    """Apply a spec to both objects."""
    for name, size in SIZES.items():
        kube.apply(small(namespace, name, **{**spec, "size": size}))


@pytest.mark.race
def test_rollout_takes_nothing_from_clients(namespace: str) -> None:
    """Also at size 1, and with an image that does not exist."""
    apply_to_all(namespace, image=IMAGE)
    for name in SIZES:
        wait_until_ready(namespace, name)
    with observed(namespace, "one") as one, observed(namespace, "two") as two:
        for spec in CHANGES.values():
            before = {name: uids(namespace, name) for name in SIZES}
            apply_to_all(namespace, **spec)
            for name in SIZES:
                wait_until_ready(namespace, name)
                assert not before[name] & uids(namespace, name), f"{spec} must replace the pods"
        apply_to_all(namespace, image="localhost:1/no-such:image")
        for name in SIZES:
            wait_until_degraded(namespace, "ImageUnavailable", name)
            assert conditions(namespace, name)["Available"]["status"] == "True"
    one.assert_always(1)
    two.assert_always(2)


def test_paused_rollout_is_resumed(namespace: str) -> None:
    """While it is paused, the size still takes effect."""
    kube.apply(small(namespace, image=IMAGE))
    wait_until_ready(namespace)
    before = uids(namespace)
    change(namespace, image=OTHER_IMAGE, rollout={"paused": True})
    eventually(lambda: is_paused(namespace, 0, 1), 30, "Progressing says Paused")
    change(namespace, size=2)
    eventually(lambda: is_paused(namespace, 0, 2) and len(pods_of(namespace)) == 2, 30, "two pods run")
    eventually(lambda: all(map(kube.ready, pods_of(namespace))), 30, "both pods are ready")
    assert images(namespace) == 2 * [IMAGE]
    assert before < uids(namespace)
    change(namespace, rollout={"paused": False})
    wait_until_ready(namespace)
    assert images(namespace) == 2 * [OTHER_IMAGE]


def test_replace_with_the_original_file_changes_nothing(namespace: str) -> None:
    """The file has none of the fields that a new object gets, and not the time of a restart."""
    file = small(namespace, size=2)
    kubectl("create", "-f", "-", stdin=file)
    first = wait_until_ready(namespace)
    assert first["spec"]["rollout"] == {"maxUnavailable": 0, "maxSurge": 1}
    before = uids(namespace)
    change(namespace, rollout={"restartedAt": RESTARTED_AT})
    restarted = wait_until_ready(namespace)["spec"]
    after = uids(namespace)
    assert len(after) == 2
    assert not after & before
    (annotation,) = {pod["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] for pod in pods_of(namespace)}
    assert annotation == RESTARTED_AT
    budget = must_get("poddisruptionbudgets", namespace, "cache")["metadata"]["uid"]
    kubectl("replace", "-f", "-", stdin={**file, "spec": {**file["spec"], "service": {"labels": {"replaced": "yes"}}}})
    replaced = wait_until_ready(namespace)["spec"]
    assert replaced.pop("service") == {"labels": {"replaced": "yes"}}
    assert replaced == restarted
    eventually(lambda: must_get("services", namespace, "cache")["metadata"]["labels"].get("replaced"), 60, "replaced")
    assert uids(namespace) == after
    assert must_get("poddisruptionbudgets", namespace, "cache")["metadata"]["uid"] == budget


def test_defaults_of_a_new_object_can_be_switched_off(namespace: str) -> None:
    off: Object = {
        "podDisruptionBudget": {"enabled": False},
        "podTemplate": {"spec": {"topologySpreadConstraints": []}},
    }
    kube.apply(small(namespace, "on", size=2))
    kube.apply(small(namespace, "off", size=2, **off))
    for name in ("on", "off"):
        wait_until_ready(namespace, name)
    found = {name: must_get("deployments", namespace, name)["spec"]["template"]["spec"] for name in ("on", "off")}
    keys = [each["topologyKey"] for each in found["on"]["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert "topologySpreadConstraints" not in found["off"]
    assert kube.names(kube.items("poddisruptionbudgets", namespace)) == ["on"]
    kube.apply(small(namespace, "on", size=2, **off))
    eventually(lambda: not kube.items("poddisruptionbudgets", namespace), 60, "the budget is deleted")
    spec = wait_until_ready(namespace, "on")["spec"]
    assert spec["podTemplate"]["spec"]["topologySpreadConstraints"] == []
    assert "topologySpreadConstraints" not in must_get("deployments", namespace, "on")["spec"]["template"]["spec"]
