import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from integration.control_plane import ControlPlane, client_of
from memcached_operator.cache.cache import Cache, version_of
from memcached_operator.kind import Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, SECRETS, SERVICES, Key, Object, Resource, key_of
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.reconcile.apply import Applier, Outcome

OWNS = (DEPLOYMENTS, SERVICES)
IMAGE = "example.com/memcached:1"
CREATED = {"create deployments": 1, "create services": 1}


@dataclass
class Owner:
    """A Memcached in the API server, and what the operator knows of its children."""

    plane: ControlPlane
    cr: Object
    cache: Cache = field(default_factory=Cache)
    outcome: Outcome = field(default_factory=Outcome)

    def key(self, resource: Resource = DEPLOYMENTS) -> Key:
        """The key of a child."""
        return Key(resource, self.cr["metadata"]["namespace"], self.cr["metadata"]["name"])

    def live(self, resource: Resource = DEPLOYMENTS) -> Object:
        """A child as it is."""
        return self.plane.must_get(self.key(resource))

    def desired(self) -> list[Object]:
        """The children as they should be."""
        return memcached(IMAGE).desired(self.cr, Snapshot())

    def spec(self, **spec: Any) -> None:
        """Change the object's spec."""
        self.cr = self.plane.change(key_of(MEMCACHEDS, self.cr), {"spec": spec})

    def apply(self, children: Iterable[Object] | None = None) -> dict[str, int]:
        """Bring the children to what is desired; what was written."""
        audit = self.plane.audit()
        wanted = self.desired() if children is None else children

        async def run() -> Outcome:
            async with client_of(self.plane.connection) as client:
                return await Applier(client, self.cache).apply_all(self.cr, wanted, OWNS)

        self.outcome = asyncio.run(run())
        return dict(audit.writes(self.cr["metadata"]["namespace"]))

    def read_again(self, resources: Iterable[Resource] = OWNS) -> None:
        """Know what is there, as after a restart; the watches see only what carries our label."""
        self.cache = Cache()

        async def run() -> None:
            async with client_of(self.plane.connection) as client:
                for resource in resources:
                    namespace = self.cr["metadata"]["namespace"]
                    found = await client.list(resource, namespace, "app.kubernetes.io/managed-by=memcached-operator")
                    self.cache.replace(resource, namespace, found[0], int(found[1]))

        asyncio.run(run())

    @property
    def problems(self) -> list[tuple[str, str]]:
        """What hindered."""
        return [(problem.reason, problem.message) for problem in self.outcome.problems]

    @property
    def messages(self) -> str:
        """All that was said."""
        return "; ".join(message for _, message in self.problems)


@pytest.fixture
def owner(plane: ControlPlane, namespace: str) -> Owner:
    """A Memcached without children."""
    obj = {
        "apiVersion": MEMCACHEDS.api_version,
        "kind": MEMCACHEDS.kind,
        "metadata": {"name": "cache", "namespace": namespace},
        "spec": {"size": 2, "image": IMAGE},
    }
    return Owner(plane, plane.create(MEMCACHEDS, obj))


def container(owner: Owner) -> Object:
    """The container as the API server has it."""
    return owner.live()["spec"]["template"]["spec"]["containers"][0]


def managers(live: Object) -> set[tuple[str, str]]:
    """Who owns fields of an object's spec, and how they took them."""
    entries = live["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"]) for entry in entries if not entry.get("subresource")}


def test_children_are_created_once(owner: Owner) -> None:
    assert owner.apply() == CREATED
    assert owner.apply() == {}


def test_a_restart_writes_nothing(owner: Owner) -> None:
    owner.apply()
    owner.read_again()
    assert owner.apply() == {}


def test_children_belong_to_their_object(owner: Owner) -> None:
    owner.apply()
    (reference,) = owner.live()["metadata"]["ownerReferences"]
    assert (reference["uid"], reference["controller"]) == (owner.cr["metadata"]["uid"], True)


def test_the_first_change_hands_the_fields_over_and_later_ones_need_one_write(owner: Owner) -> None:
    owner.apply()
    owner.spec(containerPort=12345)
    assert owner.apply()["patch services"] == 2
    owner.spec(containerPort=12346)
    assert owner.apply()["patch services"] == 1
    for resource in OWNS:
        assert managers(owner.live(resource)) == {("memcached-operator", "Apply")}
    assert owner.live(SERVICES)["spec"]["ports"][0]["port"] == 12346


def test_a_change_touches_only_the_children_it_concerns(owner: Owner) -> None:
    owner.apply()
    owner.spec(size=3)
    assert owner.apply().keys() == {"patch deployments"}
    assert owner.live()["spec"]["replicas"] == 3


