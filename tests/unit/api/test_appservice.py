"""AppService: decoding, defaults and rules."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_api.appservice.types import APPSERVICE, AppServiceSpec, decode_spec, validate, with_defaults
from memcached_api.validation.field_errors import FieldError, SpecDecodeError
from support.invalid_appservice import RULES, TYPES
from support.invalid_memcached import InvalidObject

IMAGE = "docker.io/library/nginx:1.28"


def obj(**spec: Any) -> dict[str, Any]:
    """An AppService as JSON."""
    return {"metadata": {"name": "app"}, "spec": {"image": IMAGE, **spec}}


def fields(**spec: Any) -> list[str]:
    """The fields with errors."""
    return [error.field for error in validate(obj(**spec))]


def test_at_most_100_errors_are_reported():
    assert len(validate(obj(envs=[{"name": 1}] * 128))) == 100


def test_image_is_sufficient():
    assert decode_spec(obj()) == AppServiceSpec(size=1, image=IMAGE)
    assert validate(obj()) == []


@pytest.mark.parametrize("incomplete", [{}, {"spec": None}, {"spec": {}}])
def test_image_is_required(incomplete: dict[str, Any]):
    assert [str(error) for error in validate(incomplete)] == ["spec.image: Required value: must be set"]
    with pytest.raises(SpecDecodeError, match=r"spec\.image: Required value"):
        decode_spec(incomplete)


@pytest.mark.parametrize("value", [None, [], "x"])
def test_value_that_is_not_an_object_is_not_decoded(value: Any):
    with pytest.raises(SpecDecodeError, match="must be an object of kind AppService"):
        decode_spec(value)


@pytest.mark.parametrize("faulty", RULES.values(), ids=RULES.keys())
def test_violation_names_field_value_and_remedy(faulty: InvalidObject):
    message = ", ".join(str(error) for error in validate(obj(**faulty.spec)))
    assert [part for part in faulty.expected if part not in message] == []


UNKNOWN = {"unknown field", "unknown field of a port"}
"""Fields that the API server prunes or rejects itself."""


@pytest.mark.parametrize("faulty", [TYPES[name] for name in TYPES if name not in UNKNOWN])
def test_type_error_names_the_field(faulty: InvalidObject):
    found = validate(obj(**faulty.spec))
    assert found
    assert {error.field for error in found} == {faulty.expected[0]}


OPTIONAL = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b", "optional": True}}}
SEVERAL: list[tuple[dict[str, Any], list[str]]] = [
    ({"size": "x", "envs": [OPTIONAL, {}]}, ["spec.size", "spec.envs[1].name"]),
    (
        {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 1}]},
        ["spec.ports[1].port", "spec.ports[1].name"],
    ),
    (
        {"envs": [{"name": "A"}, {"name": "B"}, {"name": "A"}, {"name": "A"}]},
        ["spec.envs[2].name", "spec.envs[3].name"],
    ),
    (
        {"ports": [{"port": 1, "targetPort": "x"}, {"port": 2, "targetPort": "y"}]},
        ["spec.ports[0].targetPort", "spec.ports[1].targetPort"],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), SEVERAL)
def test_every_invalid_entry_is_named(spec: dict[str, Any], expected: list[str]):
    assert fields(**spec) == expected


VALID: dict[str, dict[str, Any]] = {
    "one number with two protocols": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
    "one node port with two protocols": {
        "ports": [{"port": 53, "nodePort": 30053}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]
    },
    "one target for two ports": {"ports": [{"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": 8080}]},
    "a target by name": {"ports": [{"name": "http", "port": 80}, {"port": 81, "targetPort": "http"}]},
    "a target by name, before the named port": {
        "ports": [{"port": 81, "targetPort": "http"}, {"name": "http", "port": 80}]
    },
    "nulls": {"ports": [{"port": 80, "name": None, "nodePort": None, "targetPort": None}], "envs": None},
    "an integer written as 3.0": {"size": 3.0, "ports": [{"port": 80.0, "targetPort": 8080.0}]},
    "an empty value beside a source": {
        "envs": [{"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    },
    "names of environment variables": {"envs": [{"name": name} for name in ("A", "_", "a.b-c", ".x", "-x")]},
    "the longest names": {"ports": [{"port": 80, "name": "a" * 63}, {"port": 81, "name": "9" * 63}]},
    "application protocols": {
        "ports": [{"port": 80, "appProtocol": "http"}, {"port": 81, "appProtocol": "kubernetes.io/h2c"}]
    },
}


@pytest.mark.parametrize("spec", VALID.values(), ids=VALID.keys())
def test_valid(spec: dict[str, Any]):
    assert validate(obj(**spec)) == []
    assert isinstance(decode_spec(obj(**spec)), AppServiceSpec)


DEFAULTS: dict[str, tuple[Any, Any]] = {
    "one port": ([{"port": 80}], [{"port": 80, "protocol": "TCP", "targetPort": 80}]),
    "several ports": (
        [{"port": 80}, {"port": 53, "protocol": "UDP", "name": None}, {"port": 81, "name": "x", "targetPort": 8081}],
        [
            {"port": 80, "protocol": "TCP", "targetPort": 80, "name": "tcp-80"},
            {"port": 53, "protocol": "UDP", "targetPort": 53, "name": "udp-53"},
            {"port": 81, "protocol": "TCP", "targetPort": 8081, "name": "x"},
        ],
    ),
    "no ports": ([], []),
    "invalid ports": (
        [7, {"port": "80"}, {"port": 80, "protocol": 6}],
        [7, {"port": "80", "protocol": "TCP"}, {"port": 80, "protocol": 6, "targetPort": 80}],
    ),
    "a default name that is in use": (
        [{"port": 80}, {"port": 81, "name": "tcp-80"}, {"port": 82, "name": "tcp-80-2"}],
        [
            {"port": 80, "protocol": "TCP", "targetPort": 80, "name": "tcp-80-3"},
            {"port": 81, "protocol": "TCP", "targetPort": 81, "name": "tcp-80"},
            {"port": 82, "protocol": "TCP", "targetPort": 82, "name": "tcp-80-2"},
        ],
    ),
    "not a list": ("80", "80"),
}


@pytest.mark.parametrize(("ports", "expected"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_port_defaults(ports: Any, expected: Any):
    assert with_defaults({"ports": ports}) == {"size": 1, "ports": expected}


def test_defaulting_is_idempotent():
    once = with_defaults({"ports": [{"port": 80}, {"port": 81}]})
    assert with_defaults(once) == once


def test_short_names_do_not_conflict_with_well_known_ones():
    assert not {"apps", "as", "svc", "sa", "app"} & set(APPSERVICE.short_names)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 70000), st.floats(), st.text(max_size=4))
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
NAMES = st.sampled_from(["http", "dns", "A", "a--b", ""])
PORTS = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES | JSON,
        "port": SCALARS | st.integers(0, 3),
        "protocol": JSON | st.sampled_from(["TCP", "UDP"]),
        "targetPort": NAMES | JSON,
        "nodePort": SCALARS | st.integers(29999, 30001),
        "appProtocol": SCALARS | st.sampled_from(["http", "a/b"]),
    },
)
ENVS = st.fixed_dictionaries({}, optional={"name": NAMES | JSON, "value": SCALARS, "valueFrom": JSON})
VALID_PORTS = st.fixed_dictionaries(
    {"port": st.integers(80, 90)},
    optional={"name": st.sampled_from(["http", "dns", "tcp-80", "tcp-81", "80"]), "targetPort": st.integers(80, 90)},
)
VALID_SPECS = st.fixed_dictionaries(
    {"image": st.just(IMAGE)}, optional={"ports": st.lists(VALID_PORTS, max_size=4), "size": st.integers(1, 3)}
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": SCALARS,
        "image": JSON | st.just(IMAGE),
        "ports": JSON | st.lists(PORTS | JSON, max_size=4),
        "envs": JSON | st.lists(ENVS | JSON, max_size=3),
        "resources": JSON,
    },
)


@given(st.fixed_dictionaries({}, optional={"metadata": JSON, "spec": SPECS | JSON}) | JSON)
def test_validate_never_raises_and_every_error_has_a_message(value: Any):
    for error in validate(value):
        assert isinstance(error, FieldError)
        assert str(error)


@given(SPECS | VALID_SPECS)
def test_valid_spec_is_decoded_and_stays_valid_with_defaults(spec: dict[str, Any]):
    before = msgspec.json.encode(spec)
    if not validate(obj(**spec)):
        assert isinstance(decode_spec(obj(**spec)), AppServiceSpec)
        assert validate(obj(**with_defaults(spec))) == []
    with_defaults(spec)
    assert msgspec.json.encode(spec) == before


@pytest.mark.parametrize("protocol", [["x"], {}, 6, True])
def test_protocol_that_is_not_a_string_is_reported(protocol: Any):
    (error, *_) = validate(obj(ports=[{"port": 80, "protocol": protocol}]))
    assert (error.field, error.message) == ("spec.ports[0].protocol", "must be a string")
