"""Our structs for types of Kubernetes have what the API server's types have, except what docs/api.md lists."""

from typing import Any

import pytest
from msgspec import inspect, structs

from cluster.versions import NEWEST_KUBERNETES
from crds import omitted
from integration.control_plane import ControlPlane
from memcached_operator.kube.resource import Object
from unit.crds.test_generated import TYPES

pytestmark = pytest.mark.server

Values = dict[tuple[str, str], set[str]]
"""The values of each enumeration, by type and field."""


@pytest.fixture
def schemas(plane: ControlPlane) -> Object:
    """The API server's schemas of our types, by name."""
    document = plane.call(lambda client: client.request("GET", "/openapi/v3/api/v1"))
    return {name: document["components"]["schemas"][name]["properties"] for name in TYPES}


def literals(struct: type[Any]) -> dict[str, set[str]]:
    """The values of the enumerations of a struct, by the name of their field."""
    found = {field.encode_name: _literal(inspect.type_info(field.type)) for field in structs.fields(struct)}
    return {name: values for name, values in found.items() if values}


def _literal(type_: inspect.Type) -> set[str]:
    match type_:
        case inspect.LiteralType():
            return {str(value) for value in type_.values}
        case inspect.UnionType():
            return {value for member in type_.types for value in _literal(member)}
        case inspect.Metadata():
            return _literal(type_.type)
        case _:
            return set()


def test_only_the_listed_fields_are_left_out(schemas: Object, version: str) -> None:
    found: dict[str, set[str]] = {}
    for name, struct in TYPES.items():
        ours = set(struct.__struct_encode_fields__)
        assert ours <= schemas[name].keys(), name
        found[struct.__name__] = schemas[name].keys() - ours
    listed = {struct.__name__: set(fields) for struct, fields in omitted.FIELDS.items()}
    new = {name: fields - listed.get(name, set()) for name, fields in found.items()}
    assert {name: fields for name, fields in new.items() if fields} == {}
    if version == NEWEST_KUBERNETES:
        assert {name: fields for name, fields in found.items() if fields} == listed


def test_only_the_listed_values_are_left_out(schemas: Object, version: str) -> None:
    ours, theirs, left_out = Values(), Values(), Values()
    for name, struct in TYPES.items():
        for field, values in literals(struct).items():
            if enum := schemas[name][field].get("enum"):
                ours[struct.__name__, field], theirs[struct.__name__, field] = values, set(enum)
            left_out[struct.__name__, field] = set(omitted.VALUES.get(struct, {}).get(field, ()))
    assert len(theirs) > 5
    for key, values in theirs.items():
        assert ours[key] <= values, key
        assert values - ours[key] <= left_out[key], key
        if version == NEWEST_KUBERNETES:
            assert values - ours[key] == left_out[key], key