GIVEN = {
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"memory": "512Mi"}},
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "mine"}],
}


def optional(owner: Owner) -> tuple[Any, ...]:
    """What the optional fields of the spec become."""
    template = owner.live()["spec"]["template"]["spec"]
    (container,) = template["containers"]
    return container["resources"], container["imagePullPolicy"], template.get("imagePullSecrets")


def test_every_field_set_and_taken_out_of_the_spec_again_is_followed(owner: Owner) -> None:
    owner.apply()
    before = optional(owner)
    owner.spec(**GIVEN)
    owner.apply()
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "512Mi"}}
    assert optional(owner) == (resources, "Always", [{"name": "mine"}])
    owner.spec(**dict.fromkeys(GIVEN))
    owner.apply()
    assert optional(owner) == before
    assert owner.apply() == {}


SPELLINGS: list[dict[str, Any]] = [
    {"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}},
    {"resources": {"limits": {"cpu": 1, "memory": "0.5Gi"}}},
    {"resources": {"limits": {"memory": "268435456"}, "requests": {"cpu": "1e-1"}}},
    {"cache": {"memory": "100M"}},
]


@pytest.mark.parametrize("spec", SPELLINGS, ids=str)
def test_no_spelling_of_a_quantity_costs_a_write_in_steady_state(owner: Owner, spec: dict[str, Any]) -> None:
    owner.spec(**spec)
    owner.apply()
    owner.read_again()
    assert owner.apply() == {}


def test_a_value_changed_by_hand_is_put_back(owner: Owner) -> None:
    owner.apply()
    owner.plane.change(owner.key(), {"spec": {"replicas": 7}})
    owner.read_again()
    assert owner.apply().keys() == {"patch deployments"}
    assert owner.live()["spec"]["replicas"] == 2


def test_what_others_add_beside_our_fields_is_left_to_them(owner: Owner) -> None:
    owner.apply()
    owner.plane.change(owner.key(), {"metadata": {"annotations": {"theirs": "kept"}}, "spec": {"minReadySeconds": 3}})
    owner.read_again()
    assert owner.apply() == {}


def test_a_handover_by_an_outdated_place_is_tried_again(owner: Owner) -> None:
    owner.apply()
    known = owner.cache.get(owner.key(SERVICES))
    assert known is not None
    # As last seen, an entry stood before ours that has gone since.
    known["metadata"]["managedFields"].insert(0, {"manager": "kubectl", "operation": "Update"})
    owner.cache.remove(owner.key(SERVICES), version_of(known))
    known["metadata"]["resourceVersion"] = "1"
    owner.cache.clear_tombstone(owner.key(SERVICES))
    owner.cache.put(SERVICES, known)
    owner.spec(containerPort=12345)
    assert owner.apply()["patch services"] == 3
    assert managers(owner.live(SERVICES)) == {("memcached-operator", "Apply")}


def foreign(owner: Owner, resource: Resource = SERVICES, **meta: Any) -> Object:
    """Somebody else's object under our name."""
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**{name: owner.cr["metadata"][name] for name in ("name", "namespace")}, **meta},
        "spec": {"ports": [{"port": 80}]},
    }
    return owner.plane.create(resource, obj)


LABELLED: dict[str, Any] = {"labels": {"app.kubernetes.io/managed-by": "memcached-operator"}}


@pytest.mark.parametrize("meta", [{}, LABELLED], ids=["unlabelled", "labelled as ours"])
def test_a_foreign_object_is_left_as_it_is_and_does_not_hold_up_the_others(owner: Owner, meta: dict[str, Any]) -> None:
    before = foreign(owner, **meta)
    owner.read_again()
    assert owner.apply()["create deployments"] == 1
    assert owner.live(SERVICES) == before
    assert [reason for reason, _ in owner.problems] == ["Conflict"]
    assert owner.messages == (
        "Service cache exists and is not managed by this operator. The object is not modified. "
        "Delete or rename it, or use another name for this Memcached"
    )
    assert owner.outcome.requeue_after is not None


def test_when_the_foreign_object_is_gone_ours_is_made(owner: Owner) -> None:
    foreign(owner)
    owner.apply()
    owner.plane.delete(owner.key(SERVICES))
    assert owner.apply() == {"create services": 1}
    assert owner.problems == []


