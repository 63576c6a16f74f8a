"""The controllers of Deployments and ReplicaSets."""

from typing import Final

from memcached_operator.kube.resource import PODS, Key, Object, nested_list, nested_map
from simulation.cluster.access import (
    REPLICA_SETS,
    Access,
    amount,
    digest,
    is_deleted,
    is_ready,
    reference_to,
    with_condition,
)

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"


def sync(access: Access, key: Key) -> float | None:
    """Bring the ReplicaSets of a Deployment closer to its spec, and write its status."""
    live = access.get(key)
    if live is None:
        return None
    if is_deleted(live):
        return _sync_held(access, live)
    access.adopt(REPLICA_SETS, live)  # a paused Deployment adopts too
    if live["spec"].get("paused"):
        return _sync_held(access, live)
    new = _new_set(access, live)
    live = access.get(key) or live
    sets = sorted(access.owned(REPLICA_SETS, live), key=lambda each: each["metadata"]["name"])
    old = [each for each in sets if each["metadata"]["uid"] != new["metadata"]["uid"]]
    _scale(access, live, new, old)
    sets = list(access.owned(REPLICA_SETS, live))
    return _write_status(access, live, access.get(access.key_of(new)) or new, sets)


def _sync_held(access: Access, live: Object) -> float | None:
    """A Deployment that is being deleted, or paused: nothing is rolled out. Only the second one is scaled."""
    sets = list(access.owned(REPLICA_SETS, live))
    active = [each for each in sets if each["spec"]["replicas"]]
    if len(active) == 1 and not is_deleted(live):
        _set_replicas(access, active[0], live["spec"].get("replicas", 1))
        sets = list(access.owned(REPLICA_SETS, live))
    own_hash = digest(live["spec"]["template"])
    new = next((each for each in sets if each["metadata"]["labels"].get(HASH) == own_hash), None)
    return _write_status(access, live, new, sets)


def _new_set(access: Access, live: Object) -> Object:
    """The ReplicaSet with the template of the Deployment, which may be a new one."""
    template = live["spec"]["template"]
    own_hash = digest(template)
    sets = list(access.owned(REPLICA_SETS, live))
    found = next((each for each in sets if each["metadata"]["labels"].get(HASH) == own_hash), None)
    revisions = [int(each["metadata"]["annotations"].get(REVISION, "0")) for each in sets]
    if found is None or int(found["metadata"]["annotations"][REVISION]) < max(revisions):
        revision = {REVISION: str(max(revisions, default=0) + 1)}
        if found is None:
            found = access.put(_set(live, own_hash, revision))
        else:
            annotations = found["metadata"]["annotations"] | revision
            found = access.put({**found, "metadata": {**found["metadata"], "annotations": annotations}})
    revision = {REVISION: found["metadata"]["annotations"][REVISION]}
    annotations = dict(nested_map(live, "metadata", "annotations"))
    if annotations.get(REVISION) != revision[REVISION]:
        # The controller does so with the status.
        access.put({**live, "metadata": {**live["metadata"], "annotations": annotations | revision}}, "status")
    return found


def _set(live: Object, own_hash: str, annotations: dict[str, str]) -> Object:
    template, name = live["spec"]["template"], live["metadata"]["name"]
    labels = {**nested_map(template, "metadata", "labels"), HASH: own_hash}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name}-{own_hash}",
            "namespace": live["metadata"]["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [reference_to(live)],
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": live["spec"]["selector"]["matchLabels"] | {HASH: own_hash}},
            "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
        },
    }


