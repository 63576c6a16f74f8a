"""The effects that the types of fields declare, and the values that are compared."""

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, field

from memcached_api.effects import KEEPS, REPLACES, fields_of
from memcached_api.kubernetes import LocalObjectReference

Size = Annotated[int, REPLACES]
"""A type with an effect, which a field can replace."""


class Base(msgspec.Struct, rename="camel"):
    """A section that another one extends."""

    max_surge: Annotated[int, Meta(ge=0), KEEPS] | None = None
    is_paused: Annotated[bool, REPLACES] | None = None


class Rollout(Base, rename="camel"):
    """A section that declares another effect of an inherited field."""

    max_surge: Annotated[int, REPLACES] | None = None


class Spec(msgspec.Struct, rename="camel"):
    """A spec with fields of each type."""

    size: Annotated[Size, KEEPS] = 1
    from_: Annotated[list[str], REPLACES] = field(name="from", default_factory=list[str])
    rollout: Rollout | None = None
    always: Base = field(default_factory=Base)


def test_each_field_has_the_effect_that_its_type_declares() -> None:
    assert [(path, row.effect, row.attributes) for path, row in fields_of(Spec, "spec")] == [
        ("spec.size", KEEPS.effect, ("size",)),
        ("spec.from", REPLACES.effect, ("from_",)),
        ("spec.rollout.maxSurge", REPLACES.effect, ("rollout", "max_surge")),
        ("spec.rollout.isPaused", REPLACES.effect, ("rollout", "is_paused")),
        ("spec.always.maxSurge", KEEPS.effect, ("always", "max_surge")),
        ("spec.always.isPaused", REPLACES.effect, ("always", "is_paused")),
    ]


@pytest.mark.parametrize(
    "type_", [int, int | None, Annotated[int, Meta(ge=0)], list[LocalObjectReference], dict[str, Base] | None], ids=str
)
def test_field_without_an_effect_is_an_error(type_: Any) -> None:
    inner = msgspec.defstruct("Inner", [("max_size", type_)], rename="camel")
    spec = msgspec.defstruct("Outer", [("section", inner | None, None)])
    with pytest.raises(TypeError, match=r"^spec\.section\.maxSize: declare the effect"):
        dict(fields_of(spec, "spec"))


class Inner(msgspec.Struct):
    """A section inside another one."""

    enabled: Annotated[bool, REPLACES.by(lambda _: "on")] | None = None


class Outer(msgspec.Struct):
    """A section that can be disabled."""

    enabled: Annotated[bool, REPLACES.by(lambda _: "on")] | None = None
    labels: Annotated[dict[str, str], REPLACES] = {}
    version: Annotated[str, REPLACES.unless("1.2")] | None = None
    memory: Annotated[str, REPLACES.unless(64, int)] | None = None
    inner: Inner | None = None


class Features(msgspec.Struct):
    """A spec with sections."""

    outer: Outer | None = None


VALUES: dict[str, tuple[Outer | None, list[object]]] = {
    "absent": (None, [None, None, None, None, None]),
    "empty": (Outer(), ["on", None, None, None, None]),
    "enabled": (Outer(enabled=True), ["on", None, None, None, None]),
    "disabled": (Outer(enabled=False, version="1.3", inner=Inner()), [None, None, None, None, None]),
    "defaults": (Outer(labels={}, version="1.2", memory="064"), ["on", None, None, None, None]),
    "others": (Outer(labels={"a": "b"}, version="1.3", memory="65"), ["on", {"a": "b"}, "1.3", 65, None]),
    "an inner section": (Outer(inner=Inner()), ["on", None, None, None, "on"]),
    "a disabled inner section": (Outer(inner=Inner(enabled=False)), ["on", None, None, None, None]),
}


@pytest.mark.parametrize(("outer", "expected"), VALUES.values(), ids=VALUES.keys())
def test_values_are_equal_if_the_pods_use_them_equally(outer: Outer | None, expected: list[object]) -> None:
    assert [row.value(Features(outer)) for _, row in fields_of(Features, "spec")] == expected
