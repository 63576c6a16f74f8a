"""Random objects of both kinds: from the schemas of the CRDs, with and without errors, and at the limits of the rules.

As a program, it prints them, one per line. The same seed gives the same objects:

    python -m faults.objects memcacheds|appservices SEED COUNT
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, cast

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from faults import limits
from faults.schemas import spec_schema
from memcached_api.appservice.types import APPSERVICE
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object

Schema = Mapping[str, Any]
Values = st.SearchStrategy[Any]
Path = tuple[str | int, ...]

ERROR_COUNTS = (0, 0, 0, 1, 1, 1, 2, 4)
"""How many errors are injected into an object, each with the same probability."""

SCALARS: Values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 1.0, 0.5, -0.0, 1e300, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["", " ", "1", "1.0", "null", "a\n", "ä", "\x00", "🙂" * 64, "a" * 254, "a" * 1025, "9" * 65]),
)
JSON: Values = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
DIGITS = st.text("0123456789", max_size=12)
SUFFIXES = (
    *("", "", "m", "u", "n", "k", "M", "G", "E", "Ki", "Mi", "Mi", "Gi", "Gi", "Pi", "Ei"),
    *("e3", "E-3", "e+12", "e999"),
)
QUANTITIES: Values = st.one_of(
    st.sampled_from(
        ["64Mi", "95Mi", "94.1Mi", "1Gi", "2Mi", "1Pi", "1e3", "500m", "100u", "0.1n", "16Ei", ".5", "1.", "+1"]
    ),
    st.integers(0, 2**62),
    st.tuples(
        st.sampled_from(["", "", "+", "0"]),
        DIGITS,
        st.sampled_from(["1", "2.5", ".5", "7."]),
        st.sampled_from(SUFFIXES),
    ).map("".join),
)
LABELS: Values = st.text("abyz059-", max_size=10).map(lambda text: f"a{text}z")
HOSTS = st.sampled_from(["", "", "docker.io/", "host:5000/", "[::1]:5/", "localhost/", "A.b/"])
TAGS = st.sampled_from(["", ":1.6", ":latest", ":_x", "@sha256:" + "a" * 64, ":1@sha512:" + "0" * 128])
REPOSITORIES = st.lists(LABELS | st.sampled_from(["a", "a__b", "a.b", "0"]), min_size=1, max_size=3).map("/".join)
IMAGES: Values = st.tuples(HOSTS, REPOSITORIES, TAGS).map("".join)
NAMES: Values = st.one_of(
    LABELS,
    st.just("cache"),
    st.just("cache"),
    st.sampled_from(["a" * 52, "a" * 53, "a" * 63, "1a", "a.b", "-", "a-", "A", "a_b", "", "a" * 254]),
)
AMOUNTS: Values = st.integers(1, 100) | st.integers(1, 100).map(lambda number: f"{number}%") | st.just(0)
HINTS: dict[str, Values] = {
    "image": IMAGES,
    "fieldPath": st.sampled_from(["metadata.name", "status.podIPs", "metadata.labels['a']", "spec.nodeName"]),
    "resource": st.sampled_from(["limits.cpu", "requests.memory", "limits.hugepages-2Mi"]),
    "key": st.sampled_from(["key", "a.b", "_K"]),
    "appProtocol": st.sampled_from(["http", "kubernetes.io/h2c", "example.com/x_y"]),
    "targetPort": st.integers(1, 65535) | LABELS.filter(lambda text: len(text) <= 15),
    "apiVersion": st.sampled_from(["v1"]),
    "cidr": st.sampled_from(["192.0.2.0/24", "::/0", "1:2::192.0.2.1/128"]),
    "maxUnavailable": AMOUNTS,
    "maxSurge": AMOUNTS,
    "restartedAt": st.sampled_from(["2026-11-22T10:00:00Z", "2026-11-22T10:00:00.5+01:00"]),
}
"""Valid values of fields for which the schema does not suffice."""
RESOURCES: Values = st.sampled_from(
    ["cpu", "memory", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"]
)
ENV_NAMES: Values = st.text("Ab_-.9", max_size=8).map(lambda text: f"A{text}")


def values_of(schema: Schema, path: tuple[str, ...] = ()) -> Values:
    """Values of a schema, most of them valid. CEL rules about several fields may be violated."""
    name = path[-1] if path else ""
    if name in HINTS:
        return HINTS[name]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return QUANTITIES
    makers: dict[str, Callable[[Schema, tuple[str, ...]], Values]] = {
        "object": _object,
        "array": _array,
        "integer": _integer,
        "boolean": lambda _, __: st.booleans(),
        "string": _string,
    }
    return makers[schema["type"]](schema, path)


def _object(schema: Schema, path: tuple[str, ...]) -> Values:
    if "additionalProperties" in schema:
        return st.dictionaries(RESOURCES, values_of(schema["additionalProperties"], (*path, "*")), max_size=3)
    fields = {name: values_of(inner, (*path, name)) for name, inner in schema["properties"].items()}
    required = set(schema.get("required", ()))
    if path[-1:] == ("valueFrom",):  # exactly one field may be set
        return st.sampled_from(sorted(fields)).flatmap(lambda name: st.fixed_dictionaries({name: fields[name]}))
    return st.fixed_dictionaries(
        {name: values for name, values in fields.items() if name in required},
        optional={name: values for name, values in fields.items() if name not in required},
    )


def _array(schema: Schema, path: tuple[str, ...]) -> Values:
    items = values_of(schema["items"], (*path, "[]"))
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    if not keys:
        return st.lists(items, max_size=4)

    def key(item: Object) -> tuple[Any, ...]:
        return tuple(item.get(name) for name in keys)

    return st.lists(items, max_size=4, unique_by=key)


def _integer(schema: Schema, _: tuple[str, ...]) -> Values:
    low, high = schema["minimum"], schema["maximum"]
    return st.one_of(st.integers(low, high), st.sampled_from([low, high]))


def _string(_: Schema, path: tuple[str, ...]) -> Values:
    if path[-3:] == ("envs", "[]", "name"):
        return ENV_NAMES
    return st.text(max_size=20) if path[-1] == "value" else LABELS


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value within a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from paths(inner, (*path, index))


@st.composite
def with_error(draw: st.DrawFn, value: Any) -> Any:
    """A value with one change that makes it invalid, or may do so."""
    root = {"spec": deepcopy(value)}
    *parents, last = draw(st.sampled_from(sorted(paths(root["spec"], ("spec",)), key=str)))
    parent: Any = root
    for step in parents:
        parent = parent[step]
    found = parent[last]
    action = draw(
        st.sampled_from(["delete", "null", "replace", "replace", "add", "twice", "many", "near", "near", "text"])
    )
    if action == "delete" and parents:
        del parent[last]
    elif action == "null":
        parent[last] = None
    elif action == "replace":
        parent[last] = draw(JSON)
    elif action == "text":
        parent[last] = str(found)
    else:
        parent[last] = _changed(draw, action, found)
    return root.get("spec")


def _changed(draw: st.DrawFn, action: str, found: Any) -> Any:
    """A value that differs slightly from another."""
    if isinstance(found, dict):
        return {**cast("Object", found), draw(st.text(max_size=8) | RESOURCES): draw(SCALARS)}
    if isinstance(found, list):
        entries = cast("list[Any]", found)
        return entries * (40 if action == "many" else 2) or [draw(JSON)]
    if isinstance(found, str):
        other = draw(st.sampled_from([" ", "\n", "-", ".", ":", "/", "@", "A", "ä", "0", "x" * 300, "m", "i", "E99"]))
        return draw(st.sampled_from([found + other, other + found, found[1:], found[:-1], found.upper(), found * 9]))
    if isinstance(found, int | float) and not isinstance(found, bool):
        return draw(st.sampled_from([-found, found + 1, found - 1, float(found), found + 0.5, found * 10**6, 0]))
    return draw(SCALARS)


@st.composite
def objects(draw: st.DrawFn, kind: Kind[Any]) -> Object:
    """A random object of a kind."""
    spec = draw(values_of(spec_schema(kind.group, kind.plural)))
    for _ in range(draw(st.sampled_from(ERROR_COUNTS))):
        spec = draw(with_error(spec))
    return {
        "apiVersion": f"{kind.group}/{draw(st.sampled_from(kind.versions))}",
        "kind": kind.name,
        "metadata": {"name": draw(NAMES)},
        "spec": spec,
    }


def drawn(values: Values, number: int, count: int) -> list[Any]:
    """`count` values; the same number gives the same values."""
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(values)
    def collect(value: Any) -> None:
        found.append(value)

    while len(found) < count:
        collect()
        number += 1_000_000
        collect = seed(number)(collect)
    return found[:count]


def main(plural: str, number: str, count: str) -> None:
    """Print random objects: one half of them at the limits of the rules."""
    (kind,) = (kind for kind in (MEMCACHED, APPSERVICE) if kind.plural == plural)
    half = int(count) // 2
    for obj in (*drawn(objects(kind), int(number), int(count) - half), *limits.objects(kind, int(number), half)):
        print(json.dumps(obj))


if __name__ == "__main__":
    main(*sys.argv[1:])
