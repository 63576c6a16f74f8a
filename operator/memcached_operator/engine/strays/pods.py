"""Finds the pods with the labels of an object to which its Service sends clients, but which do not belong to it."""

from collections.abc import Set as AbstractSet
from typing import Final

from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.findings.obstacles import blocked_by
from memcached_operator.kube.labels import selector_labels
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, STATEFULSETS, Key, nested_map
from memcached_operator.world.pod import OwnerReference, Pod, decoded
from memcached_operator.world.snapshot import Snapshot, Stray
from memcached_operator.world.store import Store

MAX_KEPT: Final = 10
"""Owners of pods, and pods without an owner, that are kept: more than a message names. Anyone can create any number."""


def stray_pods(
    store: Store, kind: ReconciledKind, snapshot: Snapshot, kept: AbstractSet[Key]
) -> tuple[tuple[Stray, ...], tuple[str, ...]]:
    """The owners of the other pods to which the Service sends clients, and the names of those without an owner.

    `kept`: the keys of workloads whose pods are not considered: an existing one of them is a conflict, is adopted or is
    reported itself. Pods of another one of this name are deleted by the garbage collector.
    """
    meta = snapshot.cr["metadata"]
    instance = (PODS, meta["namespace"], kind.app_name, meta["name"])
    owners, pods = set[Stray](), set[str]()
    # Usually there are none, and nothing is decoded.
    if store.count_of_instance(*instance) > len(snapshot.pods) + len(snapshot.ended):
        for entry in store.entries_of_instance(*instance):
            pod = decoded(entry.json)
            if pod is None or not _is_stray(pod, kind, snapshot):
                continue
            controller = pod.metadata.controller
            if controller is None:
                pods.add(pod.name)
            elif (workload := _workload_of(pod, controller, meta["namespace"])) not in kept:
                owners.add(_owner(store, controller, workload))
    return tuple(sorted(owners)[:MAX_KEPT]), tuple(sorted(pods)[:MAX_KEPT])


def _is_stray(pod: Pod, kind: ReconciledKind, snapshot: Snapshot) -> bool:
    """Whether the Service sends clients to a pod that belongs to no workload of the object."""
    meta = snapshot.cr["metadata"]
    if not selector_labels(kind.app_name, meta["name"]).items() <= pod.metadata.labels.items() or not pod.is_active:
        return False
    publishes = nested_map(snapshot.child(SERVICES) or {}, "spec").get("publishNotReadyAddresses") is True
    if not pod.is_ready and not (publishes and pod.status.phase == "Running"):
        return False
    workloads = ((each, snapshot.child(each.resource)) for each in kind.workloads)
    return not any(live is not None and each.owns(pod.metadata, live) for each, live in workloads)


def _workload_of(pod: Pod, controller: OwnerReference, namespace: str) -> Key | None:
    """The workload to which a pod belongs by the name of its controller; None if it is of another type."""
    if controller.kind == STATEFULSETS.kind:
        return Key(STATEFULSETS, namespace, controller.name)
    end = f"-{pod.metadata.labels.get('pod-template-hash')}"
    if controller.kind == "ReplicaSet" and controller.name.endswith(end):
        return Key(DEPLOYMENTS, namespace, controller.name.removesuffix(end))
    return None


def _owner(store: Store, controller: OwnerReference, workload: Key | None) -> Stray:
    """The owner that a message names: the workload, if it is known. Other users' workloads may lack the label."""
    live = None if workload is None else store.get(workload)
    is_same = live is not None and controller.kind in ("ReplicaSet", live["kind"])
    if live is None or workload is None or not is_same:
        return Stray(controller.kind, controller.name)
    is_deleted = bool(live["metadata"].get("deletionTimestamp"))
    return Stray(workload.resource.kind, workload.name, is_deleted, blocked_by(live) if is_deleted else "")
