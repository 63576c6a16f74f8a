"""One child and an API server in which something happens between two requests."""

import asyncio
from typing import Any

import pytest

from memcached_operator.cache.cache import Cache
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object
from memcached_operator.reconcile.apply import Applier, Outcome
from unit.builders import LABELS, memcached
from unit.fakes import Api, raising

CR = memcached()
OWNS = (DEPLOYMENTS, SERVICES)
DEPLOYMENT, SERVICE = Key(DEPLOYMENTS, "test", "cache"), Key(SERVICES, "test", "cache")
CHANGED = ApiError(409, "Conflict", "the object has been modified")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
GONE_SOON = "2030-01-01T12:00:00Z"


def child(key: Key = DEPLOYMENT, **spec: Any) -> Object:
    """A child as desired."""
    meta = {"name": key.name, "namespace": key.namespace, "labels": LABELS}
    return {"apiVersion": key.resource.api_version, "kind": key.resource.kind, "metadata": meta, "spec": spec}


class Owner:
    """A Memcached whose child exists, created by us; `applied`: its fields are handed over already."""

    def __init__(self, *, applied: bool = True) -> None:
        self.api, self.cache = Api(), Cache()
        self.applier = Applier(self.api.client, self.cache)
        self.apply(child(replicas=1))
        if applied:
            self.apply(child(replicas=2))
        self.api.calls.clear()

    def apply(self, *children: Object, failures: int = 0) -> Outcome:
        """Bring the children to what is desired."""
        return asyncio.run(self.applier.apply_all(CR, children, OWNS, failures))

    def seen(self, key: Key = DEPLOYMENT) -> None:
        """The event of the last change has come."""
        self.cache.put(key.resource, self.api.objects[key])

    def changing(self) -> None:
        """Somebody is quicker."""
        self.api.put(DEPLOYMENT, self.api.objects[DEPLOYMENT])
        raise CHANGED

    @property
    def spec(self) -> Object:
        """The child's spec as it is."""
        return self.api.objects[DEPLOYMENT]["spec"]


def reasons(outcome: Outcome) -> list[str]:
    """What hindered."""
    return [problem.reason for problem in outcome.problems]


REPLACED = {
    "before the hand-over": (False, "migration_patch", ["migration_patch"]),
    "between hand-over and apply": (False, "apply", ["migration_patch", "apply"]),
    "before the apply": (True, "apply", ["apply"]),
}


@pytest.mark.parametrize(("applied", "verb", "writes"), REPLACED.values(), ids=REPLACED.keys())
def test_a_foreign_object_put_in_the_childs_place_meanwhile_is_never_applied_to(
    applied: bool, verb: str, writes: list[str]
) -> None:
    owner = Owner(applied=applied)
    foreign: list[Object] = []
    owner.api.hooks[verb].append(lambda: foreign.append(owner.api.replace(DEPLOYMENT)))
    outcome = owner.apply(child(replicas=3))
    assert (reasons(outcome), outcome.errors) == (["Conflict"], [])
    assert outcome.requeue_after is not None
    assert owner.api.objects[DEPLOYMENT] == foreign[0]
    assert [verb for verb in owner.api.asked() if verb != "get"] == writes


def test_a_foreign_object_that_is_invalid_as_our_child_is_a_conflict_all_the_same() -> None:
    owner = Owner()

    def invalid() -> None:
        """As a Service whose cluster IP is immutable too."""
        owner.api.replace(DEPLOYMENT)
        raise ApiError(422, "Invalid", "metadata.uid: field is immutable")

    owner.api.hooks["apply"].append(invalid)
    outcome = owner.apply(child(replicas=3))
    assert (reasons(outcome), outcome.errors) == (["Conflict"], [])


def test_a_child_changed_meanwhile_is_read_again_and_applied_at_once() -> None:
    owner = Owner()
    owner.api.hooks["apply"].append(owner.changing)
    outcome = owner.apply(child(replicas=3))
    assert (outcome.problems, outcome.errors) == ([], [])
    assert owner.api.asked() == ["apply", "get", "apply"]
    assert owner.spec == {"replicas": 3}


