"""The effect of a change of each field on the pods of a Memcached: the one table for admission, controller and docs.

It is for `identity: Stable`. Otherwise, each change of the pods replaces them.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from memcached_api.kind import REPLACES

ITEM_OPTIONS: Final = ("--disable-cas", "--slab-growth-factor", "--slab-min-size")
"""The options that determine where items are in memory: memcached keeps no item if one of them changes."""


class Effect(IntEnum):
    """The effect of a change on the pods, the weakest first."""

    NOTHING = 0
    IN_PLACE = 1
    """Annotations or the agent change; memcached keeps running."""
    RESIZE = 2
    """Requests, limits or the memory for items change; memcached keeps running."""
    RESTART = 3
    """memcached is restarted in its pod, with its items."""
    REPLACE = 4
    """The pods are replaced, and their items are lost."""


class Needs(Enum):
    """The condition for the effect of a field; a change that does not meet it replaces the pods."""

    NOTHING = ""
    AGENT = "if there is an agent before and after the change"
    AMOUNTS = "amounts of CPU and memory, if none is removed and the QoS class of the pods stays the same"
    GROWTH = "if it is raised, with an agent and without `cache.warmRestart`"
    WARM = "with `cache.warmRestart`"
    LAYOUT = f"with `cache.warmRestart`, except {', '.join(f'`{option}`' for option in ITEM_OPTIONS)}"


class Part(Enum):
    """The part of a running pod that carries a field, so that the field can be changed there."""

    AGENT_IMAGE = "the image of the agent"
    GATE = "the annotation with the gate of the agent"
    RESOURCES = "requests and limits"
    MEMORY = "the annotation with the memory for items"
    IMAGE = "the image of memcached"
    ARGUMENTS = "the annotation with the arguments of memcached"


class FieldEffect(NamedTuple):
    """The effect of a change of one field.

    `part`: the part of a running pod that carries it. `sizes`: whether requests and limits also follow from it, which
    has an effect of its own.
    """

    effect: Effect
    needs: Needs = Needs.NOTHING
    part: Part | None = None
    sizes: bool = False


_KEEPS: Final = FieldEffect(Effect.NOTHING)
_REPLACES: Final = FieldEffect(Effect.REPLACE)
_GATE: Final = FieldEffect(Effect.IN_PLACE, Needs.AGENT, Part.GATE)
_AMOUNTS: Final = FieldEffect(Effect.RESIZE, Needs.AMOUNTS, Part.RESOURCES, sizes=True)
_ARGUMENT: Final = FieldEffect(Effect.RESTART, Needs.WARM, Part.ARGUMENTS)
_SIZED_ARGUMENT: Final = _ARGUMENT._replace(sizes=True)

FIELDS: Final[Mapping[str, FieldEffect]] = {
    "spec.identity": _KEEPS,  # it cannot be changed
    "spec.size": _KEEPS,
    "spec.inheritedMetadata.labels": _KEEPS,
    "spec.inheritedMetadata.annotations": _KEEPS,
    "spec.podDisruptionBudget.enabled": _KEEPS,
    "spec.podDisruptionBudget.maxUnavailable": _KEEPS,
    "spec.networkPolicy.from": _KEEPS,
    "spec.networkPolicy.metricsFrom": _KEEPS,
    "spec.service.annotations": _KEEPS,
    "spec.service.labels": _KEEPS,
    "spec.service.perPod": _KEEPS,
    "spec.monitoring.podMonitor.enabled": _KEEPS,
    "spec.monitoring.podMonitor.interval": _KEEPS,
    "spec.monitoring.podMonitor.labels": _KEEPS,
    "spec.monitoring.rules.enabled": _KEEPS,
    "spec.monitoring.rules.labels": _KEEPS,
    "spec.rollout.maxUnavailable": _KEEPS,
    "spec.rollout.maxSurge": _KEEPS,
    "spec.rollout.minReadySeconds": _KEEPS,
    "spec.rollout.paused": _KEEPS,
    "spec.agent.image": FieldEffect(Effect.IN_PLACE, Needs.AGENT, Part.AGENT_IMAGE),
    "spec.rollout.warmUp.hitRatio": _GATE,
    "spec.rollout.warmUp.timeout": _GATE,
    "spec.rollout.warmUp.minRequests": _GATE,
    "spec.resources": _AMOUNTS,
    "spec.agent.resources": _AMOUNTS,
    "spec.cache.memory": FieldEffect(Effect.RESIZE, Needs.GROWTH, Part.MEMORY, sizes=True),
    "spec.image": FieldEffect(Effect.RESTART, Needs.WARM, Part.IMAGE),
    "spec.cache.maxConnections": _SIZED_ARGUMENT,
    "spec.cache.threads": _SIZED_ARGUMENT,
    "spec.cache.evictions": _ARGUMENT,
    "spec.cache.verbosity": _ARGUMENT,
    "spec.cache.extraArgs": FieldEffect(Effect.RESTART, Needs.LAYOUT, Part.ARGUMENTS, sizes=True),
    "spec.cache.maxItemSize": _REPLACES,
    "spec.cache.warmRestart": _REPLACES,
    "spec.containerPort": _REPLACES,
    "spec.imagePullPolicy": _REPLACES,
    "spec.imagePullSecrets": _REPLACES,
    "spec.podTemplate.metadata.labels": _REPLACES,
    "spec.podTemplate.metadata.annotations": _REPLACES,
    "spec.podTemplate.spec.nodeSelector": _REPLACES,
    "spec.podTemplate.spec.tolerations": _REPLACES,
    "spec.podTemplate.spec.affinity": _REPLACES,
    "spec.podTemplate.spec.topologySpreadConstraints": _REPLACES,
    "spec.podTemplate.spec.priorityClassName": _REPLACES,
    "spec.podTemplate.spec.runtimeClassName": _REPLACES,
    "spec.podTemplate.spec.serviceAccountName": _REPLACES,
    "spec.podTemplate.spec.terminationGracePeriodSeconds": _REPLACES,
    "spec.podTemplate.spec.securityContext": _REPLACES,
    "spec.rollout.restartedAt": _REPLACES,
    "spec.monitoring.enabled": _REPLACES,
    "spec.monitoring.tls.enabled": _REPLACES,
    "spec.monitoring.insight.enabled": _REPLACES,
    "spec.auth.secretName": _REPLACES,
    "spec.tls.secretName": _REPLACES,
    "spec.tls.clientAuth": _REPLACES,
    "spec.tls.clientCASecretName": _REPLACES,
    "spec.tls.port": _REPLACES,
    "spec.tls.plaintext": _REPLACES,
    "spec.tls.minVersion": _REPLACES,
}
"""The effect of each field. A section that is added or removed changes its fields."""

SENTENCES: Final[Mapping[str, str]] = {
    name: REPLACES if row.needs is Needs.NOTHING else "A change replaces the pods unless made in place (docs/warm.md)."
    for name, row in FIELDS.items()
    if row.effect is not Effect.NOTHING
}
"""The sentence about a change in the description of each field."""
