"""Properties of `validate`: it handles any JSON, and agrees with the types where these alone decide."""

from math import ceil
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memcached_api import quantity
from memcached_api.image import is_reference
from memcached_api.memcached.memory import exact_minimum
from memcached_api.memcached.types import MemcachedSpec, decode_spec, validate
from memcached_api.validation.field_errors import FieldError, SpecDecodeError

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
QUANTITIES = st.one_of(SCALARS, st.sampled_from(["64Mi", "1Gi", "2Mi", "1e3", "500m", "-1", "0.1n", "16Ei", "64Mi\n"]))
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "mem", "a/b"]), QUANTITIES | JSON) | JSON
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": SCALARS | st.integers(-2, 3),
        "containerPort": SCALARS | st.integers(0, 70000),
        "image": SCALARS | st.sampled_from(["memcached:1.6", "A b"]),
        "imagePullPolicy": SCALARS | st.sampled_from(["Always", "Never"]),
        "imagePullSecrets": JSON | st.lists(st.fixed_dictionaries({"name": SCALARS})),
        "resources": JSON | st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS}),
        "cache": JSON | st.fixed_dictionaries({}, optional={"memory": QUANTITIES}),
        "unknown": JSON,
    },
)
OBJECTS = st.fixed_dictionaries({}, optional={"metadata": JSON, "spec": SPECS | JSON})


@given(OBJECTS | JSON)
def test_validate_never_raises_and_every_error_has_a_message(obj: Any):
    for error in validate(obj):
        assert isinstance(error, FieldError)
        assert str(error)


@given(SPECS)
def test_valid_spec_is_decoded(spec: dict[str, Any]):
    if not validate({"spec": spec}):
        assert isinstance(decode_spec({"spec": spec}), MemcachedSpec)


@given(SPECS)
def test_validate_reports_all_decode_errors(spec: dict[str, Any]):
    decode_errors: list[FieldError] = []
    try:
        decode_spec({"spec": spec})
    except SpecDecodeError as error:
        decode_errors = error.errors
    assert {error.field for error in decode_errors} <= {error.field for error in validate({"spec": spec})}


@given(st.integers(-10, 10) | st.integers(2**31 - 3, 2**31 + 3))
def test_size(size: int):
    assert bool(validate({"spec": {"size": size}})) == (not 1 <= size <= 2**31 - 1)


@given(st.integers(1020, 1030) | st.integers(65530, 65540))
def test_port(port: int):
    assert bool(validate({"spec": {"containerPort": port}})) == (not 1024 <= port <= 65535)


@given(st.text(max_size=20) | st.from_regex(r"[a-z.:/@_-]{1,20}", fullmatch=True))
def test_image(text: str):
    assert bool(validate({"spec": {"image": text}})) == (not is_reference(text))


@given(st.integers(2 * 2**20, 2**40), st.integers(-2, 2))
def test_memory_limit(cache: int, offset: int):
    limit = ceil(exact_minimum(cache)) + offset
    spec = {"cache": {"memory": cache}, "resources": {"limits": {"memory": limit}}}
    assert bool(validate({"spec": spec})) == (offset < 0)


@given(st.sampled_from(["1", "1000m", "0.5", "500m", "1e0", "2Ki", "2048"]), st.integers(0, 2100))
def test_requests_and_limits(limit: str, request: int):
    spec = {"resources": {"limits": {"cpu": limit}, "requests": {"cpu": request}}}
    assert bool(validate({"spec": spec})) == (request > quantity.parse(limit))


@given(SPECS)
def test_validate_does_not_change_the_object(spec: dict[str, Any]):
    before = msgspec.json.encode(spec)
    validate({"spec": spec})
    assert msgspec.json.encode(spec) == before