def test_a_child_found_as_desired_after_a_conflict_is_not_applied_again() -> None:
    owner = Owner()
    applied: list[Object] = []

    def by_another() -> None:
        """The lost answer to an apply of ours, for example."""
        applied.append(owner.api.put(DEPLOYMENT, twin.api.objects[DEPLOYMENT], uid=uid))
        raise CHANGED

    uid = owner.api.objects[DEPLOYMENT]["metadata"]["uid"]
    twin = Owner()
    twin.apply(child(replicas=3))
    owner.api.hooks["apply"].append(by_another)
    outcome = owner.apply(child(replicas=3))
    assert (outcome.problems, outcome.errors) == ([], [])
    assert owner.api.asked() == ["apply", "get"]
    assert owner.api.objects[DEPLOYMENT] == applied[0]


def test_a_child_that_changes_all_the_time_is_given_up_and_tried_later() -> None:
    owner = Owner()
    owner.api.always["apply"] = owner.changing
    outcome = owner.apply(child(replicas=3))
    assert [error.code for error in outcome.errors] == [409]
    assert reasons(outcome) == ["RollingOut"]
    assert owner.api.asked().count("apply") == 3


REFUSED = {
    "the hand-over, by a conflict": (False, "migration_patch", CHANGED),
    "the hand-over, by absence": (False, "migration_patch", ApiError(404, "NotFound", "not found")),
    "the apply, by a conflict": (True, "apply", CHANGED),
    "the apply, by absence": (True, "apply", ApiError(404, "NotFound", "not found")),
}


@pytest.mark.parametrize(("applied", "verb", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_although_nothing_has_changed_is_tried_later(applied: bool, verb: str, error: ApiError) -> None:
    owner = Owner(applied=applied)
    owner.api.always[verb] = raising(error)
    outcome = owner.apply(child(replicas=3))
    assert outcome.errors == [error]
    assert owner.api.asked() == [verb, "get"]


def test_what_exists_and_cannot_be_found_is_tried_later() -> None:
    owner = Owner()
    del owner.api.objects[DEPLOYMENT]
    owner.cache.remove(DEPLOYMENT, owner.api.version)
    owner.api.always["create"] = raising(ApiError(409, "AlreadyExists", "it already exists"))
    outcome = owner.apply(child(replicas=3))
    assert [error.reason for error in outcome.errors] == ["AlreadyExists"]
    assert owner.api.asked() == ["create", "get"]


def test_a_child_gone_meanwhile_is_made_anew_at_once() -> None:
    owner = Owner()
    del owner.api.objects[DEPLOYMENT]
    outcome = owner.apply(child(replicas=3))
    assert (outcome.problems, outcome.errors) == ([], [])
    assert owner.spec == {"replicas": 3}


def test_a_child_whose_deletion_is_over_by_now_is_created_in_the_same_pass() -> None:
    owner = Owner()
    owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], deletionTimestamp=GONE_SOON)
    owner.seen()
    outcome = owner.apply(child(replicas=2))
    assert reasons(outcome) == ["WaitingForDeletion"]
    assert outcome.requeue_after is not None
    del owner.api.objects[DEPLOYMENT]
    outcome = owner.apply(child(replicas=2))
    assert (outcome.problems, outcome.errors, outcome.requeue_after) == ([], [], None)
    assert owner.spec == {"replicas": 2}


def test_what_stands_in_the_way_is_looked_at_again_although_another_child_failed() -> None:
    owner = Owner()
    owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], deletionTimestamp=GONE_SOON)
    owner.seen()
    owner.api.always["create"] = raising(BROKEN)
    outcome = owner.apply(child(replicas=2), child(SERVICE))
    assert reasons(outcome) == ["WaitingForDeletion", "RollingOut"]
    assert outcome.errors == [BROKEN]
    assert outcome.requeue_after is not None


