"""The pods that a status must know are listed before it is written."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from memcached_operator.engine.kind import DesiredStatus, Plan, ReconciledKind
from memcached_operator.engine.reconciler import RELIST_PERIOD, Reconciler
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Object
from memcached_operator.parts.workloads.deployment import DEPLOYMENT
from memcached_operator.world.snapshot import Listed
from support.stores import whole_store
from unit.builders import MEMCACHEDS, memcached, owned, pod
from unit.fakes import Api, raising

KEY = Key(MEMCACHEDS, "test", "cache")
BROKEN = ApiError(500, "InternalError", "broken")


def pod_of(replica_set: str, name: str, phase: str = "Running") -> Object:
    """A pod of a ReplicaSet."""
    found = pod(name, phase=phase)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": "u", "controller": True}
    labels = {**found["metadata"]["labels"], "pod-template-hash": replica_set.rpartition("-")[2]}
    return {**found, "metadata": {**found["metadata"], "labels": labels, "ownerReferences": [owner]}}


def reconciled(monkeypatch: pytest.MonkeyPatch, api: Api, *, needed: list[bool]) -> tuple[list[Any], list[float]]:
    """What the statuses of one reconcile have read, and its delays. `needed`: the answers of the kind, in order."""
    read, delays = list[Any](), list[float]()
    cache, queue = whole_store(), Queue[Key]("test")
    cache.put(MEMCACHEDS, api.add(MEMCACHEDS, memcached()))
    listed = Listed(lambda _: needed.pop(0), lambda pod: pod.name)

    def status(snapshot: Any, _: object, __: object) -> DesiredStatus:
        read.append(snapshot.listed)
        return DesiredStatus({"observedGeneration": 1, "conditions": []})

    kind = ReconciledKind(
        resource=MEMCACHEDS,
        app_name="memcached",
        owns=(),
        workloads=(DEPLOYMENT,),
        plan=lambda _, __: Plan(()),
        status=status,
    )

    def add_after(_: Key, seconds: float) -> None:
        delays.append(seconds)

    monkeypatch.setattr(queue, "add_after", add_after)
    reconciler = Reconciler(api.client, cache, queue, [replace(kind, listed=listed)])
    asyncio.run(reconciler.reconcile(KEY))
    return read, delays


def api_with_pods() -> Api:
    """An API server with pods of the object that run or have completed, and of others."""
    api = Api()
    for each in (pod_of("cache-a", "runs"), pod_of("cache-b", "failed", "Failed"), pod_of("other-a", "other")):
        api.add(PODS, each)
    return api


@pytest.mark.parametrize(("still_needed", "delays"), [(True, []), (False, [RELIST_PERIOD])])
def test_status_knows_the_running_pods(
    monkeypatch: pytest.MonkeyPatch, still_needed: bool, delays: list[float]
) -> None:
    assert reconciled(monkeypatch, api_with_pods(), needed=[True, still_needed]) == ([frozenset({"runs"})], delays)


def test_pods_are_not_listed_unless_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reconciled(monkeypatch, api_with_pods(), needed=[False]) == ([None], [])


def test_workload_that_the_snapshot_does_not_have_is_planned_first(monkeypatch: pytest.MonkeyPatch) -> None:
    api = api_with_pods()
    api.add(DEPLOYMENTS, owned(resource=DEPLOYMENTS))
    assert reconciled(monkeypatch, api, needed=[True]) == ([], [])


def test_status_is_written_although_the_pods_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(always={"get": raising(BROKEN)})
    with pytest.raises(ApiError, match="broken"):
        reconciled(monkeypatch, api, needed=[True])
    assert len(api.statuses) == 1
