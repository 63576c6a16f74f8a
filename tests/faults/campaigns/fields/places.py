"""Where the value of a field must occur in a child: by default, at a path that ends with the field's own path."""

from collections.abc import Callable, Iterator
from typing import Any, cast

from faults.campaigns.fields.leaves import Leaf, Path
from memcached_api import quantity
from memcached_operator.kube.resource import Object

QUANTITIES = ("cpu", "memory", "divisor")
"""Last names of the fields whose values are compared as quantities."""
RENAMED: dict[Path, Path] = {("size",): ("replicas",), ("envs",): ("env",), ("cache", "memory"): ("command", "[]")}
"""The beginnings of the paths of fields that have another name in a child."""
DERIVED: dict[str, Callable[[Any], Any]] = {
    "memcacheds/cache.memory": lambda value: str(int(quantity.parse(value)) // 2**20),  # memcached -m, in MiB
}
"""How a child shows the value of a field, by its name, if not as it is."""


def missing(leaf: Leaf, spec: Object, children: Object) -> str:
    """The values of the field in a spec that no child shows, and what there is instead; empty if there are none."""
    place = place_of(leaf.path)
    wanted = [DERIVED.get(leaf.name, _unchanged)(value) for value in at(spec, leaf.path)]
    found = [value for path, value in scalars(children) if path[-len(place) :] == place]
    absent = [value for value in wanted if not any(_equal(leaf, value, other) for other in found)]
    return f"{'.'.join(place)}: got {found}, want {absent}" if absent else ""


def place_of(path: Path) -> Path:
    """The end of a path in a child."""
    for old, new in RENAMED.items():
        if path[: len(old)] == old:
            return (*new, *path[len(old) :])
    return path


def at(value: Any, path: Path) -> list[Any]:
    """The values at a path, one for each item of its lists."""
    if not path:
        return [value]
    if path[0] == "[]":
        return [found for item in value for found in at(item, path[1:])]
    return at(value[path[0]], path[1:]) if path[0] in value else []


def scalars(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value without values of its own, with its path."""
    if isinstance(value, dict):
        for name, inner in cast("Object", value).items():
            yield from scalars(inner, (*path, name))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from scalars(item, (*path, "[]"))
    else:
        yield path, value


def _equal(leaf: Leaf, one: Any, other: Any) -> bool:
    if leaf.path[-1] in QUANTITIES and leaf.name not in DERIVED:
        return quantity.equal(one, other)
    return one == other


def _unchanged(value: Any) -> Any:
    return value