PASSING = {
    "the first time": (0, "RollingOut"),
    "the second time": (1, "RollingOut"),
    "the third time": (2, "ApplyFailed"),
    "the tenth time": (9, "ApplyFailed"),
}


@pytest.mark.parametrize(("failures", "reason"), PASSING.values(), ids=PASSING.keys())
def test_an_error_that_may_pass_is_a_fault_when_it_comes_again_and_again(failures: int, reason: str) -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(BROKEN)
    (problem,) = owner.apply(child(replicas=3), failures=failures).problems
    assert problem.reason == reason
    assert problem.message == "Deployment cache cannot be applied: etcdserver: request timed out"


def test_what_is_refused_is_a_fault_at_once() -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(ApiError(403, "Forbidden", "exceeded quota"))
    assert reasons(owner.apply(child(replicas=3))) == ["ApplyFailed"]


def limited(obj: Object) -> Object:
    """A policy of the cluster: no more than 4 replicas."""
    spec: Object = obj.get("spec", {})
    return {**obj, "spec": {**spec, "replicas": min(spec.get("replicas", 0), 4)}}


def limited_owner() -> Owner:
    """An owner whose child was applied once, and changed by the policy."""
    owner = Owner()
    owner.api.policy = limited
    outcome = owner.apply(child(replicas=9))
    assert (outcome.problems, owner.spec) == ([], {"replicas": 4})
    owner.api.calls.clear()
    return owner


def test_what_a_policy_of_the_cluster_changes_is_not_applied_again_and_again() -> None:
    owner = limited_owner()
    for _ in range(3):
        assert owner.apply(child(replicas=9)).errors == []
        # The status of the child changes all the time.
        owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "status": {"replicas": owner.api.version}})
        owner.seen()
    assert owner.api.asked() == []


def test_what_a_policy_changed_is_applied_again_when_the_intent_changes() -> None:
    owner = limited_owner()
    owner.apply(child(replicas=8))
    assert owner.api.asked() == ["apply"]
    owner.apply(child(replicas=3))
    assert owner.spec == {"replicas": 3}


def test_what_a_policy_changed_is_applied_again_when_only_a_node_port_does() -> None:
    owner = limited_owner()
    for node_port in (30001, 30002):
        owner.apply(child(replicas=9, ports=[{"port": 80, "protocol": "TCP", "nodePort": node_port}]))
        assert owner.spec["ports"][0]["nodePort"] == node_port


def test_what_a_policy_changed_is_applied_again_when_the_childs_spec_changes() -> None:
    owner = limited_owner()
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "spec": {"replicas": 1}})
    owner.seen()
    owner.apply(child(replicas=9))
    owner.apply(child(replicas=9))
    assert (owner.api.asked(), owner.spec) == (["apply"], {"replicas": 4})


def test_what_a_policy_changed_is_applied_again_when_the_policy_is_gone_and_somebody_touched_it() -> None:
    owner = limited_owner()
    owner.api.policy = lambda obj: obj
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "spec": {"replicas": 5}})
    owner.seen()
    owner.apply(child(replicas=9))
    assert owner.spec == {"replicas": 9}


def test_a_label_that_somebody_strips_is_restored_beside_what_a_policy_changes() -> None:
    owner = limited_owner()
    live = owner.api.objects[DEPLOYMENT]
    owner.api.put(DEPLOYMENT, {**live, "metadata": {**live["metadata"], "labels": {"theirs": "kept"}}})
    owner.seen()
    for _ in range(3):
        owner.apply(child(replicas=9))
    assert owner.api.asked() == ["apply"]
    assert owner.api.objects[DEPLOYMENT]["metadata"]["labels"] == {**LABELS, "theirs": "kept"}


def test_data_outside_the_spec_is_restored_beside_what_a_policy_changes() -> None:
    owner = limited_owner()
    wanted = {**child(replicas=9), "data": {"a": "1"}}
    owner.apply(wanted)
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "data": {"a": "2"}})
    owner.seen()
    owner.apply(wanted)
    assert owner.api.objects[DEPLOYMENT]["data"] == {"a": "1"}


