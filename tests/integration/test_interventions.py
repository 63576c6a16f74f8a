"""Other clients that change the children: the status names them, and the remedies that it gives work as written."""

import asyncio
import re
import shlex
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, EVENTS, STATEFULSETS, Key, Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from support.draining import condition
from support.kube import kubectl

pytestmark = [pytest.mark.usefixtures("kubeconfig"), pytest.mark.kubectl]

STABLE: Object = {"size": 2, "identity": "Stable"}
HEALTHY = "All components are healthy"
EXCLUDE = "downscaler/exclude"


async def message(client: ApiClient, namespace: str) -> str:
    """The message of Degraded."""
    return condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, "Degraded").get("message", "")


async def healthy(client: ApiClient, namespace: str) -> None:
    """Wait until the message of Degraded says nothing else."""

    async def check() -> bool:
        return await message(client, namespace) == HEALTHY

    await eventually(check)


async def message_with(client: ApiClient, namespace: str, text: str) -> str:
    """The message of Degraded, when it contains a text."""

    async def check() -> str:
        found = await message(client, namespace)
        return found if text in found else ""

    return await eventually(check)


async def replicas_are(client: ApiClient, namespace: str, number: int) -> None:
    """Wait until the StatefulSet has a number of pods."""

    async def check() -> bool:
        found = await client.get(Key(STATEFULSETS, namespace, "cache"))
        return nested_map(found or {}, "spec").get("replicas") == number

    await eventually(check)


async def events(client: ApiClient, namespace: str, reason: str) -> list[str]:
    """The messages of the Events with a reason."""
    found = await client.request("GET", EVENTS.path(namespace))
    return [event["message"] for event in found["items"] if event["reason"] == reason]


def without_health(found: str) -> str:
    """The notice in a message of Degraded."""
    return found.removeprefix(f"{HEALTHY}. ")


async def run(command: str) -> None:
    """Run a command of kubectl from a message."""
    program, *arguments = shlex.split(command)
    assert program == "kubectl"
    await asyncio.to_thread(kubectl, *arguments)


async def downscale(client: ApiClient, namespace: str) -> None:
    """One round of kube-downscaler: it stops each workload that is not excluded, with pykube's field manager."""
    key = Key(STATEFULSETS, namespace, "cache")
    annotations = nested_map(await client.get(key) or {}, "metadata", "annotations")
    if annotations.get(EXCLUDE) != "true":
        body = {"metadata": {"annotations": {"downscaler/original-replicas": "2"}}, "spec": {"replicas": 0}}
        params = {"fieldManager": "pykube-ng"}
        await client.request("PATCH", key.resource.path(namespace, "cache"), body, MERGE_PATCH, params)


def test_downscaler_is_named_and_its_exclusion_works_as_written(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **STABLE))
        await wait_until_ready(client, namespace)
        for _ in range(2):
            await healthy(client, namespace)
            await downscale(client, namespace)
            await replicas_are(client, namespace, 2)
        notice = "StatefulSet cache: another client changed spec.replicas repeatedly"
        found = await message_with(client, namespace, f"{HEALTHY}. {notice}")  # not while a pod is missing
        assert "Field manager: pykube-ng" in found
        assert await eventually(lambda: events(client, namespace, "ChangesReverted")) == [without_health(found)]
        await run(found[found.index("kubectl patch") :])

        async def is_excluded() -> bool:
            live = await client.get(Key(STATEFULSETS, namespace, "cache"))
            return nested_map(live or {}, "metadata", "annotations").get(EXCLUDE) == "true"

        await eventually(is_excluded)
        before = await client.get(Key(STATEFULSETS, namespace, "cache"))
        await downscale(client, namespace)
        after = await client.get(Key(STATEFULSETS, namespace, "cache"))
        assert nested_map(before or {}, "spec") == nested_map(after or {}, "spec")

    run_operator(plane, (namespace,), scenario)


def test_kubectl_scale_is_named_and_ends_with_the_command_as_written(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **STABLE))
        await wait_until_ready(client, namespace)
        for _ in range(2):
            await run(f"kubectl scale -n {namespace} statefulset cache --replicas=1")
            await replicas_are(client, namespace, 2)
        found = await message_with(client, namespace, "Field manager: kubectl (subresource scale)")
        (command,) = re.findall(r"run (kubectl scale .* --replicas=)NUMBER instead", found)
        await run(f"{command}3")
        await replicas_are(client, namespace, 3)
        monkeypatch.setattr("memcached_operator.engine.writes.reverts.WINDOW", 0.1)
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"metadata": {"annotations": {"wake": "up"}}})
        await healthy(client, namespace)

    run_operator(plane, (namespace,), scenario)


@pytest.mark.parametrize(
    ("resource", "spec", "effect"),
    [
        (DEPLOYMENTS, {"size": 1}, "replaced its pods, and their items are lost"),
        (STATEFULSETS, {"size": 1, "identity": "Stable"}, "had no effect"),
    ],
    ids=["Deployment", "StatefulSet"],
)
def test_kubectl_rollout_restart_is_reported_until_the_memcached_restarts(
    plane: ControlPlane, namespace: str, resource: Resource, spec: dict[str, Any], effect: str
) -> None:
    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **spec))
        await wait_until_ready(client, namespace)
        await run(f"kubectl rollout restart -n {namespace} {resource.kind.lower()} cache")
        found = await message_with(client, namespace, effect)
        assert found.endswith("or set spec.rollout.restartedAt to the current time")
        assert await eventually(lambda: events(client, namespace, "RestartedByKubectl")) == [without_health(found)]
        restart = {"spec": {"rollout": {"restartedAt": "2030-01-01T00:00:00Z"}}}
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), restart)
        assert condition(await wait_until_ready(client, namespace), "Degraded")["message"] == HEALTHY

    run_operator(plane, (namespace,), scenario)


def test_restart_by_kubectl_that_is_reverted_is_reported(plane: ControlPlane, namespace: str) -> None:
    """With spec.rollout.restartedAt, the annotation is a field of the controller."""

    async def scenario(client: ApiClient) -> None:
        spec: Object = {**STABLE, "rollout": {"restartedAt": "2026-01-01T00:00:00Z"}}
        await create(client, cache(namespace, **spec))
        await wait_until_ready(client, namespace)
        await run(f"kubectl rollout restart -n {namespace} statefulset cache")
        found = await message_with(client, namespace, "kubectl rollout restart was reverted")
        assert "Field manager: kubectl-rollout" in found

    run_operator(plane, (namespace,), scenario)
