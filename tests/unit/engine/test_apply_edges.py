"""Changes that need more than an apply: of Services, whose node ports the API server allocates, and of others' maps."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from memcached_operator.engine.writes import apply as module
from memcached_operator.engine.writes.apply import Applier
from memcached_operator.engine.writes.reverts import Reverts
from memcached_operator.kube.client import JSON_PATCH
from memcached_operator.kube.resource import Key, Object
from memcached_operator.world.live import StaleError
from unit.engine.test_apply import DEPLOYMENT, KIND, SERVICE, Owner, child, reasons, snapshot_of
from unit.fakes import Api


@pytest.mark.parametrize(
    ("key", "changed", "verbs"),
    [
        (SERVICE, True, ["apply", "get", "apply"]),
        (SERVICE, False, ["apply"]),
        (DEPLOYMENT, True, ["apply"]),  # its status changes all the time
    ],
)
def test_only_the_known_version_of_a_service_is_applied(key: Key, changed: bool, verbs: list[str]) -> None:
    """The API server may still have an older one in its cache, and must notice before it allocates node ports."""
    owner = Owner()
    owner.apply(child(), child(SERVICE, type="NodePort"))
    owner.apply(child(), child(SERVICE, type="ClusterIP"))
    owner.api.calls.clear()
    if changed:
        owner.api.put(key, owner.api.objects[key])
    spec: Object = {"minReadySeconds": 4} if key == DEPLOYMENT else {"type": "NodePort"}
    others = child(SERVICE, type="ClusterIP") if key == DEPLOYMENT else child()
    outcome = owner.apply(child(key, **spec), others)
    assert (outcome.problems, outcome.errors) == ([], [])
    assert owner.api.verbs() == verbs
    assert owner.api.objects[key]["spec"] == spec


@pytest.mark.parametrize(("kind", "is_rival"), [("Memcached", True), ("ConfigMap", False)])
def test_other_owner_is_a_rival_if_this_operator_reconciles_it(kind: str, is_rival: bool) -> None:
    owner = Owner()
    owner.applier = Applier(owner.api.client, owner.cache, {(KIND.resource.group, "Memcached")})
    version = KIND.resource.api_version if is_rival else "v1"
    theirs = {"apiVersion": version, "kind": kind, "name": "other", "uid": "other", "controller": True}
    owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], ownerReferences=[theirs])
    owner.observe()
    (problem,) = owner.apply(child(minReadySeconds=2)).problems
    assert ("for only one of the two" in problem.message) is is_rival


def test_field_that_another_client_changes_before_the_child_is_scaled_is_restored() -> None:
    """It must not be mistaken for the effect of a policy, for which nothing is written again."""
    owner = Owner()
    owner.apply(child(minReadySeconds=1, replicas=1))
    live = owner.api.objects[DEPLOYMENT]
    changed = {**live, "spec": {**live["spec"], "minReadySeconds": 9}}

    def change() -> None:
        owner.api.put(DEPLOYMENT, changed)

    owner.api.hooks["scale"].append(change)
    owner.apply(child(minReadySeconds=1, replicas=2))
    assert owner.spec == {"minReadySeconds": 1, "replicas": 2}


def restore_copy(owner: Owner, references: list[Object]) -> None:
    """Let another client have created the child, with these owner references."""
    managed: list[Object] = [
        {"manager": name, "operation": "Update", "fieldsV1": {}} for name in ("memcached-operator", "velero")
    ]
    live = owner.api.objects[DEPLOYMENT]
    owner.api.put(DEPLOYMENT, live, ownerReferences=references, managedFields=managed)
    owner.observe()


REMOVED: Object = {"op": "remove", "path": "/metadata/managedFields/1"}


@pytest.mark.parametrize("steps", [[REMOVED], []], ids=["fields of others", "none"])
def test_fields_of_an_orphan_are_taken_over_before_the_apply(
    steps: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, uid = Owner(), ""
    patches: list[list[Object]] = []
    apply, patch = Api.apply, Api.patch

    async def dry_run(self: Api, key: Key, obj: Object, *, dry_run: bool = False) -> Object:
        return {"applied": obj["spec"]} if dry_run else await apply(self, key, obj)

    async def recorded(self: Api, key: Key, body: list[Object], content_type: str = "") -> Object:
        assert content_type == JSON_PATCH
        patches.append(body)
        return await patch(self, key, body, content_type)

    def takeover(live: Object, applied: Object) -> list[Object]:
        assert "fieldsV1" in live["metadata"]["managedFields"][0], "the cache does not keep them"
        assert applied == {"applied": {"minReadySeconds": 3}}
        return steps

    monkeypatch.setattr(Api, "apply", dry_run)
    monkeypatch.setattr(Api, "patch", recorded)
    monkeypatch.setattr(module, "takeover", takeover)
    restore_copy(owner, [])
    uid = owner.api.objects[DEPLOYMENT]["metadata"]["uid"]
    assert owner.apply(child(minReadySeconds=3)).errors == []
    test: Object = {"op": "test", "path": "/metadata/uid", "value": uid}
    assert [body for body in patches if body[0] == test and body[1:] == steps] == ([[test, *steps]] if steps else [])
    assert owner.spec == {"minReadySeconds": 3}


def test_fields_of_a_child_with_a_controller_are_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner()
    monkeypatch.delattr(module, "takeover")
    restore_copy(owner, owner.api.objects[DEPLOYMENT]["metadata"]["ownerReferences"])
    assert owner.apply(child(minReadySeconds=3)).errors == []


def test_copies_from_a_backup_are_reported_and_not_modified() -> None:
    owner = Owner()
    live = owner.api.objects[DEPLOYMENT]
    managed: list[Object] = [{"manager": "velero", "operation": "Update"}]
    owner.api.put(DEPLOYMENT, {**live, "spec": {"minReadySeconds": 9}}, ownerReferences=[], managedFields=managed)
    owner.observe()
    result = owner.apply(child(minReadySeconds=2))
    assert (reasons(result), owner.spec) == (["Conflict"], {"minReadySeconds": 9})
    assert "as from a backup" in result.problems[0].message


@pytest.mark.parametrize("spec", [{"minReadySeconds": 3, "replicas": 1}, {"minReadySeconds": 1, "replicas": 2}])
def test_plan_that_has_not_seen_a_child_is_not_applied_to_it(spec: Object) -> None:
    owner = Owner()
    owner.apply(child(minReadySeconds=1, replicas=1))
    owner.api.calls.clear()
    unseen = replace(snapshot_of(owner.cache), children={})
    with pytest.raises(StaleError):
        asyncio.run(owner.applier.apply_all(KIND, unseen, [child(**spec)]))
    assert owner.api.verbs() == []


def test_plan_that_has_not_seen_an_orphan_is_not_applied_to_it() -> None:
    owner = Owner()
    restore_copy(owner, [])
    owner.cache.remove(DEPLOYMENT, owner.api.version)
    with pytest.raises(StaleError):
        owner.apply(child(minReadySeconds=3))
    assert owner.api.verbs() == ["create", "get"]


def test_deletion_is_a_write() -> None:
    assert Owner().apply().wrote


def test_child_that_disappears_before_its_change_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, identify = Owner(), Reverts.identify

    async def deleted(self: Reverts, *arguments: Any) -> Any:
        """Handle the event of a deletion during the read of the field managers."""
        if owner.api.objects.pop(DEPLOYMENT, None):
            owner.cache.remove(DEPLOYMENT, owner.api.version + 1)
        return await identify(self, *arguments)

    monkeypatch.setattr(Reverts, "identify", deleted)
    assert owner.apply(child(minReadySeconds=3)).errors == []
    assert owner.spec == {"minReadySeconds": 3}