def test_what_a_policy_did_to_a_child_is_forgotten_when_the_child_is_deleted() -> None:
    owner = limited_owner()
    live = owner.api.objects.pop(DEPLOYMENT)
    owner.api.put(DEPLOYMENT, live, uid="another")
    owner.seen()
    owner.apply(child(replicas=9))
    assert owner.api.asked() == ["apply"]
    owner.cache.remove(DEPLOYMENT, owner.api.version + 1)
    owner.api.policy = lambda obj: {**obj, "spec": {}}
    owner.apply(child(SERVICE, a=1))
    owner.apply(child(SERVICE, a=2))
    owner.applier.forget_deleted()
    assert vars(owner.applier)["_ineffective"].keys() == {SERVICE}


def test_a_child_that_cannot_be_deleted_is_told_of_and_the_others_are_applied() -> None:
    owner = Owner()
    owner.api.always["delete"] = raising(BROKEN)
    outcome = owner.apply(child(SERVICE))
    assert (outcome.errors, reasons(outcome)) == ([BROKEN], ["RollingOut"])
    assert SERVICE in owner.api.objects
    assert owner.cache.get(DEPLOYMENT) is not None


def test_a_namespace_that_is_said_to_be_deleted_is_looked_at_again() -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(
        ApiError(403, "Forbidden", "being terminated", causes=("NamespaceTerminating",))
    )
    outcome = owner.apply(child(replicas=3))
    assert (reasons(outcome), outcome.errors, outcome.requeue_after) == (["WaitingForDeletion"], [], 10)


REFUSAL = ApiError(503, "ServiceUnavailable", "not now", retry_after=7)


def test_what_failed_is_not_tried_again_at_each_event() -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(REFUSAL)
    outcomes = [owner.apply(child(replicas=3)) for _ in range(5)]
    assert owner.api.asked() == ["apply"]
    assert [reasons(outcome) for outcome in outcomes] == [["RollingOut"]] * 5
    assert [[error.retry_after for error in outcome.errors] for outcome in outcomes] == [[7.0], *[[None]] * 4]


def test_what_failed_is_tried_again_when_its_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.reconcile.apply.COOLDOWN", 0)
    owner = Owner()
    owner.api.hooks["apply"].append(raising(BROKEN))
    owner.apply(child(replicas=3))
    assert owner.apply(child(replicas=3)).errors == []
    assert owner.spec == {"replicas": 3}


def test_another_intent_does_not_wait_for_the_one_that_failed() -> None:
    owner = Owner()
    owner.api.hooks["apply"].append(raising(REFUSAL))
    owner.apply(child(replicas=3))
    assert owner.apply(child(replicas=4)).errors == []
    assert owner.spec == {"replicas": 4}


@pytest.mark.parametrize("code", [404, 409])
def test_a_child_is_deleted_when_it_is_not_there_any_more(code: int) -> None:
    owner = Owner()

    def gone() -> None:
        """The lost answer to a deletion of ours, for example."""
        del owner.api.objects[DEPLOYMENT]
        raise ApiError(code, "", "not found")

    owner.api.hooks["delete"].append(gone)
    assert owner.apply().errors == []
    assert owner.cache.get(DEPLOYMENT) is None


@pytest.mark.parametrize("code", [404, 409])
def test_a_child_that_is_there_is_not_deleted_whatever_is_answered(code: int) -> None:
    owner = Owner()
    owner.api.always["delete"] = raising(ApiError(code, "", "not found"))
    assert [error.code for error in owner.apply().errors] == [code]
    assert owner.cache.get(DEPLOYMENT) is not None


def test_a_child_that_could_not_be_deleted_is_not_tried_again_at_each_event() -> None:
    owner = Owner()
    owner.api.always["delete"] = raising(REFUSAL)
    outcomes = [owner.apply() for _ in range(3)]
    assert owner.api.asked() == ["delete"]
    assert [len(outcome.errors) for outcome in outcomes] == [1, 1, 1]
    owner.api.always.clear()
    assert owner.apply(child(replicas=2)).errors == []
