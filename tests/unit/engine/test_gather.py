"""The snapshot of an object: what it contains, and how many objects a reconcile decodes."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from memcached_api.images import Images
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.reconciler import Reconciler, gather
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object, Resource, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.kind import Reference
from memcached_operator.world.knowledge import LISTED, UNLISTED, Knowledge, Known
from memcached_operator.world.pod import Pod, decoded
from memcached_operator.world.snapshot import Snapshot
from support.stores import whole_store
from unit import builders
from unit.fakes import Api

KEY = Key(MEMCACHEDS, "test", "cache")
KIND = memcached(Images("example.com/memcached:1"))
MONITORS = Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")


def member(name: str, replica_set: str = "cache-abc") -> Object:
    """A pod of this ReplicaSet."""
    found = builders.pod(name)
    labels = {**builders.LABELS, "pod-template-hash": "abc"}
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": "rs", "controller": True}
    return {**found, "metadata": {**found["metadata"], "labels": labels, "ownerReferences": [reference]}}


def snapshot_of(
    kind: ReconciledKind,
    *objects: tuple[Resource, Object],
    known: Known | None = None,
) -> Snapshot:
    """The snapshot of a Memcached in a cache with these objects."""
    cache = whole_store()
    for resource, obj in objects:
        cache.put(resource, obj)
    return gather(cache, kind, builders.memcached(), known or {})


def test_snapshot_has_the_children_by_resource_and_name() -> None:
    first, second = builders.owned(resource=SERVICES), builders.owned(resource=SERVICES, name="second")
    foreign = builders.owned(builders.memcached(uid="other"), SERVICES, name="foreign")
    found = snapshot_of(KIND, (SERVICES, first), (SERVICES, second), (SERVICES, foreign))
    assert [key.name for key in sorted(found.children)] == ["cache", "second"]
    assert [
        child and child["metadata"]["name"] for child in (found.child(SERVICES), found.child(SERVICES, "second"))
    ] == [
        "cache",
        "second",
    ]
    assert (found.child(SERVICES, "foreign"), found.child(DEPLOYMENTS)) == (None, None)


def test_snapshot_has_only_the_pods_of_its_workload() -> None:
    pods = [(PODS, member("a")), (PODS, member("b", "other-abc")), (PODS, builders.pod("copied"))]
    with_workload = snapshot_of(KIND, (DEPLOYMENTS, builders.owned()), *pods)
    assert [pod.name for pod in with_workload.pods] == ["a"]
    assert snapshot_of(KIND, *pods).pods == ()


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_have_ended_are_not_those_of_the_workload(phase: str) -> None:
    """An evicted one may have labels, ports and a ring that no other pod has any more."""
    ended = {**member("c"), "status": {"phase": phase}}
    found = snapshot_of(KIND, (DEPLOYMENTS, builders.owned()), (PODS, member("a")), (PODS, ended))
    assert [[pod.name for pod in pods] for pods in (found.pods, found.ended)] == [["a"], ["c"]]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"ownerReferences": []}, True),
        ({}, False),
        ({"ownerReferences": [], "managedFields": []}, False),
        ({"ownerReferences": [], "labels": {**builders.LABELS, "app.kubernetes.io/name": "other"}}, False),
        ({"ownerReferences": [], "name": "other"}, False),
    ],
)
def test_snapshot_has_the_workload_that_lost_its_owner_reference(changes: dict[str, Any], found: bool) -> None:
    snapshot = snapshot_of(KIND, (DEPLOYMENTS, builders.owned(**changes)))
    assert bool(snapshot.orphans) is found
    assert (snapshot.child(DEPLOYMENTS) is None) is bool(changes)
    assert (snapshot.workload(DEPLOYMENTS) is None) is (bool(changes) and not found)


def test_snapshot_has_the_knowledge_of_the_resources_of_its_kind_and_namespace_only() -> None:
    def known(kind: ReconciledKind, namespace: str | None) -> Knowledge:
        return snapshot_of(kind, known={(MONITORS, namespace): UNLISTED}).known(MONITORS)

    kind = ReconciledKind(
        resource=MEMCACHEDS,
        app_name="memcached",
        owns=(MONITORS,),
        workloads=KIND.workloads,
        plan=KIND.plan,
        status=KIND.status,
        optional=(MONITORS,),
    )
    naming = replace(KIND, references=(Reference(MONITORS, lambda _: (), lambda _: None),))
    for reading in (kind, naming):
        assert [known(reading, each) for each in (None, "test", "other")] == [UNLISTED, UNLISTED, LISTED]
    assert known(KIND, None) == LISTED


class Counted:
    """Counts decoded objects."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decoded: list[str] = []
        decode = msgspec.json.decode

        def counted(payload: bytes) -> Any:
            found = decode(payload)
            self.decoded.append(found["kind"])
            return found

        def counted_pod(payload: bytes) -> Pod | None:
            self.decoded.append("Pod")
            return decoded(payload)

        monkeypatch.setattr("memcached_operator.world.store.msgspec.json.decode", counted)
        monkeypatch.setattr("memcached_operator.world.sizes.decoded", counted_pod)


@pytest.mark.parametrize("pods", [0, 3, 8])
def test_reconcile_without_work_decodes_each_object_once(monkeypatch: pytest.MonkeyPatch, pods: int) -> None:
    async def run() -> list[str]:
        api, cache, queue = Api(), whole_store(), Queue[Key]("test")
        cr = builders.memcached(size=pods or 1, image="example.com/memcached:1")
        cache.put(MEMCACHEDS, api.put(KEY, cr))
        reconciler = Reconciler(api.client, cache, queue, [KIND])
        await reconciler.reconcile(KEY)
        for number in range(pods):
            cache.put(PODS, member(f"cache-{number}"))
        api.calls.clear()
        counted = Counted(monkeypatch)
        await reconciler.reconcile(KEY)
        assert api.calls == []
        return counted.decoded

    assert sorted(asyncio.run(run())) == sorted(["Memcached", "Deployment", "Service", *["Pod"] * pods])


def test_reconcile_that_writes_computes_the_status_from_what_it_wrote() -> None:
    async def run() -> Object:
        api, cache, queue = Api(), whole_store(), Queue[Key]("test")
        cr = builders.memcached(size=2, image="example.com/memcached:1")
        cache.put(MEMCACHEDS, api.put(KEY, cr))
        await Reconciler(api.client, cache, queue, [KIND]).reconcile(KEY)
        assert cache.get(key_of(DEPLOYMENTS, api.objects[Key(DEPLOYMENTS, "test", "cache")])) is not None
        return api.statuses[0]

    available = next(each for each in asyncio.run(run())["conditions"] if each["type"] == "Available")
    assert available["message"] == "0 of 2 pods are ready"