def _scale(access: Access, live: Object, new: Object, old: list[Object]) -> None:
    """Scale the new ReplicaSet up and the old ones down, within the limits of the strategy."""
    wanted = live["spec"].get("replicas", 1)
    strategy = nested_map(live, "spec", "strategy")
    rolling = nested_map(strategy, "rollingUpdate")
    if strategy.get("type") == "Recreate":
        for each in old:
            _set_replicas(access, each, 0)
        gone = not any(nested_map(each, "status").get("replicas") for each in old)
        _set_replicas(access, new, wanted if gone else new["spec"]["replicas"])
        return
    surge = amount(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = amount(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    unavailable = 1 if not surge and not unavailable else unavailable
    of_old = sum(each["spec"]["replicas"] for each in old)
    room = wanted + surge - of_old
    size = max(min(wanted, room), min(new["spec"]["replicas"], wanted))
    _set_replicas(access, new, size)
    available = sum(nested_map(each, "status").get("availableReplicas", 0) for each in (new, *old))
    surplus = available - (wanted - unavailable)
    for each in old:
        unhealthy = each["spec"]["replicas"] - nested_map(each, "status").get("availableReplicas", 0)
        fewer = min(each["spec"]["replicas"], max(surplus, 0) + max(unhealthy, 0))
        surplus -= max(fewer - max(unhealthy, 0), 0)
        _set_replicas(access, each, each["spec"]["replicas"] - fewer)


def _set_replicas(access: Access, live: Object, replicas: int) -> None:
    if live["spec"]["replicas"] != replicas:
        access.put({**live, "spec": {**live["spec"], "replicas": replicas}})


def _write_status(access: Access, live: Object, new: Object | None, sets: list[Object]) -> float | None:
    wanted, limit = live["spec"].get("replicas", 1), live["spec"].get("progressDeadlineSeconds", 600)
    counts = {name: sum(nested_map(each, "status").get(name, 0) for each in sets) for name in COUNTS}
    updated = nested_map(new or {}, "status").get("replicas", 0)
    old: Object = live.get("status") or {}
    rolling = nested_map(live, "spec", "strategy", "rollingUpdate")
    least = wanted - amount(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    enough = counts["availableReplicas"] >= least
    complete = updated == wanted == counts["replicas"] == counts["availableReplicas"]
    at, conditions = access.time(), nested_list(old, "conditions")
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    conditions = with_condition(conditions, "Available", str(enough), reason, message, at)
    name = new["metadata"]["name"] if new else ""
    reason, message = (
        ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
        if complete
        else ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    )
    conditions = with_condition(conditions, "Progressing", "True", reason, message, at)
    found = {name: number for name, number in counts.items() if number}
    found |= {"updatedReplicas": updated} if updated else {}
    missing = wanted - counts["availableReplicas"]
    found |= {"unavailableReplicas": missing} if missing > 0 else {}
    generation = live["metadata"]["generation"]
    access.put_status(live, {"observedGeneration": generation, **found, "conditions": conditions})
    return None if complete or not limit else float(limit)


COUNTS: Final = ("replicas", "readyReplicas", "availableReplicas")


def sync_replica_set(access: Access, key: Key) -> float | None:
    """Create and delete the pods of a ReplicaSet, and write its status."""
    live = access.get(key)
    if live is None:
        return None
    if not is_deleted(live):
        access.adopt(PODS, live)
    if live["spec"]["replicas"] == 0 and not list(access.owned(PODS, live)):
        access.put_status(live, {"replicas": 0, "observedGeneration": live["metadata"]["generation"]})
        return None
    pods = [pod for pod in access.owned(PODS, live) if not is_deleted(pod)]
    if not is_deleted(live):
        _create_or_delete(access, live, pods)
    pods = [pod for pod in access.owned(PODS, live) if not is_deleted(pod)]
    ready = sum(map(is_ready, pods))
    counts = {"replicas": len(pods), "fullyLabeledReplicas": len(pods)}
    counts |= {"readyReplicas": ready, "availableReplicas": ready} if ready else {}
    access.put_status(live, {**counts, "observedGeneration": live["metadata"]["generation"]})
    return None


def _create_or_delete(access: Access, live: Object, pods: list[Object]) -> None:
    for _ in range(live["spec"]["replicas"] - len(pods)):
        access.put(_pod(access, live))
    # The controller deletes those first that are not ready.
    surplus = sorted(pods, key=lambda pod: (is_ready(pod), pod["metadata"]["name"]))
    for pod in surplus[: max(len(pods) - live["spec"]["replicas"], 0)]:
        access.delete(access.key_of(pod))


def _pod(access: Access, live: Object) -> Object:
    template, name = live["spec"]["template"], live["metadata"]["name"]
    meta = {
        **template.get("metadata", {}),
        "name": f"{name}-{access.letters(5)}",
        "generateName": f"{name}-",
        "namespace": live["metadata"]["namespace"],
        "ownerReferences": [reference_to(live)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
