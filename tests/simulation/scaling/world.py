"""A Memcached that changes its size in phases, and its proxies: what must hold at each moment."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from faults.sandbox import LONG_SYNC_PERIOD, Settings
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.scaling.latch import Latch, recorded
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.parts.ring import Phase, Ring, ring_of
from simulation import clock
from simulation.cluster import access
from simulation.operator import logged
from simulation.plane import SimulatedPlane
from simulation.test_proxies import IMAGE, NAMESPACE, World

PHASES: Final = (Phase.WAIT, Phase.PREPARE, Phase.MOVE, Phase.FINISH, Phase.PLAIN)
PERIOD: Final = 0.25
"""Seconds between two looks at the state."""
LONG: Final = 300.0
"""Seconds within which a change of size without a fault ends, several times over."""


@dataclass
class ScalingWorld(World):
    """The world, in which the proxies that serve have neighbouring phases at each moment."""

    serving: dict[str, Ring] = field(default_factory=dict[str, Ring])
    """The rings of the pods of proxies that have been ready, until they are deleted, by uid."""
    phases: list[tuple[int, int, Phase]] = field(default_factory=list[tuple[int, int, Phase]])
    """The states of the change of size, in order."""

    plain: bool = False
    """The size changes without phases."""

    def changed(self, change: str, obj: Object) -> None:
        """Check what must always hold."""
        super().changed(change, obj)
        key = self.plane.cluster.access.key_of(obj)
        if key.resource == PODS:
            self._serve(change, obj)
        if key.resource == STATEFULSETS and (latch := recorded(obj)) is not None:
            state = (latch.source, latch.target, latch.phase)
            self.phases += [state] if self.phases[-1:] != [state] else []

    def _serve(self, change: str, pod: Object) -> None:
        uid, ring = pod["metadata"]["uid"], ring_of(pod)
        if change == "DELETED":
            self.serving.pop(uid, None)
        elif ring is not None and (uid in self.serving or access.is_ready(pod)):
            self.serving[uid] = ring
            found = [other.usage for other in self.serving.values() if not are_neighbours(ring, other)]
            if found and not self.plain:
                self.broken.append(f"{ring.usage} and {found[0]} serve at the same time")

    def latch(self) -> Latch | None:
        """The state of the change of size."""
        live = self.plane.server.objects.get(self.key(STATEFULSETS, "cache"))
        return recorded(live)

    async def warm(self, size: int = 3, duration: str = "5s") -> None:
        """Create a Memcached whose size changes in phases, and a proxy."""
        scaling = {"warm": {"duration": duration}}
        await self.create(MEMCACHEDS, "cache", identity="Stable", size=size, image=IMAGE, scaling=scaling)
        await self.front()
        await self.until(lambda: self.is_settled(size), "ready")

    async def second(self) -> None:
        """Create another proxy."""
        await self.create(MEMCACHEDPROXIES, "second", memcachedRef={"name": "cache"}, size=1, image=IMAGE)

    async def scale(self, size: int) -> None:
        """Change the size."""
        await self.change(MEMCACHEDS, "cache", size=size)

    async def reach(self, phase: Phase) -> None:
        """Wait for a phase."""

        def is_reached() -> bool:
            latch = self.latch()
            return latch is not None and latch.phase is phase

        await self.until(is_reached, f"phase {phase}")

    async def settle(self, size: int, seconds: float = LONG) -> None:
        """Wait until the size is stable, all proxies use it, and nothing else is left."""
        await self.until(lambda: self.is_settled(size), f"{size} slots", seconds)

    def is_settled(self, size: int) -> bool:
        """Whether everything is as users want it."""
        latch, live = self.latch(), self.plane.server.objects.get(self.key(STATEFULSETS, "cache"))
        deployments = self.plane.server.of(DEPLOYMENTS).values()
        rings = [ring_of(each["spec"]["template"]) for each in deployments]
        used = {ring.usage for ring in (*rings, *self.serving.values()) if ring is not None and ring.name == "cache"}
        is_stable = latch is None or (latch.is_stable and latch.source == size)
        has_slots = live is not None and live["spec"]["replicas"] == live["status"].get("readyReplicas") == size
        return is_stable and has_slots and used <= {str(size)} and "scaling" not in self.status()

    def status(self) -> Any:
        """The status of the Memcached."""
        return self.get(MEMCACHEDS, "cache").get("status", {})

    async def watch(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds, at most so long."""
        for _ in range(int(seconds / PERIOD)):
            if holds():
                return True
            await asyncio.sleep(PERIOD)
        return False

    async def until(self, holds: Callable[[], bool], what: str, seconds: float = LONG) -> None:
        """Wait until something holds."""
        if not await self.watch(holds, seconds):
            raise AssertionError(f"not {what} after {seconds} s: {self.latch()}, {self.status()}, {self.serving}")
        assert self.broken == []


def are_neighbours(one: Ring, other: Ring) -> bool:
    """Whether two rings are consistent with each other: the same one, or neighbouring phases of one change."""
    if one.name != other.name or one.usage == other.usage:
        return True
    moves = [ring.move for ring in (one, other) if ring.move is not None]
    if len(moves) == 2:
        orders = sorted(PHASES.index(move.phase) for move in moves)
        return moves[0][:2] == moves[1][:2] and moves[0].change == moves[1].change and orders[1] - orders[0] == 1
    plain = next((ring.servers for ring in (one, other) if ring.move is None), None)
    ends = {(move.source, Phase.PREPARE) for move in moves} | {(move.target, Phase.FINISH) for move in moves}
    return any((plain, move.phase) in ends for move in moves)


Scenario = Callable[[ScalingWorld], Awaitable[None]]


def run(scenario: Scenario, *, election: bool = False, seed: int = 0) -> ScalingWorld:
    """Run a scenario after the start of an operator."""

    async def work() -> ScalingWorld:
        plane = SimulatedPlane(seed)
        arguments = ("--leader-elect",) if election else ()
        settings = Settings(sync_period=LONG_SYNC_PERIOD, arguments=arguments)
        async with plane.sandbox(NAMESPACE, settings) as sandbox:
            world = ScalingWorld(plane, sandbox, plane.cluster.run_containers())
            plane.server.subscribe(world.changed)
            await sandbox.start()
            await scenario(world)
            assert world.broken == []
            return world

    with logged():
        return clock.run(work(), seed)
