"""Random objects of both kinds: valid parts of specs together, with and without errors, and the limits of the rules.

As a program, it prints them, one per line. The same seed gives the same objects:

    python -m faults.objects memcacheds|appservices SEED COUNT
"""

import json
import sys
from random import Random
from typing import Any, cast

from faults import limits
from faults.registration import resource_of
from faults.rows import changed_part, near_text
from faults.schemas import spec_schema
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object
from support.fields.leaves import leaves, values
from support.rule_tables import TABLES, tables_of

PART_COUNTS = (0, 1, 2, 2, 3, 4, 8)
"""How many parts an object has, and ERROR_COUNTS how many errors, each with the same probability."""
ERROR_COUNTS = (0, 0, 0, 1, 1, 1, 2, 4)
NUMBERS = (0, -1, 1.0, 0.5, -0.0, 1e300, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30)
TEXTS = ("", " ", "1", "1.0", "null", "a\n", "ä", "\x00", "🙂" * 64, "a" * 254, "a" * 1025, "9" * 65)
SUFFIXES = (
    *("", "", "m", "u", "n", "k", "M", "G", "E", "Ki", "Mi", "Mi", "Gi", "Gi", "Pi", "Ei"),
    *("e3", "E-3", "e+12", "e999"),
)
HOSTS = ("", "", "docker.io/", "host:5000/", "[::1]:5/", "localhost/", "A.b/")
TAGS = ("", ":1.6", ":latest", ":_x", "@sha256:" + "a" * 64, ":1@sha512:" + "0" * 128)
NAMES = (
    *(("cache",) * 12),
    *("a" * 52, "a" * 53, "a" * 63, "1a", "a.b", "-", "a-", "A", "a_b", "", "a" * 254),
)
LONG = (" ", "\n", "-", ".", ":", "/", "@", "A", "ä", "0", "x" * 300, "m", "i", "E99")
"""What is added to a text, before or after it."""


def objects(kind: Kind[Any], number: int, count: int) -> list[Object]:
    """`count` objects, of which three quarters are near the limits of the rules; the same number gives the same."""
    rng = Random(number)  # noqa: S311 - not a secret
    parts = _parts(kind)
    near = count * 3 // 4
    return [*(_drawn(rng, kind, parts) for _ in range(count - near)), *limits.objects(kind, number, near)]


def _drawn(rng: Random, kind: Kind[Any], parts: list[limits.Draft]) -> Object:
    spec: Any = {"image": "a"}
    for part in rng.sample(parts, rng.choice(PART_COUNTS)):
        spec = _together(rng, spec, part(rng))
    for _ in range(rng.choice(ERROR_COUNTS)):
        spec = _with_error(rng, spec)
    return {
        "apiVersion": f"{kind.group}/{rng.choice(kind.versions)}",
        "kind": kind.name,
        "metadata": {"name": rng.choice(NAMES)},
        "spec": spec,
    }


def _parts(kind: Kind[Any]) -> list[limits.Draft]:
    """Drafts of valid parts of a spec: those of the tables, and each field with each of its values."""
    tables = tables_of(kind)
    fields = leaves(resource_of(kind), spec_schema(kind.group, kind.plural))
    found = [leaf.with_value(value) for leaf in fields for value in values(leaf.path, leaf.schema)]
    fixed: list[limits.Draft] = [lambda _, spec=spec: spec for spec in (*tables.valid.values(), *found)]
    return [*fixed, *(_image, _resources) * 10, *(_memory,) * (10 if kind is MEMCACHED else 0)]


def _image(rng: Random) -> Object:
    path = rng.choice(("a", "a__b", "a.b", "0", "a/b-c/d"))
    return {"image": f"{rng.choice(HOSTS)}{path}{rng.choice(TAGS)}"}


def _memory(rng: Random) -> Object:
    return {"cache": {rng.choice(("memory", "maxItemSize")): _quantity(rng)}}


def _resources(rng: Random) -> Object:
    names = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu")
    return {"resources": {rng.choice(("limits", "requests")): {rng.choice(names): _quantity(rng)}}}


def _quantity(rng: Random) -> str | int:
    digits = "".join(rng.choices("0123456789", k=rng.randint(0, 12)))
    text = f"{rng.choice(('', '', '+', '0'))}{digits}{rng.choice(('1', '2.5', '.5', '7.'))}{rng.choice(SUFFIXES)}"
    return rng.choice((text, text, rng.randint(0, 2**62)))


def _together(rng: Random, one: Any, other: Any) -> Any:
    """Two values together: the fields of both objects, and the items of both lists or of one."""
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("Object", one), cast("Object", other)
        both = {name: _together(rng, first[name], second[name]) for name in first if name in second}
        return {**first, **second, **both}
    if isinstance(one, list) and isinstance(other, list):
        items = cast("list[Any]", other)
        return rng.choice((items, [*cast("list[Any]", one), *items]))
    return other


def _with_error(rng: Random, value: Any) -> Any:
    """A value with one change that makes it invalid, or may do so."""
    change = rng.choice((_null, _json, _json, _text, _more, _near, _near))
    return changed_part(rng, value, lambda rng, found, _: change(rng, found))


def _null(_: Random, __: Any) -> Any:
    return None


def _text(_: Random, value: Any) -> str:
    return str(value)


def _json(rng: Random, _: Any = None, depth: int = 2) -> Any:
    """Any JSON value."""
    scalars: tuple[Any, ...] = (None, True, False, rng.randint(-300, 300), rng.random() * 10**6)
    if not depth or rng.random() < 0.7:
        return rng.choice((*scalars, rng.choice(NUMBERS), rng.choice(TEXTS)))
    items = [_json(rng, depth=depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice((items, {rng.choice(TEXTS): item for item in items}))


def _more(rng: Random, value: Any) -> Any:
    """A list with all items twice or more often, an object with another field, or a longer text."""
    if isinstance(value, dict):
        return {**cast("Object", value), rng.choice((*TEXTS, "cpu", "memory")): _json(rng, depth=0)}
    if isinstance(value, list):
        return cast("list[Any]", value) * rng.choice((2, 40)) or [_json(rng)]
    if isinstance(value, str):
        other = rng.choice(LONG)
        return rng.choice((value + other, other + value, value * 9))
    return _near(rng, value)


def _near(rng: Random, value: Any) -> Any:
    """A value that differs slightly, also in its type, or an object without a field."""
    if isinstance(value, dict) and value:
        fields = cast("Object", value)
        without = rng.choice(list(fields))
        return {name: inner for name, inner in fields.items() if name != without}
    if isinstance(value, str):
        return rng.choice((near_text(rng, value), value[1:], value[:-1], value.upper()))
    if isinstance(value, int | float) and not isinstance(value, bool):
        # JSON has an exponent for larger ones, which the API server denies even if they are whole.
        fractions = (float(value), value + 0.5) if abs(value) < 10**15 else ()
        return rng.choice((-value, value + 1, value - 1, *fractions, value * 10**6, 0))
    return _json(rng)


def main(plural: str, number: str, count: str) -> None:
    """Print random objects."""
    (kind,) = (tables.kind for tables in TABLES if tables.kind.plural == plural)
    for obj in objects(kind, int(number), int(count)):
        print(json.dumps(obj))


if __name__ == "__main__":
    main(*sys.argv[1:])
