"""The rollout of slots, whose pods the operator updates itself."""

from typing import Any

import pytest

from memcached_api.annotations import PAUSED_ANNOTATION
from memcached_operator.engine.kind import PodUpdate
from memcached_operator.kube.resource import STATEFULSETS, Key, Object
from memcached_operator.memcached.slots.pause import OUTDATED, UP_TO_DATE
from memcached_operator.memcached.slots.rollout import rollout
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW, memcached, owned

COUNTS: Any = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 3)


def snapshot(*, paused: bool = False, annotation: str | None = None) -> Snapshot:
    """A StatefulSet all of whose pods are updated and available, as its controller counts them.

    `annotation`: the value of PAUSED_ANNOTATION; None if it has none.
    """
    template: Object = {"spec": {"containers": [{"name": "memcached"}]}}
    live = {**owned(resource=STATEFULSETS, generation=2), "spec": {"replicas": 3, "template": template}}
    live["status"] = {"observedGeneration": 2, **COUNTS}
    if annotation is not None:
        live["metadata"]["annotations"] = {PAUSED_ANNOTATION: annotation}
    cr = memcached(rollout={"paused": paused}) if paused else memcached()
    return Snapshot(cr, {Key(STATEFULSETS, "test", "cache"): live})


def test_rollout_is_complete_when_each_update_is_in_effect() -> None:
    """A pod with the new revision counts as updated while it restarts."""
    found = rollout(snapshot(), PodUpdate(complete=False, doing={"cache-2": "is restarting and keeps its items"}), NOW)
    assert (found.complete, found.doing) == (False, ("cache-2 is restarting and keeps its items",))
    assert rollout(snapshot(), PodUpdate(complete=True), NOW).complete


def test_missing_statefulset() -> None:
    found = rollout(Snapshot(memcached()), None, NOW)
    assert (found.exists, found.complete, found.deadline_exceeded) == (False, False, False)


@pytest.mark.parametrize(
    ("paused", "annotation", "updated"),
    [
        (False, None, 3),
        (False, OUTDATED, 3),
        (True, UP_TO_DATE, 3),
        (True, OUTDATED, 0),
        (True, None, 3),
    ],
)
def test_no_pod_is_updated_while_a_template_waits_for_the_end_of_a_pause(
    paused: bool, annotation: str | None, updated: int
) -> None:
    found = rollout(snapshot(paused=paused, annotation=annotation), None, NOW)
    assert (found.paused, found.updated) == (paused, updated)
