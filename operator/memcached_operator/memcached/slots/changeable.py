"""The parts of a Memcached's running pods that can change (`identity: Stable`), and the parts that need new pods."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from typing import Final

from memcached_api.annotations import ARGS_ANNOTATION, ITEM_AGE_ANNOTATION, MEMORY_ANNOTATION, WARM_UP_ANNOTATION
from memcached_api.effects import Part
from memcached_api.memcached.changes.effect import changeable, item_options
from memcached_api.memcached.changes.resizing import Amounts, by_value
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MemcachedSpec, restarts_warm
from memcached_operator.kube.compare import covers
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.desired import extstore
from memcached_operator.memcached.desired.pods import changeable_arguments
from memcached_operator.memcached.desired.warm_restart import args
from memcached_operator.memcached.updates.origin import digest, with_origin
from memcached_operator.memcached.updates.target import InPlace
from memcached_operator.parts.agent import CONTAINER as AGENT
from memcached_operator.parts.workloads import children

IN_PLACE: Final = InPlace(
    annotations=(WARM_UP_ANNOTATION, MEMORY_ANNOTATION, ITEM_AGE_ANNOTATION, ARGS_ANNOTATION),
    arguments=ARGS_ANNOTATION,
    agent=AGENT,
    growing=frozenset({MEMORY_ANNOTATION}),
    replace="set spec.rollout.restartedAt to the current time",
)


def updatable(built: Object, spec: MemcachedSpec) -> Object:
    """The StatefulSet with the annotations in its pod template that an update in place needs."""
    template = _prepared(built, spec)
    return {**built, "spec": {**built["spec"], "template": with_origin(template, _fixed(template, spec))}}


def with_digest(build: Callable[[], Object], spec: MemcachedSpec) -> InPlace:
    """IN_PLACE with the digest of the pod template of a spec. `build`: returns its StatefulSet, if it is needed."""

    @cache
    def fixed() -> list[object]:
        return _fixed(_prepared(build(), spec), spec)

    def digest_with(amounts: Mapping[str, Amounts]) -> str:
        return digest(fixed(), amounts)

    return replace(IN_PLACE, digest=digest_with)


def has_template(desired: Object, live: Object) -> bool:
    """Whether the live StatefulSet has the number of pods and the pod template that are desired.

    Templates are compared by their annotations: a policy of the cluster may change other parts.
    """
    return live["spec"].get("replicas") == desired["spec"]["replicas"] and has_same_template(desired, live)


def has_same_template(desired: Object, live: Object) -> bool:
    """Whether the live StatefulSet has the pod template that is desired."""
    return covers(*(workload["spec"]["template"]["metadata"] for workload in (live, desired)))


def _prepared(built: Object, spec: MemcachedSpec) -> Object:
    """The pod template with all annotations but its origin."""
    return children.with_metadata(_with_amounts(built["spec"]["template"]), {}, _settings(spec, changeable(spec)))


def _with_amounts(template: Object) -> Object:
    """A pod template in which equal amounts are written alike: another notation must not be another revision."""
    pod = template["spec"]
    containers = [{**container, "resources": by_value(container["resources"])} for container in pod["containers"]]
    return {**template, "spec": {**pod, "containers": containers}}


def _settings(spec: MemcachedSpec, parts: AbstractSet[Part]) -> dict[str, str]:
    """The annotations with what can change in place."""
    annotations: dict[str, str] = {}
    if Part.ARGUMENTS in parts:
        annotations[ARGS_ANNOTATION] = args(changeable_arguments(spec))
    if Part.MEMORY in parts:
        annotations[MEMORY_ANNOTATION] = str(megabytes(resolved(spec).memory))
    if Part.ITEM_AGE in parts and spec.cache.extstore is not None:
        annotations[ITEM_AGE_ANNOTATION] = extstore.item_age(spec.cache.extstore)
    return annotations


def _fixed(template: Object, spec: MemcachedSpec) -> list[object]:
    """The part of a pod template that needs a new pod, besides requests and limits."""
    parts = changeable(spec)
    annotations = nested_map(template, "metadata", "annotations").items()
    fixed = {name: text for name, text in annotations if name not in IN_PLACE.annotations}
    containers = [_fixed_container(container, parts) for container in template["spec"]["containers"]]
    return [fixed, template["metadata"]["labels"], {**template["spec"], "containers": containers}, *_layout(spec)]


def _layout(spec: MemcachedSpec) -> list[object]:
    """Arguments with which memcached would start without the items of another value. The volume shows its memory."""
    return [resolved(spec).item_size, sorted(item_options(spec))] if restarts_warm(spec) else []


def _fixed_container(container: Object, parts: AbstractSet[Part]) -> Object:
    """The part of a container that needs a new pod."""
    is_agent = container["name"] == AGENT
    left_out = {"resources"} if Part.RESOURCES in parts else set[str]()
    if (Part.AGENT_IMAGE if is_agent else Part.IMAGE) in parts:
        left_out.add("image")
    fields = {name: value for name, value in container.items() if name not in left_out}
    if Part.MEMORY in parts and not is_agent:
        fields["command"] = extstore.without_age(_without_memory(fields["command"]))
    return fields


def _without_memory(line: list[str]) -> list[str]:
    """memcached's command line without the memory for items, which the agent can raise."""
    at = line.index("-m")
    return [*line[:at], *line[at + 2 :]]
