"""The items that are lost by changes of fields of a Memcached."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_memcached.model.effects import NEEDS, SIZED
from kubectl_memcached.model.images import is_older
from kubectl_memcached.model.objects import Object, mapping, text

UP, DOWN, ADDED, ANY = "up", "down", "added", "any"
"""The directions in which advice changes a field: as `Direction` of the operator's API."""
Change = tuple[str, str]
"""A field that advice changes, and the direction."""
IMAGE: Final = "spec.image"
MEMORY: Final = "spec.cache.memory"
LIMIT: Final = "spec.resources.limits.memory"
AGENT: Final = (("tls",), ("auth",), ("monitoring",), ("rollout", "warmUp"))
"""The sections with which the pods have an agent."""


class Sentence(NamedTuple):
    """A sentence, and the changes of which the user is to make one."""

    text: str
    changes: tuple[Change, ...] = ()


def sentences(cr: Object, changes: Iterable[Change], *, guaranteed: bool = False) -> Iterator[str]:
    """A sentence if advice changes fields whose change replaces the pods of this Memcached.

    `guaranteed`: the QoS class of a pod is Guaranteed.
    """
    spec = mapping(cr, "spec")
    losing = [field for field, direction in changes if _loses(field, direction, spec, guaranteed=guaranteed)]
    if losing:
        yield f"Changing {' or '.join(dict.fromkeys(losing))} replaces the pods, and their items are lost."


def keeps_items(cr: Object, image: str) -> bool | None:
    """Whether a Memcached keeps its items if it gets another image; None if it is not known which release is older."""
    spec = mapping(cr, "spec")
    if _loses(IMAGE, ANY, spec, guaranteed=False):
        return False
    older = is_older(image, text(spec, "image"))
    return None if older is None else not older


def _loses(field: str, direction: str, spec: Object, *, guaranteed: bool) -> bool:
    """Whether a change of a field replaces the pods."""
    needs = {need for name, need in NEEDS.items() if f"{field}.".startswith(f"{name}.") or name.startswith(f"{field}.")}
    if not needs or (field.startswith("spec.agent.") and not _has_agent(spec)):
        return False
    if spec.get("identity") != "Stable":
        return True
    if "AMOUNTS" in needs and (direction == ADDED or (guaranteed and not _is_both(field, spec))):
        return True
    if mapping(spec, "cache").get("memory") is None and (field == LIMIT or (field in SIZED and _has_limit(spec))):
        needs.add(NEEDS[MEMORY])  # it is what the limit leaves beside the other settings
    return not all(_MEETS[need](spec, direction) for need in needs)


def _is_both(field: str, spec: Object) -> bool:
    """Whether a change of a limit also changes the request, so that the QoS class stays."""
    is_derived = mapping(spec, "cache").get("memory") is None
    return field == LIMIT and is_derived and "memory" not in mapping(spec, "resources", "requests")


def _has_limit(spec: Object) -> bool:
    return "memory" in mapping(spec, "resources", "limits")


def is_warm(spec: Object) -> bool:
    """Whether memcached keeps its items in a restart."""
    return mapping(spec, "cache").get("warmRestart") is True


def _has_agent(spec: Object) -> bool:
    return is_warm(spec) or any(_is_enabled(spec, path) for path in AGENT)


def _is_enabled(spec: Object, path: tuple[str, ...]) -> bool:
    """Whether a section is present and not disabled."""
    section = mapping(spec, *path[:-1]).get(path[-1])
    return section is not None and mapping(spec, *path).get("enabled") is not False


_MEETS: Final[Mapping[str, Callable[[Object, str], bool]]] = {
    "REPLACES": lambda _, __: False,
    "AGENT": lambda spec, _: _has_agent(spec),
    "AMOUNTS": lambda _, __: True,
    "GROWTH": lambda spec, direction: direction == UP and _has_agent(spec) and not is_warm(spec),
    "WARM": lambda spec, _: is_warm(spec),
    "LAYOUT": lambda spec, _: is_warm(spec),
}
"""Whether a change of a field in a direction meets what it needs, by the name of the need."""
