"""Two throw-away kinds that name each other: each reads a field of the other one's spec and of its status."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final

import pytest

from memcached_api import conditions as c
from memcached_operator.engine.kind import DesiredStatus, Outcome, Plan, ReconciledKind
from memcached_operator.engine.manager import Manager
from memcached_operator.kube.client import ApiError, Page
from memcached_operator.kube.resource import CONFIG_MAPS, Key, Object, Resource, nested_map
from memcached_operator.world.kind import Reference
from memcached_operator.world.snapshot import Snapshot
from simulation import clock
from unit.fakes import Api

LEFTS: Final = Resource("example.com", "v1", "Left", "lefts")
RIGHTS: Final = Resource("example.com", "v1", "Right", "rights")
SETTLED: Final = 60.0
"""Seconds after which nothing changes any more."""
MANY: Final = 300
NAMES: Final = {LEFTS: RIGHTS, RIGHTS: LEFTS}


class World(Api):
    """An API server whose watches report what users write, but not what the operator does.

    `planned`: the name of the object of each plan. `unserved`: resources without a CRD.
    """

    def __init__(self) -> None:
        super().__init__()
        self.planned: list[str] = []
        self.unserved: set[Resource] = set()
        self.manager: Manager | None = None

    async def list(self, resource: Resource, namespace: str | None, selector: str = "") -> AsyncGenerator[Page]:
        """All objects of a resource. Raises ApiError if it is not served."""
        await asyncio.sleep(1 if resource == RIGHTS else 0)
        if resource in self.unserved:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        async for page in super().list(resource, namespace, selector):
            yield page

    def write(self, resource: Resource, name: str, **spec: Any) -> None:
        """Create an object, or replace its spec, as a user."""
        key = Key(resource, "test", name)
        old = self.objects.get(key, {"metadata": {"generation": 0}})
        meta = {"name": name, "namespace": "test", "uid": name, "generation": old["metadata"]["generation"] + 1}
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._report("updated", key, self.put(key, {**old, **kind, "metadata": meta, "spec": spec}))

    def remove(self, resource: Resource, name: str) -> None:
        """Delete an object, as a user."""
        key = Key(resource, "test", name)
        self.version += 1
        obj = self.objects.pop(key)
        meta = {**obj["metadata"], "resourceVersion": str(self.version)}
        self._report("deleted", key, {**obj, "metadata": meta})

    def _report(self, change: Any, key: Key, obj: Object) -> None:
        if self.manager is not None:
            self.manager.handle_event(key.resource, change, obj)

    def status(self, resource: Resource, name: str) -> dict[str, Any]:
        """What an object reports of the others."""
        status = nested_map(self.objects[Key(resource, "test", name)], "status")
        return {name: text for name, text in status.items() if name not in ("conditions", "observedGeneration")}

    def kind(self, resource: Resource) -> ReconciledKind:
        """A kind without children, whose status has what its plan has read."""

        def plan(snapshot: Snapshot, _: datetime) -> Plan:
            self.planned.append(snapshot.cr["metadata"]["name"])
            return Plan(())

        def status(snapshot: Snapshot, _: Outcome, __: datetime) -> DesiredStatus:
            cr = snapshot.cr
            conditions = [{"type": c.PROGRESSING, "status": c.FALSE, "reason": c.ROLLOUT_COMPLETE, "message": ""}]
            found: dict[str, Any] = {
                "observedGeneration": cr["metadata"]["generation"],
                "conditions": conditions,
                "peers": [{"name": key.name, **part} for key, part in snapshot.referenced.items()],
                "named by": [{"name": key.name, **part} for key, part in snapshot.referrers.items()],
                "served": snapshot.is_listed(NAMES[resource]),
                "double": 2 * cr["spec"].get("value", 0),
            }
            return DesiredStatus(found)

        reference = Reference(
            NAMES[resource],
            names=lambda obj: [name for name in obj["spec"].get("peers", ()) if name],
            reads=lambda obj: {"value": obj["spec"].get("value", 0), "double": nested_map(obj, "status").get("double")},
            shows=lambda obj: {"weight": obj["spec"].get("weight", 0)},
        )
        return ReconciledKind(
            resource=resource,
            app_name=resource.plural,
            owns=(CONFIG_MAPS,),
            workloads=(),
            plan=plan,
            status=status,
            references=(reference,),
        )


Scenario = Callable[[World], Awaitable[None]]


def run(scenario: Scenario, before: Scenario | None = None, kinds: Sequence[Resource] = (LEFTS, RIGHTS)) -> World:
    """Run a scenario after the start of an operator. `before`: what happens before that."""

    async def work() -> World:
        world, stop = World(), asyncio.Event()
        if before is not None:
            await before(world)
        world.manager = Manager(world.client, [world.kind(each) for each in kinds], sync_period=1e6)
        manager = asyncio.create_task(world.manager.run(stop))
        await asyncio.sleep(SETTLED)
        await scenario(world)
        await asyncio.sleep(SETTLED)
        stop.set()
        await manager
        return world

    return clock.run(work())


@pytest.mark.parametrize("order", [(LEFTS, RIGHTS), (RIGHTS, LEFTS)], ids=["referrer first", "target first"])
def test_either_can_be_created_first(order: tuple[Resource, Resource]) -> None:
    specs: dict[Resource, dict[str, Any]] = {LEFTS: {"peers": ["right"], "weight": 3}, RIGHTS: {"value": 1}}

    async def scenario(world: World) -> None:
        for resource in order:
            world.write(resource, resource.kind.lower(), **specs[resource])
            await asyncio.sleep(SETTLED)

    world = run(scenario)
    # `double` is what the operator itself has written.
    assert world.status(LEFTS, "left")["peers"] == [{"name": "right", "value": 1, "double": 2}]
    assert world.status(RIGHTS, "right")["named by"] == [{"name": "left", "weight": 3}]


async def both(world: World) -> None:
    """Each names the other."""
    world.write(LEFTS, "left", peers=["right"], weight=3)
    world.write(RIGHTS, "right", peers=["left"], value=1)


def test_kinds_that_name_each_other_start_and_settle() -> None:
    world = run(nothing, before=both)
    assert world.status(LEFTS, "left")["peers"] == [{"name": "right", "value": 1, "double": 2}]
    assert world.status(RIGHTS, "right")["peers"] == [{"name": "left", "value": 0, "double": 0}]
    assert len(world.planned) <= 8


def test_change_of_what_is_read_reaches_the_referrer_and_another_one_does_not() -> None:
    async def scenario(world: World) -> None:
        world.planned.clear()
        world.write(RIGHTS, "right", peers=["left"], value=1, note="nothing reads it")
        await asyncio.sleep(SETTLED)
        assert "left" not in world.planned
        world.write(RIGHTS, "right", peers=["left"], value=5)

    world = run(scenario, before=both)
    assert world.status(LEFTS, "left")["peers"] == [{"name": "right", "value": 5, "double": 10}]


def test_target_learns_who_names_it() -> None:
    async def scenario(world: World) -> None:
        world.write(RIGHTS, "other", value=2)
        world.write(LEFTS, "left", peers=["other"], weight=4)

    world = run(scenario, before=both)
    assert world.status(RIGHTS, "right")["named by"] == []
    assert world.status(RIGHTS, "other")["named by"] == [{"name": "left", "weight": 4}]


async def nothing(_: World) -> None:
    """No event."""


def after_a_restart(change: Callable[[World], None] = lambda _: None) -> Scenario:
    """Both objects and their statuses exist already. `change`: of what happened while no operator ran."""
    objects = run(nothing, before=both).objects

    async def exist(world: World) -> None:
        world.objects, world.version = objects, 1000
        change(world)

    return exist


def test_deletion_of_a_target_reaches_the_referrer() -> None:
    async def scenario(world: World) -> None:
        world.remove(RIGHTS, "right")

    assert run(scenario, before=both).status(LEFTS, "left")["peers"] == []


def test_deletion_while_no_operator_runs_reaches_the_referrer() -> None:
    world = run(nothing, before=after_a_restart(lambda world: world.remove(RIGHTS, "right")))
    assert world.status(LEFTS, "left")["peers"] == []


def test_restart_writes_nothing() -> None:
    assert run(nothing, before=after_a_restart()).statuses == []


def test_one_change_reaches_each_of_many_referrers_once() -> None:
    async def many(world: World) -> None:
        world.write(RIGHTS, "right", value=1)
        for number in range(MANY):
            world.write(LEFTS, f"left-{number}", peers=["right"])

    async def scenario(world: World) -> None:
        world.planned.clear()
        world.statuses.clear()
        world.write(RIGHTS, "right", value=1, peers=["none"])
        await asyncio.sleep(SETTLED)
        assert set(world.planned) == {"right"}
        world.write(RIGHTS, "right", value=7)

    world = run(scenario, before=many)
    assert all(world.status(LEFTS, f"left-{number}")["peers"][0]["double"] == 14 for number in range(MANY))
    # The spec and the status of the target change at different times.
    assert len(world.planned) <= 5 * MANY
    assert len(world.statuses) <= 2 * MANY + 10


def test_field_that_flaps_causes_few_writes() -> None:
    async def scenario(world: World) -> None:
        world.statuses.clear()
        for number in range(400):
            world.write(RIGHTS, "right", peers=["left"], value=number % 2)
            await asyncio.sleep(0.1)
        world.write(RIGHTS, "right", peers=["left"], value=9)

    world = run(scenario, before=both)
    assert world.status(LEFTS, "left")["peers"] == [{"name": "right", "value": 9, "double": 18}]
    # At most one per second and object.
    assert len(world.statuses) <= 100


def test_referrer_works_without_the_crd_of_its_target_and_notices_its_installation() -> None:
    async def unserved(world: World) -> None:
        world.unserved.add(RIGHTS)
        world.write(LEFTS, "left", peers=["right"])

    async def scenario(world: World) -> None:
        assert world.status(LEFTS, "left") == {"peers": [], "named by": [], "served": False, "double": 0}
        world.unserved.clear()
        await asyncio.sleep(SETTLED)
        world.write(RIGHTS, "right", value=1)

    world = run(scenario, before=unserved)
    assert world.status(LEFTS, "left")["served"]
    assert world.status(LEFTS, "left")["peers"] == [{"name": "right", "value": 1, "double": 2}]
