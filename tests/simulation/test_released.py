"""A user removes a label of a slot's pod, and restores it with the command in the status: the items are kept."""

import asyncio
from typing import Final

from faults.sandbox import LONG_SYNC_PERIOD, Sandbox, Settings, wait_until
from memcached_operator.findings.creation import RETRY_PERIOD
from memcached_operator.kube.resource import PODS, Key, controller_of
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation import clock
from simulation.operator import logged
from simulation.plane import SimulatedPlane

INSTANCE: Final = "app.kubernetes.io/instance"


async def command(sandbox: Sandbox) -> list[str]:
    """The words of the command that restores the labels, once the status has it."""

    async def poll() -> str | None:
        degraded = await sandbox.condition(MEMCACHEDS, "cache", "Degraded")
        _, found, rest = degraded.get("message", "").partition("Restore them: ")
        return rest if found else None

    text = await wait_until(poll, RETRY_PERIOD, "the command")
    assert text.endswith("; its items are then lost")
    return text.partition(". Or")[0].split()


async def scenario() -> None:
    """The label is removed and restored. The controller releases the pod when it lacks the label."""
    plane = SimulatedPlane()
    async with plane.sandbox("released", Settings(sync_period=LONG_SYNC_PERIOD)) as sandbox:
        await sandbox.start()
        await sandbox.create_ready(MEMCACHEDS, "cache", {"identity": "Stable", "size": 3})
        pod = Key(PODS, sandbox.namespace, "cache-1")
        uid = plane.server.objects[pod]["metadata"]["uid"]
        await sandbox.merge(pod, {"metadata": {"labels": {INSTANCE: None}, "ownerReferences": None}})
        *words, label = await command(sandbox)
        assert words == ["kubectl", "label", "pod", "--overwrite", "-n", sandbox.namespace, "cache-1"]
        name, _, value = label.partition("=")
        await sandbox.merge(pod, {"metadata": {"labels": {name: value}}})
        await sandbox.wait_ready(MEMCACHEDS, "cache", 2 * RETRY_PERIOD)  # when the simulated controller acts again
        live = plane.server.objects[pod]
        assert (live["metadata"]["uid"], controller_of(live) is None) == (uid, False)


def test_pod_of_a_slot_is_adopted_with_its_items_when_its_labels_are_restored() -> None:
    with logged():
        clock.run(asyncio.wait_for(scenario(), 1000))
