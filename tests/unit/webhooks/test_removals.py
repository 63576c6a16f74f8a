"""Admission of a Memcached: fields that an update removes."""

from itertools import permutations
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.values import is_object
from memcached_webhooks.kinds import memcached
from memcached_webhooks.review import ALLOWED
from support.reviewing import patched

from .reviews import DEFAULT, MUTATE
from .reviews import memcached as obj
from .reviews import request as req
from .test_memcached import BUDGET, FULL, PLACED, ROLLOUT, SPREAD, respond

RESTARTED = {"restartedAt": "2026-11-22T10:00:00Z"}
OWN: dict[str, Any] = {
    "podTemplate": {"spec": {"topologySpreadConstraints": SPREAD[:1]}},
    "podDisruptionBudget": {"maxUnavailable": 2},
    "rollout": {"maxUnavailable": "50%", "maxSurge": 3},
}
"""Another value of each placing default."""
WARM: dict[str, Any] = {"warmUp": {}, "paused": True, "minReadySeconds": 3}
BUDGET_REMOVED = "spec.podDisruptionBudget was removed, so its default is set"
SPREAD_REMOVED = "spec.podTemplate.spec.topologySpreadConstraints was removed, so its default is set"
UNAVAILABLE_REMOVED = "spec.rollout.maxUnavailable was removed, so its default is set, 0"
SURGE_REMOVED = "spec.rollout.maxSurge was removed, so its default is set, 1"
ALL_REMOVED = [SPREAD_REMOVED, BUDGET_REMOVED, UNAVAILABLE_REMOVED, SURGE_REMOVED]
UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], list[str]]] = {
    # The new spec, the old one, the fields that admission adds, and its warnings.
    "defaults, unchanged": ({}, PLACED, PLACED, []),
    "defaults, beside another field": (
        {"rollout": {"paused": True}},
        PLACED,
        {**PLACED, "rollout": {"paused": True, **ROLLOUT}},
        [],
    ),
    "other values": ({}, OWN, PLACED, ALL_REMOVED),
    "other values, of null": (dict.fromkeys(OWN), OWN, PLACED, ALL_REMOVED),
    "other values, below null": (
        {"podTemplate": {"spec": {"topologySpreadConstraints": None}}, "rollout": {"maxSurge": None}},
        {**OWN, "podDisruptionBudget": None},
        {"podTemplate": PLACED["podTemplate"], "rollout": ROLLOUT},
        [SPREAD_REMOVED, UNAVAILABLE_REMOVED, SURGE_REMOVED],
    ),
    "one of two": (
        {"rollout": {"maxUnavailable": "50%"}},
        {"rollout": OWN["rollout"]},
        {"rollout": {"maxUnavailable": "50%", "maxSurge": 1}},
        [SURGE_REMOVED],
    ),
    "no budget": ({}, {"podDisruptionBudget": {"enabled": False}}, {"podDisruptionBudget": BUDGET}, [BUDGET_REMOVED]),
    "an empty budget": ({}, {"podDisruptionBudget": {}}, {"podDisruptionBudget": BUDGET}, [BUDGET_REMOVED]),
    "no constraints": (
        {},
        {"podTemplate": {"spec": {"topologySpreadConstraints": []}}},
        {"podTemplate": PLACED["podTemplate"]},
        [SPREAD_REMOVED],
    ),
    "never set": ({}, {}, {}, []),
    "never set, null": ({}, dict.fromkeys(OWN), {}, []),
    "never set, beside other fields": ({}, {"podTemplate": {"metadata": {}, "spec": {}}, "rollout": {}}, {}, []),
    "switched off": (
        {"podDisruptionBudget": {"enabled": False}, "podTemplate": {"spec": {"topologySpreadConstraints": []}}},
        {**OWN, "rollout": None},
        {},
        [],
    ),
    "changed": (
        {"podDisruptionBudget": {}, "rollout": {"maxUnavailable": 2, "maxSurge": 2}},
        {**OWN, "podTemplate": None},
        {},
        [],
    ),
    "without a default": ({}, {"rollout": WARM, "podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}, {}, []),
    # A restart cannot be undone: an update without its time would be another one.
    "restarted": ({}, {"rollout": RESTARTED}, {"rollout": RESTARTED}, []),
    "restarted, beside an empty object": ({"rollout": {}}, {"rollout": RESTARTED}, {"rollout": RESTARTED}, []),
    "restarted again": ({"rollout": {"restartedAt": "2026-11-23T10:00:00Z"}}, {"rollout": RESTARTED}, {}, []),
}


@pytest.mark.parametrize(("given", "old", "expected", "warned"), UPDATED.values(), ids=UPDATED.keys())
def test_update_sets_the_default_of_a_removed_field_only(
    given: dict[str, Any], old: dict[str, Any], expected: dict[str, Any], warned: list[str]
):
    new, before = obj({**FULL, **given}), obj({**FULL, **old})
    result = respond(MUTATE, new, before)
    after = patched(new, result.patch)
    assert after["spec"] == {**FULL, **given, **expected}
    assert [each.partition("; to ")[0] for each in result.warnings] == warned
    again = respond(MUTATE, after, before)
    assert again == ALLOWED, "the API server may call the webhook twice"
    reapplied = respond(MUTATE, new, after)
    assert (patched(new, reapplied.patch), reapplied.warnings) == (after, [])


def test_warning_says_how_to_have_none():
    before = obj({**FULL, **OWN, "image": "memcached:own", "podTemplate": None, "rollout": {"maxSurge": 2}})
    new = {name: value for name, value in FULL.items() if name != "image"}
    managed = {**before, "metadata": {**before["metadata"], "managedFields": [manager({"f:image": {}})]}}
    assert respond(MUTATE, obj(new), managed).warnings == [
        "spec.podDisruptionBudget was removed, so its default is set; to have none, set enabled: false",
        "spec.rollout.maxSurge was removed, so its default is set, 1; to use another value, set the field",
        f"spec.image was removed, so its default is set, {DEFAULT}; to use another value, set the field",
    ]
    spread = obj({**FULL, "podTemplate": OWN["podTemplate"]})
    (warning,) = respond(MUTATE, obj(FULL), spread).warnings
    assert warning == f"{SPREAD_REMOVED}; to have none, set it to []"


def manager(fields: Any, operation: str = "Update") -> dict[str, Any]:
    """An entry of `managedFields` with these fields of the spec."""
    return {"manager": "client", "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}


PINS: dict[str, tuple[Any, str, list[str]]] = {
    # The managers of the old object, and the image of an update without one.
    "set by admission": ([manager({"f:size": {}, "f:agent": {"f:resources": {}}})], "memcached:old", []),
    "no managers": (None, "memcached:old", []),
    "cleared managers": ([{}], "memcached:old", []),
    "invalid managers": ([{"fieldsV1": {"f:spec": 1}}], "memcached:old", []),
    "set by a client": ([manager({"f:size": {}}), manager({"f:image": {}})], DEFAULT, ["spec.image"]),
    "applied by a client": ([manager({"f:image": {}}, "Apply")], DEFAULT, ["spec.image"]),
}


@pytest.mark.parametrize(("managers", "image", "warned"), PINS.values(), ids=PINS.keys())
def test_image_is_kept_only_if_admission_has_set_it(managers: Any, image: str, warned: list[str]):
    spec = {"size": 1, "containerPort": 2000}
    metadata = {} if managers is None else {"managedFields": managers}
    result = respond(MUTATE, obj(spec), obj({**spec, "image": "memcached:old"}, **metadata))
    assert patched(obj(spec), result.patch)["spec"] == {**spec, "image": image}
    assert [each.partition(" was removed")[0] for each in result.warnings] == warned


OTHER_BUDGET: dict[str, Any] = {"podDisruptionBudget": {"enabled": False}}
MANIFESTS: list[dict[str, Any]] = [
    {},
    {"size": 3, "containerPort": 2000},
    {"image": "memcached:own"},
    {"rollout": {"maxSurge": 2, "paused": True}, **OTHER_BUDGET},
    {"rollout": {"maxUnavailable": "50%", "minReadySeconds": 3}},
    {"rollout": {"maxSurge": 0}},
    {"podTemplate": {"spec": {"topologySpreadConstraints": []}}, "monitoring": {}},
    {"podTemplate": {"metadata": {"labels": {"a": "b"}}}, "tls": {"secretName": "a"}, "agent": {"image": "agent:own"}},
    {"agent": {"image": "agent:own"}, "monitoring": {"enabled": False}},
]
EARLIER, CURRENT = Images("memcached:1", "agent:1"), Images("memcached:2", "agent:2")
SLOTS: dict[str, Any] = {"identity": "Stable", "rollout": {"warmUp": {}}}


def fields_v1(value: Any) -> Any:
    """The fields of a value as in `managedFields`."""
    return {f"f:{key}": fields_v1(each) for key, each in value.items()} if is_object(value) else {}


def replaced(spec: dict[str, Any], old: Any = None, images: Images = CURRENT) -> tuple[Any, list[str]]:
    """The object that is stored after `kubectl replace` with a manifest, with its field managers, and the warnings."""
    new = obj(spec, managedFields=[manager(fields_v1(spec))])
    result = memcached.admission(images).handlers()[MUTATE](req(new, old))
    return patched(new, result.patch), result.warnings


@pytest.mark.parametrize(("first", "second"), list(permutations(MANIFESTS, 2)))
def test_manifest_has_the_same_result_for_a_new_and_an_existing_object(first: dict[str, Any], second: dict[str, Any]):
    for identity in ({}, {"identity": "Stable"}):
        old, _ = replaced(identity | first)
        assert replaced(identity | second, old)[0] == replaced(identity | second)[0]


@pytest.mark.parametrize("spec", [*MANIFESTS, SLOTS])
def test_unchanged_manifest_has_no_effect_after_an_upgrade_either(spec: dict[str, Any]):
    stored, _ = replaced(spec, images=EARLIER)
    assert replaced(spec, stored) == (stored, [])
