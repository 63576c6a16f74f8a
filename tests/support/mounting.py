"""Pods that mount Secrets, and what a kubelet writes about them: statuses and Events."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.client import MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import EVENTS, PODS, Key, Object, nested_list
from support.draining import condition, pods_of

SECRET = "sessions-tls"
VOLUME: Object = {"name": "tls", "projected": {"sources": [{"secret": {"name": SECRET}}]}}
MOUNTING: Object = {"spec": {"template": {"spec": {"volumes": [VOLUME]}}}}
"""The merge patch of a workload, after which its pods have the volume. A kubelet would ignore it, because no container
mounts it."""
NOWHERE: Object = {"podTemplate": {"spec": {"nodeSelector": {"example.com/node": "none"}}}}
"""No node has this label: the pods stay pending, and only tests write their statuses."""
NOT_FOUND = f'MountVolume.SetUp failed for volume "tls" : secret "{SECRET}" not found'
MESSAGE = f'volume tls cannot be mounted: secret "{SECRET}" not found; create the Secret {SECRET} in this namespace'


def ago(seconds: float) -> str:
    """A time before now."""
    return timestamp(datetime.now(UTC) - timedelta(seconds=seconds))


async def mount(client: ApiClient, key: Key) -> None:
    """Let the pods of a workload mount the Secret."""
    await client.request("PATCH", key.resource.path(key.namespace, key.name), MOUNTING, MERGE_PATCH)


async def mounting_pods(client: ApiClient, namespace: str) -> list[Object]:
    """The pods with the volume, by name, which the scheduler has seen: later, it would change the status of a test."""
    found = [pod for pod in await pods_of(client, namespace) if VOLUME["name"] in _volumes(pod)]
    return sorted((pod for pod in found if condition(pod, "PodScheduled")), key=lambda pod: pod["metadata"]["name"])


def _volumes(pod: Object) -> list[str]:
    return [volume["name"] for volume in nested_list(pod, "spec", "volumes")]


async def set_waiting(client: ApiClient, pod: Object) -> None:
    """A kubelet waits for the volumes of a pod that was scheduled a minute ago."""
    conditions = [_condition("PodScheduled", 60), _condition("PodReadyToStartContainers", 60, "False")]
    state = {"waiting": {"reason": "ContainerCreating"}}
    await _set_status(client, pod, "Pending", conditions, state)


async def set_running(client: ApiClient, pod: Object, since: float = 0, **conditions: str) -> None:
    """A kubelet has mounted the volumes and started the containers `since` seconds ago.

    `conditions`: the status of those that are not True.
    """
    names = ("PodScheduled", "PodReadyToStartContainers", "Ready", "ContainersReady")
    state = {"running": {"startedAt": ago(since)}}
    listed = [_condition(name, since, conditions.get(name, "True")) for name in names]
    await _set_status(client, pod, "Running", listed, state)


def _condition(name: str, since: float, status: str = "True") -> Object:
    return {"type": name, "status": status, "lastTransitionTime": ago(since)}


async def _set_status(
    client: ApiClient, pod: Object, phase: str, conditions: list[Object], state: Mapping[str, Any]
) -> None:
    meta, ready = pod["metadata"], phase == "Running"
    statuses = [
        {"name": each["name"], "image": each["image"], "imageID": "", "restartCount": 0, "ready": ready, "state": state}
        for each in pod["spec"]["containers"]
    ]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": statuses}
    path = PODS.path(meta["namespace"], meta["name"], "status")
    await client.request("PATCH", path, {"status": status}, MERGE_PATCH)


async def report(client: ApiClient, pod: Object, message: str = NOT_FOUND, **changes: Any) -> None:
    """A kubelet reports a failed mount of a pod."""
    meta, now = pod["metadata"], ago(0)
    event = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}", "namespace": meta["namespace"]},
        "involvedObject": {name: meta[name] for name in ("name", "namespace", "uid")} | {"kind": PODS.kind},
        "type": "Warning",
        "reason": "FailedMount",
        "message": message,
        "source": {"component": "kubelet"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    await client.request("POST", EVENTS.path(meta["namespace"]), {**event, **changes})
