"""The effect of a change of a Memcached on its pods: the weakest one, if the cluster and the node allow it."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from memcached_api.effects import ITEM_OPTIONS, Effect, Needs, Part, changed
from memcached_api.memcached.changes.fields import changed_fields, sections, used
from memcached_api.memcached.changes.resizing import Amounts, by_value, can_resize
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.options import name_of
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, is_stable, needs_agent, restarts_warm
from memcached_api.shared.resources import agent_requirements


class ChangeEffect(NamedTuple):
    """The effect of a change, the fields that have it, and whether the pods are also resized."""

    effect: Effect
    fields: list[str]
    resizes: bool = False


def effect_of(new: MemcachedSpec, old: MemcachedSpec) -> ChangeEffect:
    """The effect of a change of a Memcached. Both specs must be valid.

    The strongest effect of the changed fields counts. A downgrade of memcached that cannot read the items is not seen.
    """
    names = changed_fields(new, old)
    if not is_stable(new):
        return ChangeEffect(Effect.REPLACE if names else Effect.NOTHING, sections(names, new, old))
    sizes, others = resource_effect(new, old), changed(used(new), used(old))
    effects = {name: _effect(name, new, old) if name in others else Effect.NOTHING for name in names}
    effects |= {name: max(effects[name], sizes) for name in effects if MEMCACHED.fields[name].sizes}
    effect = max(effects.values(), default=Effect.NOTHING)
    if effect is Effect.NOTHING:
        return ChangeEffect(effect, [])
    strongest = [name for name in effects if effects[name] is effect]
    return ChangeEffect(effect, sections(strongest, new, old), Effect.RESIZE in (effect, sizes))


def _effect(name: str, new: MemcachedSpec, old: MemcachedSpec) -> Effect:
    """The effect of one field that the pods use otherwise, without that on requests and limits."""
    row = MEMCACHED.fields[name]
    if row.needs is Needs.AMOUNTS:
        return Effect.NOTHING
    holds = all(_HAS[row.needs](spec) for spec in (new, old)) and _ALLOWS.get(row.needs, _any)(new, old)
    return row.effect if holds else Effect.REPLACE


def weakest_effect(name: str, spec: MemcachedSpec) -> Effect:
    """The effect of a change of one field of a spec that keeps what the effect needs, if it is one that is allowed."""
    row = MEMCACHED.fields[name]
    return row.effect if _HAS[row.needs](spec) else Effect.REPLACE


def changeable(spec: MemcachedSpec) -> frozenset[Part]:
    """The parts of a running pod that carry fields of this spec, so that these can be changed in place."""
    return frozenset(row.part for row in MEMCACHED.fields.values() if row.part is not None and _HAS[row.needs](spec))


def _grows(new: MemcachedSpec, old: MemcachedSpec) -> bool:
    after, before = (megabytes(resolved(spec).memory) for spec in (new, old))
    return after > before


def item_options(spec: MemcachedSpec) -> set[str]:
    """The items of `extraArgs` with ITEM_OPTIONS."""
    return {item for item in spec.cache.extra_args if name_of(item) in ITEM_OPTIONS}


def resource_effect(new: MemcachedSpec, old: MemcachedSpec) -> Effect:
    """RESIZE if Kubernetes can change the requests and limits of running containers accordingly, otherwise REPLACE.

    NOTHING if they are equal.
    """
    after, before = _containers(new), _containers(old)
    if after == before:
        return Effect.NOTHING
    return Effect.RESIZE if can_resize(after, before) else Effect.REPLACE


def _containers(spec: MemcachedSpec) -> dict[str, Amounts]:
    """Requests and limits of each container."""
    agents = {"agent": agent_requirements(spec.agent and spec.agent.resources)} if needs_agent(spec) else {}
    return {name: by_value(resources) for name, resources in {"memcached": requirements(spec), **agents}.items()}


def _any(*_: MemcachedSpec) -> bool:
    return True


def _can_grow(spec: MemcachedSpec) -> bool:
    """Whether a running memcached can be given more memory: not if it is in a file for a warm restart."""
    return needs_agent(spec) and not restarts_warm(spec)


def _has_same_layout(new: MemcachedSpec, old: MemcachedSpec) -> bool:
    return item_options(new) == item_options(old)


_HAS: Final[Mapping[Needs, Callable[[MemcachedSpec], bool]]] = {
    Needs.NOTHING: _any,
    Needs.AGENT: needs_agent,
    Needs.AMOUNTS: _any,
    Needs.GROWTH: _can_grow,
    Needs.WARM: restarts_warm,
    Needs.LAYOUT: restarts_warm,
}
"""Whether a spec has what a change needs, before and after it."""

_ALLOWS: Final[Mapping[Needs, Callable[[MemcachedSpec, MemcachedSpec], bool]]] = {
    Needs.GROWTH: _grows,
    Needs.LAYOUT: _has_same_layout,
}
"""Whether a change is one of those that a field allows, given the new and the old spec."""
