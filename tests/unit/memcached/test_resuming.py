"""The remedy for a pause says whether its end replaces pods, because their items are then lost."""

from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Object, key_of
from memcached_operator.memcached.losses import THIS_REPLACES
from memcached_operator.memcached.plan import plan_with
from memcached_operator.memcached.status import status_with
from memcached_operator.parts.workloads.pause import RESUME
from memcached_operator.world.snapshot import Resize, Snapshot
from unit.builders import NOW, deleted, deployment, memcached, snapshot_of
from unit.memcached.updates.updating import OLD, created, with_status

PLAN: Final = plan_with(Images("example.com/memcached:1", "example.com/agent:1"))
NODES: Final[Object] = {"podTemplate": {"spec": {"nodeSelector": {"disk": "fast"}}}}
AMOUNTS: Final[Object] = {"resources": {"limits": {"cpu": "1"}}}
MORE: Final[Object] = {"resources": {"limits": {"cpu": "2"}}}
PAUSED: Final[Object] = {"rollout": {"paused": True}}
COUNTS: Final[Object] = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)


def progressing(snapshot: Snapshot) -> str:
    """The message of Progressing."""
    found = status_with("cluster.local")(snapshot, Outcome(update=PLAN(snapshot, NOW).update), NOW).status
    (condition,) = [each for each in found["conditions"] if each["type"] == "Progressing"]
    return condition["message"]


def statefulset(spec: Object, live: Object | None = None) -> Object:
    """The StatefulSet with this spec. `live`: the one before."""
    observed = {} if live is None else {key_of(STATEFULSETS, live): live}
    children = PLAN(snapshot_of(memcached(identity="Stable", size=2, **spec), observed), NOW).children or ()
    (found,) = [each for each in children if each["kind"] == "StatefulSet"]
    return {**found, "status": {"updateRevision": OLD, **COUNTS}}


@dataclass(frozen=True)
class Case:
    """A spec with slots, and its change during a pause. `is_written`: the change was made before the pause."""

    change: Object
    loses: bool
    before: Object = field(default_factory=dict[str, Any])
    is_written: bool = False
    resize: Resize | None = Resize.ANY
    has_run: bool = True
    are_deleted: bool = False


SLOTS: Final[dict[str, Case]] = {
    "nothing waits": Case({}, loses=False),
    "another node": Case(NODES, loses=True),
    "another node, before the pause": Case(NODES, loses=True, is_written=True),
    "another node, but memcached has never run": Case(NODES, loses=False, has_run=False),
    "resources": Case(MORE, loses=False, before=AMOUNTS),
    "resources, in a cluster that cannot resize pods": Case(MORE, loses=True, before=AMOUNTS, resize=Resize.NONE),
    "resources, before it is known what the cluster can": Case(MORE, loses=True, before=AMOUNTS, resize=None),
    "resources that were not set": Case(MORE, loses=False),
    "resources that are not set any more": Case({"resources": None}, loses=True, before=AMOUNTS),
    "another node, and the pods are being deleted": Case(NODES, loses=False, are_deleted=True),
    "another image": Case({"image": "example.com/memcached:2"}, loses=True),
    "another image, warm": Case({"image": "a:2"}, loses=False, before={"cache": {"warmRestart": True}}),
    "a Service": Case({"service": {"labels": {"team": "web"}}}, loses=False),
}


@pytest.mark.parametrize("case", SLOTS.values(), ids=SLOTS.keys())
def test_slots(case: Case) -> None:
    old = statefulset(case.before)
    spec = {**case.before, **case.change, **PAUSED}
    live = statefulset(spec, statefulset({**case.before, **case.change}, old) if case.is_written else old)
    pods = tuple(created(slot, old["spec"]["template"]) for slot in range(2))
    if not case.has_run:
        pods = tuple(with_status(pod, state={"waiting": {"reason": "ContainerCreating"}}) for pod in pods)
    pods = tuple(map(deleted, pods)) if case.are_deleted else pods
    cr = memcached(identity="Stable", size=2, **spec)
    snapshot = snapshot_of(cr, {key_of(STATEFULSETS, live): live}, pods, resize=case.resize)
    assert progressing(snapshot).endswith(f"to continue, {RESUME}{THIS_REPLACES if case.loses else ''}")


POOLED: Final[dict[str, tuple[Object, bool]]] = {
    "another pod template": ({**COUNTS, "updatedReplicas": 0}, True),
    "a part of the pods is updated": ({**COUNTS, "updatedReplicas": 1}, True),
    "all pods are updated": (COUNTS, False),
    "a new Memcached without pods": ({}, False),
    "counts of an earlier spec": ({**COUNTS, "observedGeneration": 1}, False),
}


@pytest.mark.parametrize(("status", "loses"), POOLED.values(), ids=POOLED.keys())
def test_pods_of_a_deployment(status: Object, loses: bool) -> None:
    live = {**deployment(2, **status), "spec": {"replicas": 2, "paused": True}}
    snapshot = snapshot_of(memcached(size=2, **PAUSED), {key_of(DEPLOYMENTS, live): live})
    assert progressing(snapshot).endswith(f"to continue, {RESUME}{THIS_REPLACES if loses else ''}")