def test_a_child_of_another_controller_is_left_as_it_is(owner: Owner) -> None:
    meta = {"name": "other", "namespace": owner.cr["metadata"]["namespace"]}
    other = owner.plane.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    uid = other["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "other", "uid": uid, "controller": True}
    before = foreign(owner, ownerReferences=[reference], **LABELLED)
    owner.read_again()
    owner.apply()
    assert owner.live(SERVICES) == before
    assert "Service cache belongs to Secret other" in owner.messages


def test_a_child_orphaned_by_hand_is_taken_back(owner: Owner) -> None:
    owner.apply()
    owner.plane.change(owner.key(), {"metadata": {"ownerReferences": None}})
    owner.read_again()
    assert owner.apply().keys() == {"patch deployments"}
    assert owner.live()["metadata"]["ownerReferences"][0]["uid"] == owner.cr["metadata"]["uid"]


def test_a_child_that_is_being_deleted_is_waited_for(owner: Owner) -> None:
    owner.apply()
    owner.plane.change(owner.key(), {"metadata": {"finalizers": ["example.com/wait"]}})
    owner.plane.delete(owner.key())
    owner.read_again()
    assert owner.apply() == {}
    assert owner.problems == [("WaitingForDeletion", "Deployment cache is being deleted")]
    assert owner.outcome.requeue_after is not None
    owner.plane.change(owner.key(), {"metadata": {"finalizers": None}})
    assert owner.apply() == {"create deployments": 1}
    assert owner.problems == []


def test_a_child_of_the_earlier_object_of_the_name_is_waited_for(owner: Owner) -> None:
    owner.apply()
    owner.plane.change(owner.key(), {"metadata": {"finalizers": ["example.com/wait"]}})
    earlier = owner.cr
    owner.plane.delete(key_of(MEMCACHEDS, earlier))
    meta = {name: earlier["metadata"][name] for name in ("name", "namespace")}
    owner.cr = owner.plane.create(MEMCACHEDS, {**earlier, "metadata": meta})
    owner.read_again()
    owner.apply()
    assert owner.outcome.errors == []
    assert {reason for reason, _ in owner.problems} == {"WaitingForDeletion"}
    assert "Deployment cache of an earlier Memcached with the same name is still being deleted" in owner.messages
    owner.plane.change(owner.key(), {"metadata": {"finalizers": None}})


def test_a_child_deleted_while_nobody_watched_is_made_anew_at_once(owner: Owner) -> None:
    owner.apply()
    owner.plane.delete(owner.key(SERVICES))
    owner.spec(containerPort=12345)
    assert owner.apply()["create services"] == 1
    assert (owner.outcome.errors, owner.problems) == ([], [])
    assert owner.live(SERVICES)["spec"]["ports"][0]["port"] == 12345
    assert owner.apply() == {}


def test_a_child_no_longer_desired_is_deleted(owner: Owner) -> None:
    owner.apply()
    deployment_only = [child for child in owner.desired() if child["kind"] == "Deployment"]
    assert owner.apply(deployment_only) == {"delete services": 1}
    assert owner.plane.get(owner.key(SERVICES)) is None
    assert owner.plane.get(owner.key()) is not None


def test_a_child_that_changed_since_it_was_seen_is_not_deleted_blindly(owner: Owner) -> None:
    owner.apply()
    owner.plane.change(owner.key(SERVICES), {"metadata": {"annotations": {"changed": "meanwhile"}}})
    owner.apply([child for child in owner.desired() if child["kind"] == "Deployment"])
    assert [error.code for error in owner.outcome.errors] == [409]
    assert owner.plane.get(owner.key(SERVICES)) is not None


def test_what_took_the_place_of_a_child_no_longer_desired_is_not_deleted(owner: Owner) -> None:
    owner.apply()
    owner.plane.delete(owner.key(SERVICES))
    meta = {"name": "cache", "namespace": owner.cr["metadata"]["namespace"]}
    owner.plane.create(SERVICES, {"metadata": meta, "spec": {"ports": [{"port": 80}]}})
    before = owner.live(SERVICES)
    owner.apply([child for child in owner.desired() if child["kind"] == "Deployment"])
    assert [error.code for error in owner.outcome.errors] == [409]
    assert owner.live(SERVICES) == before


def test_what_the_api_server_refuses_is_told_in_its_words_and_does_not_hold_up_the_others(owner: Owner) -> None:
    bad, good = owner.desired()
    bad["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] = 70000
    assert owner.apply([bad, good])["create services"] == 1
    ((reason, message),) = owner.problems
    assert reason == "ApplyFailed"
    assert message.startswith('Deployment cache cannot be applied: Deployment.apps "cache" is invalid: ')
    assert "must be between 1 and 65535" in message
    assert [error.permanent for error in owner.outcome.errors] == [True]
