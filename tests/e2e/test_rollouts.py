"""A rollout replaces pods one at a time and takes no capacity from clients."""

from collections import Counter
from typing import Any

import pytest

from support import kube
from support.kube import Object
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

SIZES = {"one": 1, "two": 2}
"""The size of each object whose rollouts are observed."""
STEADY: Object = {"minReadySeconds": 3}
"""A busy kubelet can report a new pod ready, and for an instant not ready, before it stays ready (measured: 0.14 s)."""
CHANGED: Object = {"image": OTHER_IMAGE, "cache": {"threads": 2}}
CHANGES = (CHANGED, {**CHANGED, "rollout": {"restartedAt": "2026-11-22T10:00:00Z"}})
"""Specs, one after the other, each of which replaces the pods."""

pytestmark = pytest.mark.usefixtures("cluster")


def apply_to_all(namespace: str, rollout: Object | None = None, **spec: Any) -> None:
    """Apply a spec to both objects."""
    for name, size in SIZES.items():
        kube.apply(memcached(namespace, name, size=size, resources=SMALL, rollout=STEADY | (rollout or {}), **spec))


def uids(namespace: str, name: str) -> set[str]:
    """The uids of an object's pods, without those being deleted."""
    return {pod["metadata"]["uid"] for pod in pods_of(namespace, name)}


def reported(namespace: str, name: str) -> Counter[str]:
    """The number of the operator's Events about an object, by reason."""
    events = [event for event in kube.items("events", namespace) if event["involvedObject"]["kind"] == "Memcached"]
    return Counter(event["reason"] for event in events if event["involvedObject"]["name"] == name)


@pytest.mark.race
def test_rollout_takes_nothing_from_clients(namespace: str) -> None:
    """Also at size 1, and with an image that does not exist."""
    apply_to_all(namespace, image=IMAGE)
    for name in SIZES:
        wait_until_ready(namespace, name)
    with observed(namespace, "one") as one, observed(namespace, "two") as two:
        for spec in CHANGES:
            before = {name: uids(namespace, name) for name in SIZES}
            apply_to_all(namespace, **spec)
            for name in SIZES:
                wait_until_ready(namespace, name)
                assert not before[name] & uids(namespace, name), f"{spec} must replace the pods"
        apply_to_all(namespace, image="localhost:1/no-such:image")
        for name in SIZES:
            wait_until_degraded(namespace, "ImageUnavailable", name)
            assert conditions(namespace, name)["Available"]["status"] == "True"
        for name in SIZES:
            kube.eventually(lambda name=name: reported(namespace, name)["RolloutStarted"] == 1 + len(CHANGES))
            assert reported(namespace, name)["Created"] == 0
            assert reported(namespace, name)["RolloutComplete"] >= len(CHANGES)
    one.assert_always(1)
    two.assert_always(2)
