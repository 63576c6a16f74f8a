"""The effect of a change of a field on the pods. The type of each field of a spec declares it.

`port: Annotated[int, REPLACES] = 80`. Effects between NOTHING and REPLACE are for pods that can be changed while they
run: those of a Memcached with `identity: Stable`. All other pods are replaced.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, IntEnum
from types import UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from msgspec import Struct, structs

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
    ITEM_AGE = "the annotation with the age after which items move to the disk"
    IMAGE = "the image of memcached"
    ARGUMENTS = "the annotation with the arguments of memcached"


def _none_if_empty(value: object) -> object:
    return None if value in ("", [], {}) else value


class FieldEffect(NamedTuple):
    """The effect of a change of one field.

    `part`: the part of a running pod that carries it. `sizes`: whether requests and limits also follow from it, which
    has an effect of its own. `described`: whether the description of the field says what a change does.
    `comparable`: normalizes the value of a field for comparison. `attributes`: the path of the field in a spec.
    """

    effect: Effect
    needs: Needs = Needs.NOTHING
    part: Part | None = None
    sizes: bool = False
    described: bool = False
    comparable: Callable[[Any], object] = _none_if_empty
    attributes: tuple[str, ...] = ()

    def by(self, comparable: Callable[[Any], object]) -> "FieldEffect":
        """The effect of a change of the normalized value."""
        return self._replace(comparable=comparable)

    def unless(self, default: object, comparable: Callable[[Any], object] = _none_if_empty) -> "FieldEffect":
        """The effect of a change to another value than the default, which equals an absent field or section."""

        def value(raw: object) -> object:
            found = None if raw is None else comparable(raw)
            return None if found == default else found

        return self.by(value)

    def value(self, spec: object) -> object:
        """The value in a spec, normalized for comparison. None if a section that contains it is absent or disabled."""
        found = spec
        for name in self.attributes:
            if found is None or getattr(found, "enabled", None) is False:
                return None
            found = getattr(found, name)
        return self.comparable(found)


KEEPS: Final = FieldEffect(Effect.NOTHING)
REPLACES: Final = FieldEffect(Effect.REPLACE)


def fields_of(struct: type[Struct], path: str, attributes: tuple[str, ...] = ()) -> Iterator[tuple[str, FieldEffect]]:
    """The effects of the fields of a struct, by path, in order. A struct that declares no effect is a section.

    Raises TypeError for any other field that declares no effect.
    """
    for field in structs.fields(struct):
        name, place = f"{path}.{field.encode_name}", (*attributes, field.name)
        members = get_args(field.type) if get_origin(field.type) in (Union, UnionType) else (field.type,)
        metadata: list[object] = [each for member in members for each in getattr(member, "__metadata__", ())]
        if declared := [each for each in metadata if isinstance(each, FieldEffect)]:
            yield name, declared[-1]._replace(attributes=place)
        elif sections := [each for each in members if isinstance(each, type(Struct))]:
            yield from fields_of(sections[0], name, place)
        else:
            raise TypeError(f"{name}: declare the effect of a change in the type of the field, such as REPLACES")


def changed(new: Mapping[str, object], old: Mapping[str, object]) -> list[str]:
    """The names whose values differ, in the order of `new`. Both have the same names."""
    return [name for name, value in new.items() if value != old[name]]
