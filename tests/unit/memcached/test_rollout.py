"""The rollout of slots, whose pods the operator updates itself."""

from typing import Any

from memcached_operator.kind import PodUpdate, Snapshot
from memcached_operator.kube.resource import STATEFULSETS, Key, Object
from memcached_operator.memcached.slots.rollout import rollout
from unit.builders import NOW, memcached, owned

COUNTS: Any = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 3)


def snapshot() -> Snapshot:
    """A StatefulSet all of whose pods are updated and available, as its controller counts them."""
    template: Object = {"spec": {"containers": [{"name": "memcached"}]}}
    live = {**owned(resource=STATEFULSETS, generation=2), "spec": {"replicas": 3, "template": template}}
    live["status"] = {"observedGeneration": 2, **COUNTS}
    return Snapshot(memcached(), {Key(STATEFULSETS, "test", "cache"): live})


def test_rollout_is_complete_when_each_update_is_in_effect() -> None:
    """A pod with the new revision counts as updated while it restarts."""
    found = rollout(snapshot(), PodUpdate(complete=False, doing={"cache-2": "restarts with its items"}), NOW)
    assert (found.complete, found.doing) == (False, ("cache-2 restarts with its items",))
    assert rollout(snapshot(), PodUpdate(complete=True), NOW).complete


def test_missing_statefulset() -> None:
    assert not rollout(Snapshot(memcached()), None, NOW).exists
