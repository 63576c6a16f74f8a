"""Containers and gates of other clients on the real API server. The test writes the statuses of pods, as a kubelet."""

from collections.abc import Mapping
from typing import Any

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Object, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from support import mounting
from support.draining import condition, pods_of

PROXY: Object = {"name": "proxy", "image": "localhost:1/proxy:1"}
GATE = "example.com/lb"
ERROR = 'failed to pull and unpack image "localhost:1/proxy:1": not found'
WITHOUT: Object = {"spec": {"template": {"spec": {"initContainers": [], "readinessGates": []}}}}


async def only_pod(client: ApiClient, namespace: str, *, injected: bool) -> Object:
    """The pod with or without the container of another client. It is the only one: no rollout needs another."""

    async def found() -> Object | None:
        pods = [
            pod
            for pod in await pods_of(client, namespace)
            if bool(nested_list(pod, "spec", "initContainers")) is injected
        ]
        return pods[0] if pods and condition(pods[0], "PodScheduled") else None

    pod = await eventually(found)
    assert pod is not None
    return pod


async def degraded(client: ApiClient, namespace: str) -> Mapping[str, Any]:
    """The condition Degraded of the Memcached."""
    return condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, "Degraded")


async def wait_for_message(client: ApiClient, namespace: str, type_: str, *parts: str) -> None:
    """Wait until the message of a condition has all parts."""

    async def has() -> bool:
        found = condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, type_)
        return all(part in found.get("message", "") for part in parts)

    await eventually(has)


async def fail(client: ApiClient, pod: Object, reason: str, message: str) -> None:
    """A kubelet cannot pull the image of the init container."""
    status = {"name": PROXY["name"], "image": PROXY["image"], "imageID": "", "restartCount": 0, "ready": False}
    waiting = {"state": {"waiting": {"reason": reason, "message": message}}}
    await set_status(client, pod, initContainerStatuses=[{**status, **waiting}])


async def set_status(client: ApiClient, pod: Object, **status: Any) -> None:
    """Change parts of the status of a pod."""
    meta = pod["metadata"]
    await client.request("PATCH", PODS.path(meta["namespace"], meta["name"], "status"), {"status": status}, MERGE_PATCH)


def test_container_of_another_client_is_reported_until_it_is_corrected_and_the_pod_is_deleted(
    plane: ControlPlane, namespace: str
) -> None:
    """The container is in the pod template here; a mutating webhook would add it to each pod."""

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, **mounting.NOWHERE))
        workload = Key(DEPLOYMENTS, namespace, "cache")
        await eventually(lambda: client.get(workload))
        template = {"initContainers": [PROXY], "readinessGates": [{"conditionType": GATE}]}
        await patch(client, workload, {"spec": {"template": {"spec": template}}})
        pod = await only_pod(client, namespace, injected=True)
        image = "the image localhost:1/proxy:1 of init container proxy cannot be pulled"
        for reason, text in (("ErrImagePull", ERROR), ("ImagePullBackOff", f'Back-off pulling image "a": x: {ERROR}')):
            await fail(client, pod, reason, text)
            await wait_for_message(client, namespace, "Degraded", image, ERROR, "not part of this Memcached")
        assert (await degraded(client, namespace))["reason"] == "ImageUnavailable"
        # Without the container, the pod waits for its gate.
        await set_status(client, pod, initContainerStatuses=None)
        await mounting.set_running(client, pod, since=90, Ready="False")
        await wait_for_message(client, namespace, "Progressing", f"its readiness gate {GATE} (not set)")
        await wait_for_message(client, namespace, "Degraded", "No component has failed, but 0 of 1 pods", GATE)
        await patch(client, workload, WITHOUT)
        await client.request("DELETE", PODS.path(namespace, pod["metadata"]["name"]))
        await mounting.set_running(client, await only_pod(client, namespace, injected=False))
        found = await wait_until_ready(client, namespace)
        assert condition(found, "Degraded")["message"] == "All components are healthy"

    run_operator(plane, (namespace,), scenario)
