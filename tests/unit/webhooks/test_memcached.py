"""Admission of a Memcached: defaults, denials, and requests that are always allowed."""

from typing import Any

import pytest

from memcached_webhooks.kinds import memcached
from memcached_webhooks.review import ALLOWED, GroupVersionKind, Patch, Response

from .reviews import DEFAULT
from .reviews import memcached as obj
from .reviews import request as req

HANDLERS = memcached.admission(DEFAULT).handlers()
SIZE = {"op": "add", "path": "/spec/size", "value": 1}
PORT = {"op": "add", "path": "/spec/containerPort", "value": 11211}
IMAGE = {"op": "add", "path": "/spec/image", "value": DEFAULT}
OLD_IMAGE = {"op": "add", "path": "/spec/image", "value": "memcached:old"}


def respond(path: str, new: Any, old: Any = None, **changes: Any) -> Response:
    return HANDLERS[path](req(new, old, **changes))


def fields(result: Response) -> list[str]:
    return [cause["field"] for cause in result.denial.details["causes"]] if result.denial else []


@pytest.mark.parametrize(
    ("spec", "old", "patch"),
    [
        ({}, None, [SIZE, PORT, IMAGE]),
        ({"size": None, "containerPort": 2000}, None, [SIZE, IMAGE]),
        ({"size": 0, "containerPort": "x", "image": "A b"}, None, []),
        ({"size": 2, "containerPort": 2000}, {"image": "memcached:old"}, [OLD_IMAGE]),
        ({"size": 2, "containerPort": 2000}, {"image": 7}, []),
        ({"size": 2, "containerPort": 2000}, {}, []),
        ({"size": 2, "containerPort": 2000, "image": "memcached:new"}, {"image": "memcached:old"}, []),
        ("x", None, []),
        ([], None, []),
    ],
)
def test_defaults(spec: Any, old: Any, patch: Patch):
    assert respond(memcached.MUTATE, obj(spec), old and obj(old)).patch == patch


def test_object_without_a_spec_gets_one():
    value = {"size": 1, "containerPort": 11211, "image": DEFAULT}
    assert respond(memcached.MUTATE, obj()).patch == [{"op": "add", "path": "/spec", "value": value}]


@pytest.mark.parametrize("new", [None, [], "x"])
def test_value_that_is_not_an_object_is_denied_by_validation_only(new: Any):
    assert respond(memcached.MUTATE, new) == ALLOWED
    assert fields(respond(memcached.VALIDATE, new)) == [""]


def test_defaulting_is_idempotent():
    spec = {op["path"].removeprefix("/spec/"): op["value"] for op in respond(memcached.MUTATE, obj({})).patch}
    assert respond(memcached.MUTATE, obj(spec)) == ALLOWED


@pytest.mark.parametrize(
    ("new", "old", "denied"),
    [
        ({"size": 1}, None, []),
        ({"size": 3.0}, None, []),
        ({"size": 0, "containerPort": 80}, None, ["spec.size", "spec.containerPort"]),
        ({"size": 0}, {"size": 1}, ["spec.size"]),
        # An error of the old object is tolerated if it is unchanged.
        ({"size": 0}, {"size": 0}, []),
        ({"size": -1}, {"size": 0}, ["spec.size"]),
        ({"size": 0, "containerPort": 80}, {"size": 0}, ["spec.containerPort"]),
        ({"size": "x"}, {"size": "x"}, []),
        ({"cache": {"memory": "x"}}, {"cache": {"memory": "x"}}, []),
        (
            {"cache": {"memory": "65Mi"}, "resources": {"limits": {"memory": "32Mi"}}},
            {"cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": "32Mi"}}},
            ["spec.resources.limits[memory]"],
        ),
        (
            {"size": 5, "resources": {"limits": {"memory": "32Mi", "cpu": 2}}},
            {"size": 3, "resources": {"limits": {"memory": "32Mi", "cpu": 1}}},
            [],
        ),
    ],
)
def test_denied_fields(new: Any, old: Any, denied: list[str]):
    assert fields(respond(memcached.VALIDATE, obj(new), old and obj(old))) == denied


def test_errors_are_not_tolerated_without_an_old_object():
    assert fields(respond(memcached.VALIDATE, obj({"size": 0}), operation="UPDATE")) == ["spec.size"]


def test_allowed_update_has_warnings():
    result = respond(memcached.VALIDATE, obj({"size": 1}), obj({"size": 3}))
    assert result == Response(warnings=["2 of 3 pods will be deleted; the cached data of these pods is lost"])


@pytest.mark.parametrize("path", sorted(HANDLERS))
@pytest.mark.parametrize(
    "changes",
    [{"operation": "DELETE"}, {"operation": "CONNECT"}, {"sub_resource": "status"}],
)
def test_deletions_connections_and_status_writes_are_allowed(path: str, changes: dict[str, str]):
    assert respond(path, obj({"size": 0}), **changes) == ALLOWED


@pytest.mark.parametrize("path", sorted(HANDLERS))
@pytest.mark.parametrize("changes", [{"operation": ""}, {"operation": "PATCH"}, {"sub_resource": "scale"}])
def test_unknown_operations_and_subresources_are_denied(path: str, changes: dict[str, str]):
    denial = respond(path, obj({"size": 1}), **changes).denial
    assert denial is not None
    assert (denial.code, denial.reason) == (400, "BadRequest")


@pytest.mark.parametrize("path", sorted(HANDLERS))
def test_object_being_deleted_is_allowed(path: str):
    terminating = obj({"size": 0}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert respond(path, terminating, obj({"size": 1})) == ALLOWED


@pytest.mark.parametrize("path", sorted(HANDLERS))
@pytest.mark.parametrize(
    "kind", [GroupVersionKind("apps", "v1", "Deployment"), GroupVersionKind("cache.example.com", "v1", "Other")]
)
def test_other_kinds_are_denied(path: str, kind: GroupVersionKind):
    result = respond(path, obj({}), kind=kind)
    assert result.denial
    assert result.denial.code == 400


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_both_versions_are_handled_on_the_same_paths(version: str):
    kind = GroupVersionKind("cache.example.com", version, "Memcached")
    assert respond(memcached.MUTATE, obj({}), kind=kind).patch == [SIZE, PORT, IMAGE]
    assert fields(respond(memcached.VALIDATE, obj({"size": 0}), kind=kind)) == ["spec.size"]
