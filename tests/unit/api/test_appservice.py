"""AppService: decoding, defaults and rules, beyond the tables of test_rules.py."""

from typing import Any

import pytest

from memcached_api.appservice.types import APPSERVICE, AppServiceSpec, decode_spec, with_defaults
from memcached_api.validation.field_errors import SpecDecodeError

IMAGE = "docker.io/library/nginx:1.28"


def obj(**spec: Any) -> dict[str, Any]:
    """An AppService as JSON."""
    return {"metadata": {"name": "app"}, "spec": {"image": IMAGE, **spec}}


def fields(**spec: Any) -> list[str]:
    """The fields with errors."""
    return [error.field for error in APPSERVICE.validate(obj(**spec))]


def test_at_most_100_errors_are_reported():
    assert len(APPSERVICE.validate(obj(envs=[{"name": 1}] * 128))) == 100


def test_image_is_sufficient():
    assert decode_spec(obj()) == AppServiceSpec(size=1, image=IMAGE)
    assert APPSERVICE.validate(obj()) == []


@pytest.mark.parametrize("incomplete", [{}, {"spec": None}, {"spec": {}}])
def test_image_is_required(incomplete: dict[str, Any]):
    assert [str(error) for error in APPSERVICE.validate(incomplete)] == ["spec.image: Required value: must be set"]
    with pytest.raises(SpecDecodeError, match=r"spec\.image: Required value"):
        decode_spec(incomplete)


OPTIONAL = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b", "optional": True}}}
SEVERAL: list[tuple[dict[str, Any], list[str]]] = [
    ({"size": "x", "envs": [OPTIONAL, {}]}, ["spec.size", "spec.envs[1].name"]),
    ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 1}]}, ["spec.ports[1].port", "spec.ports[1].name"]),
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
    "nulls": {"ports": [{"port": 80, "name": None, "nodePort": None, "targetPort": None}], "envs": None},
    "an integer written as 3.0": {"size": 3.0, "ports": [{"port": 80.0, "targetPort": 8080.0}]},
}


@pytest.mark.parametrize("spec", VALID.values(), ids=VALID.keys())
def test_valid_in_json(spec: dict[str, Any]):
    assert APPSERVICE.validate(obj(**spec)) == []
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


@pytest.mark.parametrize("protocol", [["x"], {}, 6, True])
def test_protocol_that_is_not_a_string_is_reported(protocol: Any):
    (error, *_) = APPSERVICE.validate(obj(ports=[{"port": 80, "protocol": protocol}]))
    assert (error.field, error.message) == ("spec.ports[0].protocol", "must be a string")
