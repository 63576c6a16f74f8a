"""Objects from JSON: the fields that are kept, and the cost of hostile objects."""

import tracemalloc
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from memcached_api.appservice.types import APPSERVICE, with_defaults
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.validation import decoding
from memcached_api.validation.field_errors import TOO_MANY, SpecDecodeError

META = {"name": "a", "annotations": {"k": "v"}, "managedFields": [{"manager": "kubectl"}]}
KEPT = {"name": "a"}

# Kind, spec, and the expected result.
SPECS: dict[str, tuple[Kind[Any], Any, Any]] = {
    "known fields": (MEMCACHED, {"size": 1, "cache": {"memory": "64Mi"}}, {"size": 1, "cache": {"memory": "64Mi"}}),
    "an unknown field": (MEMCACHED, {"size": 1, "x": {"y": [1]}}, {"size": 1}),
    "a nested unknown field": (
        MEMCACHED,
        {"imagePullSecrets": [{"name": "a", "x": 1}]},
        {"imagePullSecrets": [{"name": "a"}]},
    ),
    "keys of a map": (MEMCACHED, {"resources": {"limits": {"x/y": 1}}}, {"resources": {"limits": {"x/y": 1}}}),
    "null": (MEMCACHED, {"size": None, "cache": None}, {"size": None, "cache": None}),
    "null in a list": (MEMCACHED, {"imagePullSecrets": [None]}, {"imagePullSecrets": [None]}),
    "no spec": (MEMCACHED, None, None),
    "numbers are not converted": (
        APPSERVICE,
        {"ports": [{"port": 8.0, "targetPort": "a"}]},
        {"ports": [{"port": 8.0, "targetPort": "a"}]},
    ),
    "another scalar": (MEMCACHED, {"size": "x", "y": 1}, {"size": "x"}),
    "another type": (MEMCACHED, {"size": [1], "y": 1}, {"size": [1], "y": 1}),
    "too many": (MEMCACHED, {"imagePullSecrets": [{}] * 17}, {"imagePullSecrets": [{}] * 17}),
    "a list": (MEMCACHED, [1], [1]),
    "a string": (MEMCACHED, "x", "x"),
}


def encoded(obj: Any) -> bytes:
    """An object as JSON."""
    return msgspec.json.encode(obj)


@pytest.mark.parametrize(("kind", "spec", "expected"), SPECS.values(), ids=SPECS.keys())
def test_read(kind: Kind[Any], spec: Any, expected: Any) -> None:
    assert kind.decode_object(encoded({"metadata": META, "spec": spec, "status": {"x": 1}})) == {
        "metadata": KEPT,
        "spec": expected,
    }


SMALL: list[Any] = [None, 1, "x", [], {}, {"spec": {}}, {"metadata": "x"}, {"metadata": {"name": {"a": 1}}}]


@pytest.mark.parametrize("obj", SMALL)
def test_small_values_are_read_unchanged(obj: Any) -> None:
    assert MEMCACHED.decode_object(encoded(obj)) == obj


@pytest.mark.parametrize("raw", [b"", b"{", b'{"spec": {"size": 1}'])
def test_invalid_json(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        MEMCACHED.decode_object(raw)


def test_object_that_is_too_large_is_not_read() -> None:
    with pytest.raises(
        SpecDecodeError, match=r"^spec: Invalid value: 2097154: the object must be at most 2097152 bytes"
    ):
        MEMCACHED.decode_object(b" " * decoding.MAX_OBJECT_SIZE + b"{}")


def test_object_of_the_maximum_size_is_read() -> None:
    assert MEMCACHED.decode_object(b" " * (decoding.MAX_OBJECT_SIZE - 2) + b"{}") == {}


def test_only_the_first_error_of_a_large_spec_is_reported() -> None:
    spec: dict[str, Any] = {"size": {}, "image": "x" * decoding.MAX_CHECKED_SIZE}
    with pytest.raises(
        SpecDecodeError,
        match=r"^spec: Invalid value: \d+: Expected .* `\$\.spec\.size`; only the first error .* 262144 bytes",
    ):
        MEMCACHED.decode_object(encoded({"metadata": META, "spec": spec}))


# Objects that would need at least 25 times their size in memory, or a long time, if they were decoded completely.
HOSTILE = {
    "an unknown field": (MEMCACHED, b'{"spec":{"size":"x","x":[%s]}}', b'{"":[]}'),
    "a known list": (MEMCACHED, b'{"spec":{"imagePullSecrets":[%s]}}', b"{}"),
    "wrong types": (MEMCACHED, b'{"spec":{"imagePullSecrets":[%s]}}', b'{"name":[]}'),
    "metadata": (MEMCACHED, b'{"metadata":{"name":[%s]}}', b"{}"),
    "not an object": (MEMCACHED, b"[%s]", b"{}"),
    "ports": (APPSERVICE, b'{"spec":{"image":"a","ports":[%s]}}', b'{"port":1}'),
    "environment variables": (APPSERVICE, b'{"spec":{"image":"a","envs":[%s]}}', b'{"name":"A"}'),
}


@pytest.mark.parametrize(("kind", "frame", "item"), HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("size", [decoding.MAX_CHECKED_SIZE - 100, decoding.MAX_OBJECT_SIZE])
def test_memory_per_object_is_bounded(kind: Kind[Any], frame: bytes, item: bytes, size: int) -> None:
    raw = frame % b",".join([item] * ((size - len(frame)) // (len(item) + 1)))
    tracemalloc.start()
    with suppress(SpecDecodeError):
        kind.validate(kind.decode_object(raw))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_list_that_is_too_long_is_one_error() -> None:
    found = APPSERVICE.validate({"spec": {"image": "a", "ports": [{"port": 0}] * 100_000}})
    assert [(error.field, error.type) for error in found] == [("spec.ports", TOO_MANY)]


def test_list_that_is_too_long_gets_no_defaults() -> None:
    ports = [{"name": f"tcp-1-{number}"} for number in range(60_000)] + [{"port": 1}] * 60_000
    assert with_defaults({"ports": ports})["ports"] is ports
