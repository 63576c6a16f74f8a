"""The states of objects without faults: what a new operator makes of their specs."""

import asyncio
from collections.abc import Mapping
from typing import Final

from faults.sandbox import Settings
from faults.state import CHILDREN, masked, without_generations
from memcached_operator.kube.resource import CONFIG_MAPS, Key, Object, Resource
from simulation import clock
from simulation.plane import SimulatedPlane
from simulation.walks.specs import NAMESPACE, OWNERS, Spec, identity, is_comparable, served_by, without_name

State = dict[tuple[Resource, str], Object]
"""The masked object and its children, by resource and by what follows the object's name."""
STATES: Final[dict[str, State]] = {}
"""Those that have been measured in this process."""
SETTLED: Final = 30.0
"""Seconds until nothing changes any more."""
RESOURCES: Final = (*CHILDREN, CONFIG_MAPS)


def measure(wanted: Mapping[str, Spec]) -> None:
    """Measure the states that are not known yet, of all objects that are not paused."""
    missing = [name for name in wanted if is_comparable(name, wanted) and identity(name, wanted) not in STATES]
    if missing:
        STATES.update(clock.run(_measured(missing, wanted)))


def reference(name: str, wanted: Mapping[str, Spec]) -> State:
    """The state of an object, which has been measured."""
    return STATES[identity(name, wanted)]


def state(obj: Object, name: str) -> Object:
    """An object or a child as it is compared."""
    return without_name(without_generations(masked(obj, NAMESPACE)), name)


async def _measured(names: list[str], wanted: Mapping[str, Spec]) -> dict[str, State]:
    created = dict.fromkeys([*filter(None, (served_by(name, wanted) for name in names)), *names])
    plane = SimulatedPlane()
    async with plane.sandbox(NAMESPACE, Settings()) as sandbox:
        await sandbox.start()
        for name in created:
            await sandbox.create(OWNERS[name], name, wanted[name].of(name))
        for name in created:
            await sandbox.wait_ready(OWNERS[name], name)
        await asyncio.sleep(SETTLED)
        return {identity(name, wanted): _state_of(plane, name) for name in names}


def _state_of(plane: SimulatedPlane, name: str) -> State:
    uid = plane.server.objects[Key(OWNERS[name], NAMESPACE, name)]["metadata"]["uid"]
    found = {
        (key.resource, key.name.removeprefix(name)): state(obj, name)
        for key, obj in plane.server.objects.items()
        if key.resource in RESOURCES and uid in [each["uid"] for each in obj["metadata"].get("ownerReferences", ())]
    }
    own = plane.server.objects[Key(OWNERS[name], NAMESPACE, name)]
    return {(OWNERS[name], ""): state(own, name), **found}
