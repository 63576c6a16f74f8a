"""The least that a change of a Memcached does to its pods, if the cluster and the node allow it."""

from enum import IntEnum
from typing import Final, NamedTuple

from memcached_api.changes import changed
from memcached_api.memcached.changes.fields import changed_fields, sections, used
from memcached_api.memcached.effective import effective
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.options import name_of
from memcached_api.memcached.requirements import agent_requirements, requirements
from memcached_api.memcached.types import MemcachedSpec, is_stable, needs_agent, restarts_warm
from memcached_api.resizing import Amounts, by_value, shape

ITEM_OPTIONS: Final = ("--disable-cas", "--slab-growth-factor", "--slab-min-size")
"""The options that determine where items are in memory: memcached keeps no item if one of them changes."""

SIZES: Final = (
    "spec.resources",
    "spec.cache.memory",
    "spec.cache.maxConnections",
    "spec.cache.threads",
    "spec.agent.resources",
)
"""The fields from which requests and limits follow. With TLS they also follow from `spec.tls`, which replaces pods."""

ARGUMENTS: Final = (
    "spec.image",
    "spec.cache.maxConnections",
    "spec.cache.threads",
    "spec.cache.evictions",
    "spec.cache.verbosity",
)
"""The fields with which memcached can be restarted and keep its items."""


class Effect(IntEnum):
    """What happens to the pods, the least first."""

    NOTHING = 0
    IN_PLACE = 1
    """Annotations or the agent change; memcached keeps running."""
    RESIZE = 2
    """Requests, limits or the memory for items change; memcached keeps running."""
    RESTART = 3
    """memcached is restarted in its pod, with its items."""
    REPLACE = 4
    """The pods are replaced, and their items are lost."""


class Update(NamedTuple):
    """The effect of a change, the fields that have it, and whether the pods are also resized."""

    effect: Effect
    fields: list[str]
    resizes: bool = False


def update(new: MemcachedSpec, old: MemcachedSpec) -> Update:
    """The effect of a change of a Memcached. Both specs must be valid.

    The strongest effect of the changed fields counts. A downgrade of memcached that cannot read the items is not seen.
    """
    names = changed_fields(new, old)
    if not is_stable(new):
        return Update(Effect.REPLACE if names else Effect.NOTHING, sections(names, new, old))
    sizes, others = resource_effect(new, old), changed(used(new), used(old))
    effects = {name: _effect(name, new, old) if name in others else Effect.NOTHING for name in names}
    effects |= {name: max(effects[name], sizes) for name in effects if name in SIZES}
    effect = max(effects.values(), default=Effect.NOTHING)
    if effect is Effect.NOTHING:
        return Update(effect, [])
    strongest = [name for name, each in effects.items() if each is effect]
    return Update(effect, sections(strongest, new, old), Effect.RESIZE in (effect, sizes))


def _effect(name: str, new: MemcachedSpec, old: MemcachedSpec) -> Effect:
    """The effect of one field that the pods use otherwise, without that on requests and limits."""
    if name in ("spec.resources", "spec.agent.resources"):
        return Effect.NOTHING
    agents, warm = (all(map(each, (new, old))) for each in (needs_agent, restarts_warm))
    if name == "spec.agent.image" or name.startswith("spec.rollout.warmUp."):
        return Effect.IN_PLACE if agents else Effect.REPLACE
    if name == "spec.cache.memory":
        return Effect.RESIZE if agents and _grows(new, old) else Effect.REPLACE
    if name in ARGUMENTS:
        return Effect.RESTART if warm else Effect.REPLACE
    if name == "spec.cache.extraArgs":
        return Effect.RESTART if warm and item_options(new) == item_options(old) else Effect.REPLACE
    return Effect.REPLACE


def _grows(new: MemcachedSpec, old: MemcachedSpec) -> bool:
    """Whether a running memcached can be given the new memory: more, and not in a file for a warm restart."""
    after, before = (megabytes(effective(each).memory) for each in (new, old))
    return after > before and not restarts_warm(new) and not restarts_warm(old)


def item_options(spec: MemcachedSpec) -> set[str]:
    """The items of `extraArgs` with ITEM_OPTIONS."""
    return {item for item in spec.cache.extra_args if name_of(item) in ITEM_OPTIONS}


def resource_effect(new: MemcachedSpec, old: MemcachedSpec) -> Effect:
    """RESIZE if Kubernetes can change the requests and limits of running containers accordingly, otherwise REPLACE.

    It can change amounts of CPU and memory, but neither add nor remove one, nor change the QoS class of the pod.
    NOTHING if they are equal.
    """
    after, before = _containers(new), _containers(old)
    if after == before:
        return Effect.NOTHING
    return Effect.RESIZE if shape(after) == shape(before) else Effect.REPLACE


def _containers(spec: MemcachedSpec) -> dict[str, Amounts]:
    """Requests and limits of each container."""
    agents = {"agent": agent_requirements(spec.agent and spec.agent.resources)} if needs_agent(spec) else {}
    return {name: by_value(each) for name, each in {"memcached": requirements(spec), **agents}.items()}
