"""Decoding and limits of Memcached, beyond the tables of test_rules.py.

Every case was also sent to a real API server, with the same result.
"""

from typing import Any

import pytest

from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, decode_spec
from memcached_api.validation.field_errors import TOO_MANY, SpecDecodeError


def memcached(spec: Any, name: str = "cache") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def limits(**amounts: Any) -> dict[str, Any]:
    return {"resources": {"limits": amounts}}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"size": 3.0, "unknown": [1]},
        {"size": None, "image": None, "cache": None, "resources": {"limits": {"cpu": None}}},
        {"cache": {"memory": 1e8}},
    ],
)
def test_valid_in_json(spec: Any):
    assert MEMCACHED.validate(memcached(spec)) == []
    assert isinstance(decode_spec(memcached(spec)), MemcachedSpec)


INTEGER_OR_STRING = "must be an integer or a string such as"
INVALID: list[tuple[Any, list[str]]] = [
    ({"size": 3.5}, ["spec.size: Invalid value: 3.5: must be an integer"]),
    ({"size": True}, ["spec.size: Invalid value: true: must be an integer"]),
    ({"size": -1}, ["spec.size: Invalid value: -1: must be at least 1"]),
    ({"size": 2**31}, ["spec.size: Invalid value: 2147483648: must be at most 2147483647"]),
    ({"image": "x" * 1025}, ["spec.image: Invalid value:"]),
    ({"imagePullSecrets": {}}, ['spec.imagePullSecrets: Invalid value: "object": must be a list']),
    (
        {"imagePullSecrets": [{"name": "A"}, {}, None]},
        [
            "spec.imagePullSecrets[1].name: Required value: must be set",
            "spec.imagePullSecrets[2]: Invalid value: null: must be an object",
            'spec.imagePullSecrets[0].name: Invalid value: "A": must be the name of a Secret',
        ],
    ),
    ({"imagePullSecrets": [{"name": "a" * 254}]}, ["spec.imagePullSecrets[0].name: Invalid value:"]),
    (
        {"imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        ['spec.imagePullSecrets[2].name: Invalid value: "a": must be unique in imagePullSecrets; remove one'],
    ),
    ({"cache": "x"}, ['spec.cache: Invalid value: "x": must be an object']),
    ({"cache": {"memory": "2Pi"}}, ['spec.cache.memory: Invalid value: "2Pi": must be a quantity from 2Mi']),
    ({"cache": {"memory": "64Mi\n"}}, ['spec.cache.memory: Invalid value: "64Mi\\n": is not a quantity']),
    ({"cache": {"memory": 0.5}}, [f"spec.cache.memory: Invalid value: 0.5: {INTEGER_OR_STRING}"]),
    ({"cache": {"memory": True}}, [f"spec.cache.memory: Invalid value: true: {INTEGER_OR_STRING}"]),
    ({"resources": {"limits": 1}}, ["spec.resources.limits: Invalid value: 1: must be an object"]),
    (limits(cpu="x"), ['spec.resources.limits[cpu]: Invalid value: "x": is not a quantity']),
    (limits(cpu=[]), [f'spec.resources.limits[cpu]: Invalid value: "array": {INTEGER_OR_STRING}']),
    (limits(cpu=2**63), [f"spec.resources.limits[cpu]: Invalid value: 9223372036854775808: {INTEGER_OR_STRING}"]),
    (limits(cpu=1e20), [f"spec.resources.limits[cpu]: Invalid value: 100000000000000000000: {INTEGER_OR_STRING}"]),
    (
        {"resources": {"limits": {f"example.com/{i}": 1 for i in range(8)}}},
        ["spec.resources.limits: Too many: 8: must have at most 7 items"],
    ),
    (
        {"cache": {"maxItemSize": "2Mi"}, **limits(memory="54Mi")},
        ['spec.resources.limits[memory]: Invalid value: "54Mi": must be at least 55Mi, because spec.cache.memory is'],
    ),
    (
        {"cache": {"maxItemSize": "32.5Mi"}},
        [
            'spec.cache.maxItemSize: Invalid value: "32.5Mi": must be at most half of spec.cache.memory, which is '
            "64Mi; lower this field or raise spec.cache.memory"
        ],
    ),
    ({"cache": {"maxItemSize": 0}}, ["spec.cache.maxItemSize: Invalid value: 0: must be a multiple of 512Ki"]),
    (
        {"cache": {"memory": "4Gi", "maxItemSize": "1025Mi"}},
        ['spec.cache.maxItemSize: Invalid value: "1025Mi": must be a multiple of 512Ki from 512Ki to 1Gi'],
    ),
    (
        {"cache": {"maxConnections": 29}},
        ["spec.cache.maxConnections: Invalid value: 29: must be at least 30 for 4 threads (5 times spec.cache.threads"],
    ),
    ({"cache": {"threads": 0}}, ["spec.cache.threads: Invalid value: 0: must be between 1 and 64"]),
    ({"cache": {"evictions": "no"}}, ['spec.cache.evictions: Invalid value: "no": must be true or false']),
    ([], ['spec: Invalid value: "array": must be an object']),
    (
        {"size": "x", "containerPort": 80, "cache": {"memory": "x"}, **limits(memory="1Mi", cpu="-1")},
        [
            'spec.size: Invalid value: "x": must be an integer',
            'spec.cache.memory: Invalid value: "x": is not a quantity',
            "spec.containerPort: Invalid value: 80: must be between",
            'spec.resources.limits[cpu]: Invalid value: "-1": must be at least 0',
        ],
    ),
]


@pytest.mark.parametrize(
    ("cache", "limit", "valid"),
    [
        ("64Mi", "131617259600m", True),
        ("64Mi", "131617259519m", False),
        ("67108864.9", "131617260", False),
        ("67108864.9", "131617260582m", True),
        (None, "54903439.359", False),
        (None, "54903439.361", True),
    ],
)
def test_limits_with_fractions_of_a_byte_are_exact(cache: str | None, limit: str, valid: bool):
    spec = {"cache": {} if cache is None else {"memory": cache}, **limits(memory=limit)}
    assert (MEMCACHED.validate(memcached(spec)) == []) == valid


@pytest.mark.parametrize(("spec", "expected"), INVALID)
def test_invalid(spec: Any, expected: list[str]):
    found = [str(error) for error in MEMCACHED.validate(memcached(spec))]
    assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": {}}, {"metadata": {"generateName": "a-"}}, {"metadata": [], "spec": {}}]
)
def test_object_without_a_name_is_valid(obj: Any):
    assert MEMCACHED.validate(obj) == []


def test_decode_error_has_all_structural_errors():
    with pytest.raises(SpecDecodeError) as raised:
        decode_spec(memcached({"size": "x", "cache": {"memory": "x"}, "containerPort": 80}))
    assert [error.field for error in raised.value.errors] == ["spec.size", "spec.containerPort", "spec.cache.memory"]


def test_rules_are_not_evaluated_for_a_list_that_is_too_long():
    assert [error.type for error in MEMCACHED.validate(memcached({"imagePullSecrets": [{"name": "="}] * 17}))] == [
        TOO_MANY
    ]
