from typing import Any

import pytest

from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.field_managers import Manager, Path, differences, has_co_owners, manager_of, takeover
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


def test_takeover_leaves_to_others_only_the_fields_that_the_operator_does_not_own() -> None:
    """Not their fields of a status, and not what another client applies."""
    mine: dict[str, Any] = {"image": {}, "ports": {"k:1": {".": {}, "f:port": {}}}, "selector": {}}
    applied = entry(FIELD_MANAGER, **mine)
    ports: Object = {"k:1": {".": {}, "f:port": {}, "f:protocol": {}}}
    status = entry("kubelet", subresource="status", image={})
    more: dict[str, Any] = {**mine, "selector": {"f:a": {}}, "other": {}, "ports": ports}
    theirs = entry("velero", **more)
    same = entry("kubectl-create", **mine)
    ssa = {**entry("argocd", **mine), "operation": "Apply"}
    result = managed({**applied, "operation": "Apply"})
    (ours,) = result["metadata"]["managedFields"]
    live = managed(theirs, status, same, ssa)
    left: Object = {"f:spec": {"f:other": {}, "f:ports": {"k:1": {"f:protocol": {}}}}}
    changes: list[Object] = [
        {"op": "test", "path": "/metadata/managedFields/2", "value": same},
        {"op": "remove", "path": "/metadata/managedFields/2"},
        {"op": "test", "path": "/metadata/managedFields/0", "value": theirs},
        {"op": "replace", "path": "/metadata/managedFields/0", "value": {**theirs, "fieldsV1": left}},
    ]
    assert has_co_owners(live)
    assert takeover(live, result) == [*changes, {"op": "add", "path": "/metadata/managedFields/-", "value": ours}]
    assert takeover(managed(theirs, status, same, ssa, applied), result) == changes, "ours is migrated later"


def test_orphan_without_other_owners_needs_no_takeover() -> None:
    live = managed(OURS, entry("kubelet", subresource="status"), {**entry("argocd"), "operation": "Apply"})
    assert not has_co_owners(live)
    assert takeover(live, managed({**OURS, "operation": "Apply"})) == []
