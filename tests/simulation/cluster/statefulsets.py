"""The controller of StatefulSets."""

from typing import Final

from memcached_operator.kube.resource import PODS, Key, Object, nested_map
from simulation.cluster.access import Access, digest, is_deleted, is_ready, reference_to

REVISION: Final = "controller-revision-hash"


RETRY: Final = 5.0
"""Seconds until a pod is created again whose name another one had. The real controller waits longer each time."""


def sync(access: Access, key: Key) -> float | None:
    """Create, replace and delete the pods of a StatefulSet, and write its status; RETRY if a name is taken."""
    live = access.get(key)
    if live is None:
        return None
    revision = f"{key.name}-{digest(live['spec']['template'])}"
    created = True
    if not is_deleted(live):
        access.adopt(PODS, live)
        created = _sync_pods(access, live, revision)
    _write_status(access, live, revision)
    return None if created else RETRY


def _sync_pods(access: Access, live: Object, revision: str) -> bool:
    """Returns False if the name of a pod is taken."""
    key = access.key_of(live)
    pods = {pod["metadata"]["name"]: pod for pod in access.owned(PODS, live)}
    names = [f"{key.name}-{number}" for number in range(live["spec"].get("replicas", 1))]
    ordered = live["spec"].get("podManagementPolicy") != "Parallel"
    created = _create(access, live, revision, [name for name in names if name not in pods], ordered=ordered)
    surplus = sorted((name for name in pods if name not in names), reverse=True)
    for name in surplus[:1] if ordered else surplus:
        if not is_deleted(pods[name]):
            access.delete(Key(PODS, key.namespace, name))
    for pod in pods.values():
        if nested_map(pod, "status").get("phase") in ("Failed", "Succeeded") and not is_deleted(pod):
            access.delete(access.key_of(pod))
    _replace(access, live, revision, [pods[name] for name in names if name in pods])
    return created


def _create(access: Access, live: Object, revision: str, missing: list[str], *, ordered: bool) -> bool:
    if ordered and not all(map(is_ready, access.owned(PODS, live))):
        return True
    next_ones = missing[:1] if ordered else missing
    free = [name for name in next_ones if access.get(Key(PODS, live["metadata"]["namespace"], name)) is None]
    for name in free:
        access.put(access.admit(_pod(live, name, revision)))
    return len(free) == len(next_ones)


def _replace(access: Access, live: Object, revision: str, pods: list[Object]) -> None:
    """Delete the pod with the highest number that has another revision, if all are ready and the strategy says so."""
    strategy = nested_map(live, "spec", "updateStrategy")
    if strategy.get("type") != "RollingUpdate" or not all(map(is_ready, pods)):
        return
    partition = nested_map(strategy, "rollingUpdate").get("partition", 0)
    for number, pod in reversed(list(enumerate(pods))):
        if number >= partition and pod["metadata"]["labels"].get(REVISION) != revision:
            access.delete(access.key_of(pod))
            return


def _pod(live: Object, name: str, revision: str) -> Object:
    template = live["spec"]["template"]
    meta = template.get("metadata", {})
    own = {
        REVISION: revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": name.rpartition("-")[2],
    }
    meta = {
        **meta,
        "name": name,
        "namespace": live["metadata"]["namespace"],
        "labels": meta.get("labels", {}) | own,
        "ownerReferences": [reference_to(live)],
    }
    spec = {**template["spec"], "hostname": name, "subdomain": live["spec"].get("serviceName", "")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _write_status(access: Access, live: Object, revision: str) -> None:
    pods = list(access.owned(PODS, live))
    ready = sum(map(is_ready, pods))
    updated = sum(pod["metadata"]["labels"].get(REVISION) == revision for pod in pods)
    old: Object = live.get("status") or {}
    current = old.get("currentRevision") or revision
    strategy = nested_map(live, "spec", "updateStrategy").get("type")
    if updated == len(pods) == live["spec"].get("replicas", 1) == ready and strategy == "RollingUpdate":
        current = revision
    status: Object = {
        "observedGeneration": live["metadata"]["generation"],
        "replicas": len(pods),
        "availableReplicas": ready,
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    status |= {"readyReplicas": ready} if ready else {}
    status |= {"updatedReplicas": updated} if updated else {}
    count = sum(pod["metadata"]["labels"].get(REVISION) == current for pod in pods)
    status |= {"currentReplicas": count} if count else {}
    access.put_status(live, status)
