"""Why a pod is missing is read beside the reconciles, and reported."""

import asyncio

from faults.sandbox import Settings, wait_until
from faults.workloads import cache
from memcached_operator.kube.resource import PODS, nested_list, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation import clock
from simulation.operator import logged
from simulation.plane import SimulatedPlane


async def scenario() -> None:
    plane = SimulatedPlane()
    async with plane.sandbox("missing", Settings()) as sandbox:
        await sandbox.start()
        await sandbox.create(PODS, "a-1", {"containers": [{"name": "theirs", "image": "theirs"}]})
        await sandbox.create(MEMCACHEDS, "a", cache(size=2, identity="Stable"))

        async def poll() -> bool:
            found = nested_list(nested_map(await sandbox.get(MEMCACHEDS, "a") or {}, "status"), "conditions")
            return any(each["type"] == "Degraded" and "a-1" in each["message"] for each in found)

        await wait_until(poll, 60, "the status names the pod")
        await sandbox.delete(PODS, "a-1")
        await sandbox.wait_ready(MEMCACHEDS, "a")


def test_pod_with_the_name_of_a_slot_is_named() -> None:
    with logged():
        clock.run(asyncio.wait_for(scenario(), 1000))
