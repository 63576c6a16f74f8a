"""Builders of Kubernetes objects as the API server returns them. Tests pass only the fields that they test."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.engine.writes.ownership import controller_reference
from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, Resource
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Snapshot

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MEMCACHEDS = Resource("cache.example.com", "v1", "Memcached", "memcacheds")
LABELS = {
    "app.kubernetes.io/name": "memcached",
    "app.kubernetes.io/instance": "cache",
    "app.kubernetes.io/managed-by": "memcached-operator",
}


def ago(seconds: float) -> str:
    """A time before NOW, as the API server writes it."""
    return timestamp(NOW - timedelta(seconds=seconds))


def memcached(name: str = "cache", *, uid: str = "cr", version: int = 1, **spec: Any) -> Object:
    """A Memcached in namespace `test`."""
    return {
        "apiVersion": "cache.example.com/v1",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": "test", "uid": uid, "generation": 1, "resourceVersion": str(version)},
        "spec": spec,
    }


def appservice(name: str = "app", **spec: Any) -> Object:
    """An AppService in namespace `test`, with only an image."""
    return {
        "apiVersion": "app.example.com/v1",
        "kind": "AppService",
        "metadata": {"name": name, "namespace": "test", "uid": "cr", "generation": 1, "resourceVersion": "1"},
        "spec": {"image": "docker.io/library/nginx:1.28", **spec},
    }


def memcachedproxy(name: str = "front", **spec: Any) -> Object:
    """A MemcachedProxy in namespace `test` that refers to the Memcached `cache`."""
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "MemcachedProxy",
        "metadata": {"name": name, "namespace": "test", "uid": "proxy", "generation": 1, "resourceVersion": "1"},
        "spec": {"memcachedRef": {"name": "cache"}, **spec},
    }


def announced(cr: Object, servers: int = 3) -> Object:
    """A MemcachedProxy whose status has this number of slots of `cache`: its pods may use them."""
    return {**cr, "status": {"caches": [{"name": "cache", "servers": servers}]}}


def slots(servers: int, *, ready: int | None = None, spec: Object | None = None, **meta: Any) -> Object:
    """A Memcached with slots, whose status has the addresses of this number of servers. `ready`: by default all."""
    defaults: Object = {"identity": "Stable", "size": servers, "image": "docker.io/library/memcached:1.6.45"}
    cr = memcached(**{**defaults, **(spec or {})})
    addresses = [f"cache-{slot}.cache.test.svc.cluster.local:11211" for slot in range(servers)]
    status = {
        "observedGeneration": 1,
        "readyReplicas": servers if ready is None else ready,
        "replicas": servers,
        "servers": addresses,
    }
    return {**cr, "metadata": {**cr["metadata"], **meta}, "status": status}


def owned(cr: Object | None = None, resource: Resource = DEPLOYMENTS, *, version: int = 10, **meta: Any) -> Object:
    """A live child without a spec, controlled by a Memcached unless `ownerReferences` says otherwise."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": "cache",
            "namespace": "test",
            "uid": "child",
            "resourceVersion": str(version),
            "labels": LABELS,
            "ownerReferences": [controller_reference(memcached() if cr is None else cr)],
            "managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply"}],
            **meta,
        },
    }


def deployment(size: int = 3, conditions: Any = None, **status: Any) -> Object:
    """A live Deployment with this status. `conditions`: type → status, or type → a mapping with more fields."""
    by_type: dict[str, Any] = conditions or {}
    entries = [
        {"type": name, **({"status": condition} if isinstance(condition, str) else condition)}
        for name, condition in by_type.items()
    ]
    live = owned(generation=2)
    return {**live, "spec": {"replicas": size}, "status": {"observedGeneration": 2, "conditions": entries, **status}}


def rolled_out(size: int = 3) -> Object:
    """A Deployment whose rollout is complete."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), size)
    return deployment(size, conditions={"Available": "True"}, **counts)


def pod(name: str = "cache-1", *, phase: str = "Running", version: int = 1, **status: Any) -> Object:
    """A pod with this status."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "test", "uid": name, "resourceVersion": str(version), "labels": LABELS},
        "status": {"phase": phase, **status},
    }


def typed(*pods: Object | Pod) -> tuple[Pod, ...]:
    """Pods with their types."""
    return tuple(each if isinstance(each, Pod) else pod_of(each) for each in pods)


def pod_of(obj: Object) -> Pod:
    """A pod with its types."""
    return msgspec.convert(obj, Pod)


def snapshot_of(
    cr: Object,
    children: Mapping[Key, Object] | None = None,
    pods: Iterable[Object | Pod] = (),
    *,
    ended: Iterable[Object | Pod] = (),
    **parts: Any,
) -> Snapshot:
    """A snapshot of pods that are given as dictionaries. `parts`: its other fields."""
    return Snapshot(cr, children or {}, typed(*pods), ended=typed(*ended), **parts)


def deleted(obj: Object) -> Object:
    """This pod while it is being deleted."""
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2030-01-01T12:00:00Z"}}


def waiting(reason: str, message: str = "", ended: Object | None = None) -> Object:
    """The status of a waiting container. `ended`: its last termination."""
    return container({"waiting": {"reason": reason, "message": message}}, ended=ended)


def container(state: Object, *, ready: bool = False, ended: Object | None = None) -> Object:
    """The status of the container `memcached`."""
    return {
        "name": "memcached",
        "image": "example.com/memcached:1",
        "ready": ready,
        "state": state,
        "lastState": {"terminated": ended} if ended else {},
    }


def crashed(name: str = "cache-1", *, exit_code: int = 64, reason: str = "Error") -> Object:
    """A pod whose container crashed and is in CrashLoopBackOff."""
    return pod(name, containerStatuses=[waiting("CrashLoopBackOff", ended={"exitCode": exit_code, "reason": reason})])


def running_again(ready_since: str | None, *, exit_code: int = 64) -> Object:
    """A pod whose container crashed and runs again. `ready_since`: when it became Ready; None if it is not Ready."""
    ready = ready_since is not None
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": ready_since}
    restarted = container({"running": {}}, ready=ready, ended={"exitCode": exit_code, "reason": "Error"})
    return pod(containerStatuses=[restarted], conditions=[condition])
