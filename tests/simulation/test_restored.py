"""The data of the API server are restored from a backup: resourceVersions repeat, and watches send nothing at first."""

import asyncio
from typing import Final

import pytest

from faults.sandbox import Sandbox, Settings, wait_until
from faults.workloads import cache
from memcached_operator.kube.resource import DEPLOYMENTS, Key, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation import clock
from simulation.operator import logged
from simulation.plane import BOOKMARKS, SimulatedPlane

CONFIG_MAP: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "restored"}}
SYNC_PERIOD: Final = 60.0


async def scenario(before: str, after: str) -> None:
    """`before`, `after`: the objects that are created before the backup, and after it."""
    plane = SimulatedPlane()
    async with plane.sandbox("restored", Settings(sync_period=SYNC_PERIOD)) as sandbox:
        await sandbox.start()
        for name in before:
            await sandbox.create_ready(MEMCACHEDS, name, cache(size=2))
        restore = plane.server.saved()
        for name in after:
            await sandbox.create_ready(MEMCACHEDS, name, cache(size=2))
        for size in range(3, 9):
            await sandbox.change(MEMCACHEDS, "a", {}, {"size": size})
        await wait_for_size(sandbox, "a", 8)
        assert "was restored from a backup" not in plane.operators[0].log_text()
        restore()
        for stream in sandbox.proxy.open_watches():
            await stream.interrupt(cut=True)
        await sandbox.change(MEMCACHEDS, "a", {}, {"size": 1})
        await wait_for_size(sandbox, "a", 1)
        await sandbox.change(MEMCACHEDS, "a", {}, {"size": 2})
        await wait_for_size(sandbox, "a", 2, 10)  # by an event: the watch was started again
        for name in after:
            assert await sandbox.get(DEPLOYMENTS, name) is None
            await sandbox.create_ready(MEMCACHEDS, name, cache(size=2))
        assert "was restored from a backup" in plane.operators[0].log_text()


async def wait_for_size(sandbox: Sandbox, name: str, size: int, seconds: float = 2 * SYNC_PERIOD) -> None:
    """Wait until the Deployment and the status have a size."""

    async def poll() -> bool:
        found = [await sandbox.get(resource, name) or {} for resource in (DEPLOYMENTS, MEMCACHEDS)]
        return all(nested_map(each, "status").get("readyReplicas") == size for each in found)

    await wait_until(poll, seconds, f"{Key(MEMCACHEDS, sandbox.namespace, name)} has {size} pods")


@pytest.mark.parametrize(("before", "after"), [("a", ""), ("a", "b")], ids=["changed since", "created since"])
def test_operator_follows_a_restored_api_server(before: str, after: str) -> None:
    with logged():
        clock.run(asyncio.wait_for(scenario(before, after), 1000))


async def quiet(others: int) -> None:
    """Nothing of the operator changes after the backup. `others`: the changes of other objects until the restore."""
    plane = SimulatedPlane()
    async with plane.sandbox("restored", Settings(sync_period=SYNC_PERIOD)) as sandbox:
        await sandbox.start()
        await sandbox.create_ready(MEMCACHEDS, "a", cache(size=2))
        restore = plane.server.saved()
        for number in range(others):
            plane.server.put({**CONFIG_MAP, "data": {"number": str(number)}})
        await asyncio.sleep(3 * BOOKMARKS)
        restore()
        for stream in sandbox.proxy.open_watches():
            await stream.interrupt(cut=True)
        await asyncio.sleep(2 * SYNC_PERIOD)
        for size in (1, 2):
            await sandbox.change(MEMCACHEDS, "a", {}, {"size": size})
            await wait_for_size(sandbox, "a", size, 10)


def test_restore_is_noticed_by_the_versions_of_bookmarks() -> None:
    with logged():
        clock.run(asyncio.wait_for(quiet(50), 1000))
