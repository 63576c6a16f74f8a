"""Properties of `validate`: it handles any JSON, and agrees with the types where these alone decide."""

from math import ceil
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memcached_api.appservice.types import APPSERVICE, with_defaults
from memcached_api.kind import Kind
from memcached_api.memcached.memory import exact_minimum
from memcached_api.memcached.types import MEMCACHED
from memcached_api.validation.field_errors import FieldError, SpecDecodeError

Values = st.SearchStrategy[Any]

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 70_000), st.floats(), st.text(max_size=4))
JSON: Values = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)
QUANTITIES = st.one_of(SCALARS, st.sampled_from(["64Mi", "1Gi", "2Mi", "1e3", "500m", "-1", "0.1n", "16Ei", "64Mi\n"]))
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "mem", "a/b"]), QUANTITIES | JSON) | JSON
NAMES = st.sampled_from(["http", "dns", "A", "a--b", ""])
IMAGES = JSON | st.sampled_from(["nginx:1.28", "A b"])
RESOURCES = JSON | st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS})


def items(**fields: Values) -> Values:
    """A list of objects with some of these fields, or any JSON."""
    return JSON | st.lists(st.fixed_dictionaries({}, optional=fields) | JSON, max_size=4)


MEMCACHEDS = st.fixed_dictionaries(
    {},
    optional={
        "size": SCALARS | st.integers(-2, 3),
        "containerPort": SCALARS,
        "image": IMAGES,
        "imagePullPolicy": SCALARS | st.sampled_from(["Always", "Never"]),
        "imagePullSecrets": items(name=SCALARS),
        "resources": RESOURCES,
        "cache": JSON | st.fixed_dictionaries({}, optional={"memory": QUANTITIES}),
        "unknown": JSON,
    },
)
APPSERVICES = st.fixed_dictionaries(
    {},
    optional={
        "size": SCALARS,
        "image": IMAGES,
        "ports": items(
            name=NAMES | JSON,
            port=SCALARS | st.integers(0, 3),
            protocol=JSON | st.sampled_from(["TCP", "UDP"]),
            targetPort=NAMES | JSON,
            nodePort=SCALARS | st.integers(29999, 30001),
            appProtocol=SCALARS | st.sampled_from(["http", "a/b"]),
        ),
        "envs": items(name=NAMES | JSON, value=SCALARS, valueFrom=JSON),
        "resources": RESOURCES,
    },
)
SPECS = st.tuples(st.just(MEMCACHED), MEMCACHEDS) | st.tuples(st.just(APPSERVICE), APPSERVICES)


@given(st.sampled_from([MEMCACHED, APPSERVICE]), st.fixed_dictionaries({}, optional={"metadata": JSON, "spec": JSON}))
def test_validate_never_raises_for_any_json(kind: Kind[Any], obj: Any):
    assert all(str(error) for error in [*kind.validate(obj), *kind.validate(obj.get("spec"))])


@given(SPECS)
def test_validate_agrees_with_the_types_and_changes_nothing(pair: tuple[Kind[Any], dict[str, Any]]):
    kind, spec = pair
    before = msgspec.json.encode(spec)
    found = kind.validate({"spec": spec})
    assert all(isinstance(error, FieldError) and str(error) for error in found)
    decode_errors: list[FieldError] = []
    try:
        kind.decode({"spec": spec})
    except SpecDecodeError as error:
        decode_errors = error.errors
    assert {error.field for error in decode_errors} <= {error.field for error in found}
    assert msgspec.json.encode(spec) == before


VALID_PORTS = st.fixed_dictionaries(
    {"port": st.integers(80, 90)},
    optional={"name": st.sampled_from(["http", "dns", "tcp-80", "tcp-81", "80"]), "targetPort": st.integers(80, 90)},
)


@given(st.lists(VALID_PORTS, max_size=4))
def test_valid_spec_stays_valid_with_defaults(ports: Any):
    spec = {"image": "nginx:1.28", "ports": ports}
    before = msgspec.json.encode(spec)
    if not APPSERVICE.validate({"spec": spec}):
        assert APPSERVICE.validate({"spec": with_defaults(spec)}) == []
    assert msgspec.json.encode(spec) == before


@given(st.integers(2 * 2**20, 2**40), st.integers(-2, 2))
def test_memory_limit(cache: int, offset: int):
    limit = ceil(exact_minimum(cache)) + offset
    spec = {"cache": {"memory": cache}, "resources": {"limits": {"memory": limit}}}
    assert bool(MEMCACHED.validate({"spec": spec})) == (offset < 0)
