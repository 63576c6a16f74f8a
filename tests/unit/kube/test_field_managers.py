from typing import Any

import pytest

from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.field_managers import Manager, Path, differences, manager_of
from memcached_operator.kube.resource import Object

DIFFERENCES: dict[str, tuple[Object, Object, list[Path]]] = {
    "nothing": ({"a": 1, "more": 2}, {"a": 1}, []),
    "value": ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, [("a", "b")]),
    "removed": ({"a": {}}, {"a": {"b": 2}}, [("a", "b")]),
    "removed map": ({}, {"a": {"b": 2}}, [("a",)]),
    "list": ({"a": [{"name": "x", "v": 1}]}, {"a": [{"name": "x", "v": 2}]}, [("a",)]),
    "map that is replaced whole": ({"selector": {"a": "1", "b": "2"}}, {"selector": {"a": "1"}}, [("selector",)]),
    "not stored": ({"spec": {}}, {"spec": {"paused": False}}, []),
}


@pytest.mark.parametrize(("live", "desired", "paths"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_differences(live: Object, desired: Object, paths: list[Path]) -> None:
    assert list(differences(live, desired)) == paths


def entry(manager: str, time: str = "2030-01-01T00:00:00Z", subresource: str = "", **fields: Any) -> Object:
    """An entry of managedFields that owns these fields of the spec."""
    owned = {"f:spec": {f"f:{name}": value for name, value in fields.items()}}
    return {"manager": manager, "operation": "Update", "time": time, "subresource": subresource, "fieldsV1": owned}


def managed(*entries: Object) -> Object:
    """An object with these managers."""
    return {"metadata": {"managedFields": list(entries)}}


OURS = entry(FIELD_MANAGER, "2030-01-01T00:00:09Z", replicas={})
REPLICAS = [("spec", "replicas")]
MANAGERS: dict[str, tuple[list[Object], list[Path], Manager | None]] = {
    "owner of the field": ([OURS, entry("a", other={}), entry("b", replicas={})], REPLICAS, Manager("b")),
    "of a subresource": ([entry("kubectl", subresource="scale", replicas={})], REPLICAS, Manager("kubectl", "scale")),
    "the last one": (
        [entry("a", "2030-01-01T00:00:02Z", replicas={}), entry("b", "2030-01-01T00:00:01Z", replicas={})],
        REPLICAS,
        Manager("a"),
    ),
    "of a map that is replaced whole": ([entry("a", selector={})], [("spec", "selector", "x")], Manager("a")),
    "of a part of a list": ([entry("a", ports={"k:{}": {".": {}}})], [("spec", "ports")], Manager("a")),
    "the operator": ([OURS, entry("a", other={})], REPLICAS, Manager(FIELD_MANAGER)),
    "of a status": ([entry("a", subresource="status", replicas={})], REPLICAS, None),
    "nobody": ([entry("a", other={})], REPLICAS, None),
    "no entries": ([], REPLICAS, None),
    "entry without fields": ([{"manager": "a"}], REPLICAS, None),
}


@pytest.mark.parametrize(("entries", "paths", "manager"), MANAGERS.values(), ids=MANAGERS.keys())
def test_manager_of_a_field(entries: list[Object], paths: list[Path], manager: Manager | None) -> None:
    assert manager_of(managed(*entries), paths) == manager
