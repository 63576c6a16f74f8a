"""Admission of a Memcached: defaults, denials, and requests that are always allowed."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_webhooks.kinds import memcached
from memcached_webhooks.review import ALLOWED, GroupVersionKind, Patch, ReviewResponse
from support.reviewing import patched

from .reviews import DEFAULT, MUTATE, VALIDATE
from .reviews import memcached as obj
from .reviews import request as req

HANDLERS = memcached.admission(Images(DEFAULT)).handlers()
SIZE = {"op": "add", "path": "/spec/size", "value": 1}
PORT = {"op": "add", "path": "/spec/containerPort", "value": 11211}
IMAGE = {"op": "add", "path": "/spec/image", "value": DEFAULT}
OLD_IMAGE = {"op": "add", "path": "/spec/image", "value": "memcached:old"}


def respond(path: str, new: Any, old: Any = None, **changes: Any) -> ReviewResponse:
    return HANDLERS[path](req(new, old, **changes))


def fields(result: ReviewResponse) -> list[str]:
    return [cause["field"] for cause in result.denial.details["causes"]] if result.denial else []


def spread(key: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
    return {**constraint, "matchLabelKeys": ["pod-template-hash"]}


SPREAD = [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")]
BUDGET = {"enabled": True, "maxUnavailable": 1}
ROLLOUT = {"maxUnavailable": 0, "maxSurge": 1}
PLACED: dict[str, Any] = {
    "podTemplate": {"spec": {"topologySpreadConstraints": SPREAD}},
    "podDisruptionBudget": BUDGET,
    "rollout": ROLLOUT,
}
PLACING: Patch = [
    {"op": "add", "path": "/spec/podTemplate", "value": PLACED["podTemplate"]},
    {"op": "add", "path": "/spec/podDisruptionBudget", "value": BUDGET},
    {"op": "add", "path": "/spec/rollout", "value": {"maxUnavailable": 0}},
    {"op": "add", "path": "/spec/rollout/maxSurge", "value": 1},
]


@pytest.mark.parametrize(
    ("spec", "old", "patch"),
    [
        ({}, None, [SIZE, PORT, IMAGE, *PLACING]),
        ({"size": None, "containerPort": 2000}, None, [SIZE, IMAGE, *PLACING]),
        ({"size": 0, "containerPort": "x", "image": "A b"}, None, PLACING),
        ({"size": 0, "containerPort": "x", "image": "A b", "podTemplate": 1, "rollout": []}, None, PLACING[1:2]),
        ({"size": 2, "containerPort": 2000}, {"image": "memcached:old"}, [OLD_IMAGE]),
        ({"size": 2, "containerPort": 2000}, {"image": 7}, [IMAGE]),
        ({"size": 2, "containerPort": 2000, "image": "memcached:new"}, {"image": "memcached:old"}, []),
        ("x", None, []),
    ],
)
def test_defaults(spec: Any, old: Any, patch: Patch):
    assert respond(MUTATE, obj(spec), old and obj(old)).patch == patch


def test_object_without_a_spec_gets_one():
    operations = respond(MUTATE, obj()).patch
    assert operations[0] == {"op": "add", "path": "/spec", "value": {"size": 1}}
    assert patched(obj(), operations)["spec"] == {"size": 1, "containerPort": 11211, "image": DEFAULT, **PLACED}


FULL: dict[str, Any] = {"size": 1, "containerPort": 2000, "image": DEFAULT}
CREATED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, PLACED),
    ({"podTemplate": None, "podDisruptionBudget": None, "rollout": None}, PLACED),
    (
        {"podTemplate": {"metadata": {"labels": {"a": "b"}}}},
        {**PLACED, "podTemplate": {"metadata": {"labels": {"a": "b"}}, **PLACED["podTemplate"]}},
    ),
    ({"podTemplate": {"spec": {"topologySpreadConstraints": []}}}, {"podDisruptionBudget": BUDGET, "rollout": ROLLOUT}),
    ({"podDisruptionBudget": {"enabled": False}}, {**PLACED, "podDisruptionBudget": {"enabled": False}}),
    ({"podDisruptionBudget": {}}, {**PLACED, "podDisruptionBudget": {}}),
    ({"rollout": {"maxSurge": "50%"}}, {**PLACED, "rollout": {"maxUnavailable": 0, "maxSurge": "50%"}}),
    ({"rollout": {"maxSurge": 0}}, {**PLACED, "rollout": {"maxUnavailable": 1, "maxSurge": 0}}),
    ({"rollout": {"maxSurge": "0%"}}, {**PLACED, "rollout": {"maxUnavailable": 1, "maxSurge": "0%"}}),
    ({"rollout": {"maxUnavailable": 1}}, {**PLACED, "rollout": {"maxUnavailable": 1, "maxSurge": 1}}),
]


@pytest.mark.parametrize(("given", "expected"), CREATED)
def test_new_object_gets_placing_defaults(given: dict[str, Any], expected: dict[str, Any]):
    new = obj({**FULL, **given})
    result = patched(new, respond(MUTATE, new).patch)
    assert result["spec"] == {**FULL, **given, **expected}
    assert respond(VALIDATE, result) == ALLOWED


@pytest.mark.parametrize("old", [None, obj({**FULL, **PLACED}), obj({**FULL, "rollout": {"maxUnavailable": 1}})])
def test_no_surge_without_max_unavailable_is_accepted_in_new_and_existing_objects(old: Any):
    new = obj({**FULL, "rollout": {"maxSurge": 0}})
    result = patched(new, respond(MUTATE, new, old).patch)
    assert result["spec"]["rollout"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert fields(respond(VALIDATE, result, old)) == []


STABLE_SPREAD = [{key: value for key, value in each.items() if key != "matchLabelKeys"} for each in SPREAD]
STABLE = {
    "podTemplate": {"spec": {"topologySpreadConstraints": STABLE_SPREAD}},
    "podDisruptionBudget": PLACED["podDisruptionBudget"],
    "rollout": {"maxUnavailable": 1, "maxSurge": 0},
}


def test_new_object_with_slots_gets_defaults_that_it_may_have():
    new = obj({**FULL, "size": 3, "identity": "Stable"})
    result = patched(new, respond(MUTATE, new).patch)
    assert result["spec"] == {**FULL, "size": 3, "identity": "Stable", **STABLE}
    assert respond(VALIDATE, result) == ALLOWED
    without = obj({**FULL, "identity": "Stable"})
    kept = patched(without, respond(MUTATE, without, result).patch)["spec"]
    assert kept == {**FULL, "identity": "Stable", **STABLE}


@pytest.mark.parametrize("new", [None, [], "x"])
def test_value_that_is_not_an_object_is_denied_by_validation_only(new: Any):
    assert respond(MUTATE, new) == ALLOWED
    assert fields(respond(VALIDATE, new)) == [""]


def test_defaulting_is_idempotent():
    result = patched(obj({}), respond(MUTATE, obj({})).patch)
    assert respond(MUTATE, result) == ALLOWED


LIMIT = ["spec.resources.limits[memory]"]


def limited(memory: str, /, **cache: Any) -> dict[str, Any]:
    return {"resources": {"limits": {"memory": memory}}, **({"cache": cache} if cache else {})}


def stable(**cache: Any) -> dict[str, Any]:
    return {"identity": "Stable", "cache": cache}


@pytest.mark.parametrize(
    ("new", "old", "denied"),
    [
        ({"size": 1}, None, []),
        ({"size": 0, "containerPort": 80}, None, ["spec.size", "spec.containerPort"]),
        ({"size": 0}, {"size": 1}, ["spec.size"]),
        # An error of the old object is tolerated if it is unchanged.
        ({"size": 0}, {"size": 0}, []),
        ({"size": -1}, {"size": 0}, ["spec.size"]),
        ({"size": 0, "containerPort": 80}, {"size": 0}, ["spec.containerPort"]),
        ({"size": "x"}, {"size": "x"}, []),
        ({"cache": {"memory": "x"}}, {"cache": {"memory": "x"}}, []),
        (limited("32Mi", memory="65Mi"), limited("32Mi", memory="64Mi"), LIMIT),
        (
            {"size": 5, "resources": {"limits": {"memory": "32Mi", "cpu": 2}}},
            {"size": 3, "resources": {"limits": {"memory": "32Mi", "cpu": 1}}},
            [],
        ),
        # The rule for the limit has several inputs; an absent number equals its default, as in the CRD.
        (limited("100Mi", memory="67108864"), limited("100Mi", memory=67108864), LIMIT),
        (limited("100Mi", memory="64Mi", threads=4), limited("100Mi", memory="64Mi"), []),
        (limited("50Mi", maxItemSize="1Mi"), limited("50Mi"), LIMIT),
        # An absent boolean equals its default too.
        (limited("50Mi", warmRestart=False), limited("50Mi"), []),
        (stable(memory="32Mi", warmRestart=True, threads=2), stable(memory="32Mi", warmRestart=True), []),
        (stable(memory="32Mi", warmRestart=True), stable(memory="32Mi"), ["spec.cache.memory"]),
    ],
)
def test_denied_fields(new: Any, old: Any, denied: list[str]):
    assert fields(respond(VALIDATE, obj(new), old and obj(old))) == denied


IDENTITY_CHANGES: list[tuple[Any, Any, list[str]]] = [
    ({"identity": "Stable"}, {"identity": "Stable"}, []),
    ({"identity": "Pooled"}, {}, []),
    ({}, {"identity": "Pooled"}, []),
    ({"identity": None}, {"identity": "Pooled"}, []),
    ({"identity": "Stable"}, {}, ["spec.identity"]),
    ({"identity": "Stable"}, {"identity": "Pooled"}, ["spec.identity"]),
    ({}, {"identity": "Stable"}, ["spec.identity"]),
    ({"identity": None}, {"identity": "Stable"}, ["spec.identity"]),
    # Also beside another error, and if the old object has that one too.
    ({"identity": "Stable", "size": 0}, {"size": 0}, ["spec.identity"]),
]


@pytest.mark.parametrize(("new", "old", "denied"), IDENTITY_CHANGES)
def test_identity_cannot_be_changed(new: Any, old: Any, denied: list[str]):
    result = respond(VALIDATE, obj(new), obj(old))
    assert fields(result) == denied
    if result.denial:
        assert "create another Memcached with this value" in result.denial.message


def test_errors_are_not_tolerated_without_an_old_object():
    assert fields(respond(VALIDATE, obj({"size": 0}), operation="UPDATE")) == ["spec.size"]


def test_allowed_update_has_warnings():
    result = respond(VALIDATE, obj({"size": 1}), obj({"size": 3}))
    assert result == ReviewResponse(
        warnings=[
            "3 → 1 pods: with consistent hashing about 67 % of the keys move; the cached items of the deleted pods are "
            "lost"
        ]
    )


def test_kept_error_is_a_warning_with_the_remedy():
    spec = {"size": 1, "image": DEFAULT, "cache": {"memory": "64Mi"}, "resources": {"limits": {"memory": "100Mi"}}}
    result = respond(VALIDATE, obj(spec), obj(spec))
    assert result == ReviewResponse(
        warnings=[
            "spec.resources.limits[memory] is kept, but must be at least 126Mi for spec.cache.memory of 64Mi, 1024 "
            "connections and 4 threads; raise this limit or lower spec.cache.memory"
        ]
    )


def test_huge_memory_of_the_old_object_can_be_repaired():
    result = respond(VALIDATE, obj({"cache": {"memory": "64Mi"}}), obj({"cache": {"memory": "1e999"}}))
    assert result == ALLOWED


@pytest.mark.parametrize("path", sorted(HANDLERS))
@pytest.mark.parametrize("changes", [{"operation": "DELETE"}, {"operation": "CONNECT"}, {"sub_resource": "status"}])
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
    assert respond(MUTATE, obj({}), kind=kind).patch == [SIZE, PORT, IMAGE, *PLACING]
    assert fields(respond(VALIDATE, obj({"size": 0}), kind=kind)) == ["spec.size"]
