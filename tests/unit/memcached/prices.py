"""Specs of a Memcached, changes of their fields, and what admission announces of these very changes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from memcached_api.images import Images
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec
from memcached_api.remedies import Direction
from memcached_api.shared.resources import agent_requirements
from memcached_operator.kube.resource import Object
from memcached_webhooks.kinds.memcached import warnings

IMAGES: Final = Images("example.com/memcached:1", "example.com/agent:1")
UP, DOWN, ADDED, ANY = Direction.UP, Direction.DOWN, Direction.ADDED, Direction.ANY


class Case(NamedTuple):
    """A spec, and other values for it: a lower and a higher one, valid beside its other fields."""

    spec: Object
    memory: tuple[str, str] = ("32Mi", "96Mi")
    limit: tuple[str, str] = ("110Mi", "16Gi")
    request: str = "100Mi"


AGENT: Final[Object] = {"agent": {"image": "a:1"}}
STABLE: Final[Object] = {"identity": "Stable"}
WATCHED: Final[Object] = {**STABLE, **AGENT, "monitoring": {}}
LIMITED: Final[Object] = {"resources": {"limits": {"memory": "1Gi"}}}
EQUAL: Final[Object] = {
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
}
HALF: Final = ("512Mi", "16Gi")
OF_LIMIT: Final = (("32Mi", "800Mi"), HALF)
"""With a memory that is derived from a limit of 1Gi: 722Mi."""
LARGE: Final = (("1Gi", "4Gi"), ("2600Mi", "16Gi"))
WARM: Final[Object] = {**STABLE, **AGENT, "cache": {"warmRestart": True, "memory": "2Gi"}}
CASES: Final[Mapping[str, Case]] = {
    "Pooled": Case({}),
    "Pooled, agent": Case({**AGENT, "monitoring": {}}),
    "Pooled, agent, limits": Case({**AGENT, "monitoring": {}, **LIMITED}),
    "Pooled, Guaranteed": Case(EQUAL),
    "Stable": Case(STABLE),
    "Stable, disabled monitoring": Case({**STABLE, "monitoring": {"enabled": False}}),
    "Stable, memory": Case({**STABLE, "cache": {"memory": "2Gi"}}, *LARGE),
    "Stable, limits": Case({**STABLE, **LIMITED}),
    "Stable, Guaranteed": Case({**STABLE, **EQUAL}),
    "Stable, Guaranteed, memory": Case({**STABLE, **EQUAL, "cache": {"memory": "64Mi"}}, limit=HALF),
    "Stable, monitoring": Case(WATCHED),
    "Stable, monitoring, memory": Case({**WATCHED, "cache": {"memory": "2Gi"}}, *LARGE),
    "Stable, monitoring, limits": Case({**WATCHED, **LIMITED}, *OF_LIMIT),
    "Stable, monitoring, limits, memory": Case({**WATCHED, **LIMITED, "cache": {"memory": "64Mi"}}, limit=HALF),
    "Stable, monitoring, CPU limit": Case({**WATCHED, "resources": {"limits": {"cpu": "2"}}}),
    "Stable, monitoring, Guaranteed": Case({**WATCHED, **EQUAL, "agent": {"image": "a:1", **EQUAL}}, *OF_LIMIT),
    "Stable, insight": Case({**WATCHED, "monitoring": {"insight": {"enabled": True}}}),
    "Stable, warm-up": Case({**STABLE, **AGENT, "rollout": {"warmUp": {}}}),
    "Stable, TLS": Case({**STABLE, **AGENT, "tls": {"secretName": "a"}}, limit=("200Mi", "16Gi")),
    "Stable, passwords": Case({**STABLE, **AGENT, "auth": {"secretName": "a"}}),
    "Stable, warm restarts": Case(WARM, *LARGE),
    "Stable, warm restarts, limits": Case(
        {**WARM, "cache": {"warmRestart": True}, **LIMITED}, ("96Mi", "800Mi"), ("512Mi", "16Gi")
    ),
    "Stable, warm restarts, all": Case({**WARM, "monitoring": {}, "tls": {"secretName": "a"}}, *LARGE),
}

POD: Final = "spec.podTemplate.spec"
OTHER: Final[Mapping[str, Any]] = {
    "spec.image": "other:2",
    "spec.agent.image": "other:2",
    "spec.imagePullSecrets": [{"name": "a"}],
    "spec.cache.maxConnections": 2048,
    "spec.cache.verbosity": 0,
    "spec.cache.warmRestart": False,
    "spec.podTemplate.metadata": {"labels": {"team": "a"}},
    "spec.rollout.maxSurge": 0,
    "spec.rollout.maxUnavailable": "100%",
    f"{POD}.securityContext": {"runAsUser": 7},
    f"{POD}.securityContext.runAsUser": 7,
    f"{POD}.tolerations": [{"operator": "Exists"}],
    f"{POD}.nodeSelector": {"disk": "ssd"},
    f"{POD}.affinity": {"nodeAffinity": {}},
    f"{POD}.topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    f"{POD}.serviceAccountName": "other",
    f"{POD}.priorityClassName": "other",
    f"{POD}.runtimeClassName": "other",
}
"""Another value of each field whose direction does not matter."""


def with_value(spec: Object, path: str, value: Any) -> Object:
    """The spec with another value of a field."""
    return changed({"spec": spec}, path.split("."), value)["spec"]


def changed(obj: Object, path: Sequence[str], value: Any) -> Object:
    """An object with another value at a path."""
    first, *rest = path
    return {**obj, first: changed(obj.get(first, {}), rest, value) if rest else value}


def container(case: Case, section: str) -> Object:
    """The requests and limits of a container, also those that the spec does not set."""
    spec = msgspec.convert(case.spec, MemcachedSpec)
    if section == "spec.resources":
        return requirements(spec)
    return agent_requirements(spec.agent and spec.agent.resources)


def amounts(case: Case, field: str, direction: Direction) -> Iterator[tuple[str, Object]]:
    """The changes of a section or an amount, and the field that loses items by each."""
    section, index = field.partition(".resources")[0] + ".resources", direction is UP
    limit = case.limit[index] if section == "spec.resources" else ("40Mi", "2Gi")[index]
    values = {"cpu": ("5m", "2")[index], "memory": limit}
    others = {"ephemeral-storage": ("1", "3")[index]}
    present = container(case, section)
    if direction is ADDED:
        name = "ephemeral-storage"  # unlike CPU and memory, it cannot be added to a running pod
        yield field, with_value(case.spec, f"{section}.limits.{name}", "3")
    elif field == section:
        for name, value in values.items():
            new = case.spec
            for part in present:
                if name in present[part]:
                    new = with_value(new, f"{section}.{part}.{name}", value)
            yield f"{section}.limits.{name}", new
    else:
        yield field, with_amount(case, field, {**values, **others}[field.rpartition(".")[2]], direction)


def with_amount(case: Case, field: str, value: str, direction: Direction) -> Object:
    """The spec with another amount. A higher request needs a higher limit if the spec sets one."""
    if not field.endswith("requests.memory"):
        return with_value(case.spec, field, value)
    new = with_value(case.spec, field, case.request if direction is DOWN else case.limit[1])
    is_limited = direction is UP and "memory" in case.spec.get("resources", {}).get("limits", {})
    return with_value(new, "spec.resources.limits.memory", case.limit[1]) if is_limited else new


def changes(case: Case, field: str, direction: Direction) -> list[tuple[str, Object]]:
    """Examples of the change of a field in a direction."""
    if "resources" in field:
        return list(amounts(case, field, direction))
    value = case.memory[direction is UP] if field == "spec.cache.memory" else OTHER[field]
    return [(field, with_value(case.spec, field, value))]


def announced(new: Object, old: Object) -> bool:
    """Whether admission announces that a change replaces the pods, and that their items are lost."""
    base = {"size": 3, "image": "example.com/memcached:1"}
    changed_obj, obj = ({"metadata": {"name": "a"}, "spec": {**base, **spec}} for spec in (new, old))
    assert [*MEMCACHED.validate(changed_obj), *MEMCACHED.validate(obj)] == []
    found = warnings(changed_obj, obj, IMAGES)
    return any("this change replaces" in text and "items are lost" in text for text in found)


def expected(case: Case, field: str, direction: Direction) -> list[str]:
    """The fields of which the price must say that items are lost: the section if each change of it loses them."""
    found = [(name, announced(new, case.spec)) for name, new in changes(case, field, direction)]
    losing = [name for name, loses in found if loses]
    return [field] if len(losing) == len(found) else losing
