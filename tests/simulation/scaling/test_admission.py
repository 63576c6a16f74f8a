"""A policy of the cluster removes what a change of size writes: it waits, says so, and costs few writes."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import pytest

from memcached_api.annotations import MOVE_ANNOTATION, MOVE_TIMES_ANNOTATION
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.parts.ring import Phase
from simulation.api.storage import Storage
from simulation.scaling.world import ScalingWorld, run

SECONDS: Final = 120.0
MOST: Final = 12
"""Writes of one object in SECONDS that a policy may cause."""

Change = Callable[[Object], Object]


@contextmanager
def policy(resource: Resource, change: Change) -> Generator[None]:
    """Objects of a resource are changed before they are stored."""
    real = Storage.put

    def put(self: Storage, key: Key, obj: Object) -> Any:
        return real(self, key, change(obj) if key.resource == resource else obj)

    with mock.patch.object(Storage, "put", put):
        yield


def without_record(*names: str) -> Change:
    """Removes annotations."""

    def change(obj: Object) -> Object:
        annotations = obj["metadata"].get("annotations", {})
        kept = {name: text for name, text in annotations.items() if name not in names}
        return {**obj, "metadata": {**obj["metadata"], "annotations": kept}}

    return change


def without_sweep(obj: Object) -> Object:
    """Removes init containers from a pod."""
    return {**obj, "spec": {name: value for name, value in obj["spec"].items() if name != "initContainers"}}


@pytest.mark.parametrize(
    "names", [(MOVE_ANNOTATION,), (MOVE_TIMES_ANNOTATION,), (MOVE_ANNOTATION, MOVE_TIMES_ANNOTATION)]
)
@pytest.mark.parametrize("phase", [Phase.STABLE, Phase.PREPARE, Phase.FINISH])
def test_record_that_is_removed_is_named_until_the_policy_ends(phase: Phase, names: tuple[str, ...]) -> None:
    async def scenario(world: ScalingWorld) -> None:
        await world.warm()
        if phase is not Phase.STABLE:
            await world.scale(4)
            await world.reach(phase)
        with policy(STATEFULSETS, without_record(*names)):
            await world.scale(4)
            live = world.key(STATEFULSETS, "cache")
            await world.sandbox.merge(live, {"metadata": {"labels": {"example.com/touched": "yes"}}})
            world.changes.clear()
            await world.watch(lambda: False, SECONDS)
            assert world.changes.count(("MODIFIED", live)) <= MOST
            reason, text = world.condition(MEMCACHEDS, "cache", "Progressing")
            assert (reason in ("MovingKeys", "MoveStuck"), f"annotation {MOVE_ANNOTATION}" in text) == (True, True)
        await world.sandbox.merge(live, {"metadata": {"labels": {"example.com/touched": None}}})
        await world.settle(4)

    run(scenario)


@pytest.mark.parametrize("resource", [PODS, DEPLOYMENTS])
def test_proxies_without_a_sweep_are_named_until_the_policy_ends(resource: Resource) -> None:
    def change(obj: Object) -> Object:
        if resource == PODS:
            return without_sweep(obj)
        template = obj["spec"]["template"]
        return {**obj, "spec": {**obj["spec"], "template": without_sweep(template)}}

    async def scenario(world: ScalingWorld) -> None:
        await world.warm()
        with policy(resource, change):
            await world.scale(4)
            await world.reach(Phase.PREPARE)
            text = "without the end of its init container sweep, so the change of size waits"
            await world.until(lambda: text in world.condition(MEMCACHEDPROXIES, "front", "Degraded")[1], "reported")
            await world.watch(lambda: False, SECONDS)
            latch = world.latch()
            assert latch is not None
            assert latch.phase is Phase.PREPARE
        restarted = {"restartedAt": "2030-01-01T00:00:00Z"}
        await world.change(MEMCACHEDPROXIES, "front", rollout=restarted)
        await world.settle(4)

    run(scenario)
