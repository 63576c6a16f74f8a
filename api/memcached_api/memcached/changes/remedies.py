"""What following a remedy does to the pods: the effect of an example of the change, as admission announces it."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from memcached_api.effects import Effect
from memcached_api.kubernetes import ResourceRequirements
from memcached_api.memcached.changes.effect import effect_of, weakest_effect
from memcached_api.memcached.changes.resizing import PARTS, RESIZABLE
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, is_stable, needs_agent
from memcached_api.quantity import parse_quantity
from memcached_api.remedies import Action, Direction
from memcached_api.shared.agent import Agent
from memcached_api.shared.resources import agent_requirements

MEMORY: Final = "spec.cache.memory"
RESOURCES: Final = "spec.resources"
AGENT_RESOURCES: Final = "spec.agent.resources"

FACTORS: Final = {Direction.UP: Decimal(2), Direction.DOWN: Decimal("0.5")}
"""By which the example of a change multiplies an amount."""

Amount = tuple[str, str]
"""A part of `resources`, and a resource: `limits`, `memory`."""


Losing = Mapping[Direction, tuple[str, ...]]
"""Fields whose change replaces the pods, by the direction of the change."""


def losing(spec: MemcachedSpec | None, action: Action) -> Losing:
    """The fields of an action whose change replaces the pods, by its direction.

    The direction is that of the action. If that is ANY, a field that replaces the pods in one direction only has this
    one. `spec`: None if it is invalid; then nothing is known to be kept.
    """
    found = dict[Direction, tuple[str, ...]]()
    for field in action.fields:
        for direction, name in _losing(spec, field, action.direction):
            found[direction] = (*found.get(direction, ()), name)
    return found


def _losing(spec: MemcachedSpec | None, field: str, direction: Direction) -> Iterator[tuple[Direction, str]]:
    if direction is not Direction.ANY:
        yield from ((direction, name) for name in _names(spec, field, direction))
        return
    up, down = (_names(spec, field, each) for each in FACTORS)
    yield from ((direction, name) for name in up if name in down)
    for each, names, others in ((Direction.UP, up, down), (Direction.DOWN, down, up)):
        yield from ((each, name) for name in names if name not in others)


def _names(spec: MemcachedSpec | None, field: str, direction: Direction) -> list[str]:
    """The field if a change of it in a direction replaces the pods; of a section with amounts, those that do."""
    if spec is None:
        return [field] if any(MEMCACHED.fields[name].effect is not Effect.NOTHING for name in _rows(field)) else []
    if field not in (RESOURCES, AGENT_RESOURCES) or direction is Direction.ADDED:
        return [field] if _effect(spec, field, direction) is Effect.REPLACE else []
    # Both the request and the limit of a resource change, so that the QoS class stays.
    replacing = [name for name in RESIZABLE if _scaled(spec, field, name, direction) is Effect.REPLACE]
    return [field] if len(replacing) == len(RESIZABLE) else [f"{field}.limits.{name}" for name in replacing]


def _effect(spec: MemcachedSpec, field: str, direction: Direction) -> Effect:
    """The effect of a change of one field of a valid spec in a direction, whatever the new value is."""
    rows = _rows(field)
    if all(MEMCACHED.fields[name].effect is Effect.NOTHING for name in rows):
        return Effect.NOTHING
    if field.startswith("spec.agent.") and not needs_agent(spec):
        return Effect.NOTHING
    if not is_stable(spec):
        return Effect.REPLACE
    if field == MEMORY:
        memory = int(resolved(spec).memory * FACTORS[direction])
        return effect_of(replace(spec, cache=replace(spec.cache, memory=str(memory))), spec).effect
    for section in (RESOURCES, AGENT_RESOURCES):
        if f"{field}.".startswith(f"{section}."):
            return _resized(spec, section, field, direction)
    if _derives_memory(spec) and any(MEMCACHED.fields[name].sizes for name in rows):
        rows.append(MEMORY)
    return max(weakest_effect(name, spec) for name in rows)


def _derives_memory(spec: MemcachedSpec) -> bool:
    """Whether the memory for items is what the limit leaves beside the other settings."""
    return spec.cache.memory is None and spec.resources is not None and "memory" in spec.resources.limits


def _rows(field: str) -> list[str]:
    """The fields of the table of effects that a field is, contains, or is a part of."""
    return [name for name in MEMCACHED.fields if f"{field}.".startswith(f"{name}.") or name.startswith(f"{field}.")]


def _resized(spec: MemcachedSpec, section: str, field: str, direction: Direction) -> Effect:
    """The effect of a change of one amount: `SECTION.PART.RESOURCE`; if another one is added, of an amount not set."""
    if direction is Direction.ADDED:
        # Any amount may be meant. Those of CPU and memory can be added to a running pod, this one cannot.
        return _with(spec, section, {("limits", "ephemeral-storage"): Decimal(1)})
    before = _amounts(spec, section)
    _, part, name = field.rsplit(".", 2)
    amount = _amount(before, (part, name)) * FACTORS[direction]
    limit = _resources(spec, section).limits.get(name)
    if part == "requests" and limit is not None and amount > parse_quantity(limit):  # then admission requires both
        return _with(spec, section, {("requests", name): amount, ("limits", name): amount})
    return _with(spec, section, {(part, name): amount})


def _scaled(spec: MemcachedSpec, section: str, name: str, direction: Direction) -> Effect:
    """The effect of a change of the request and the limit of one resource."""
    if section == AGENT_RESOURCES and not needs_agent(spec):
        return Effect.NOTHING
    before = _amounts(spec, section)
    both = [(part, name) for part in PARTS if name in before[part]]
    return _with(spec, section, {each: _amount(before, each) * FACTORS[direction] for each in both})


def _amount(amounts: Mapping[str, Mapping[str, str]], amount: Amount) -> Decimal:
    """An amount, or 1 if it is not set."""
    part, name = amount
    return parse_quantity(amounts[part].get(name, "1"))


def _amounts(spec: MemcachedSpec, section: str) -> dict[str, dict[str, str]]:
    """The requests and limits of the section's container, also those that are not set."""
    return requirements(spec) if section == RESOURCES else agent_requirements(spec.agent and spec.agent.resources)


def _with(spec: MemcachedSpec, section: str, amounts: Mapping[Amount, Decimal]) -> Effect:
    """The effect of setting some amounts of a section."""
    resources = _resources(spec, section)
    for (part, name), amount in amounts.items():
        resources = replace(resources, **{part: {**getattr(resources, part), name: f"{amount:f}"}})
    if section == RESOURCES:
        return effect_of(replace(spec, resources=resources), spec).effect
    return effect_of(replace(spec, agent=replace(spec.agent or Agent(), resources=resources)), spec).effect


def _resources(spec: MemcachedSpec, section: str) -> ResourceRequirements:
    """The amounts that the spec sets in a section."""
    agent = spec.agent or Agent()
    return (spec.resources if section == RESOURCES else agent.resources) or ResourceRequirements()
