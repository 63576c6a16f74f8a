"""One child, and an API server that changes between two requests."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_operator.engine.reconciler import gather
from memcached_operator.engine.writes.apply import Applier
from memcached_operator.engine.writes.result import Result
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object
from memcached_operator.memcached.controller import memcached as memcached_kind
from memcached_operator.world.live import Rechecks, StaleError
from memcached_operator.world.snapshot import Snapshot
from memcached_operator.world.store import Store
from support.stores import whole_store
from unit.builders import LABELS, memcached
from unit.fakes import Api, raising

CR = memcached()
KIND = memcached_kind(Images("example.com/memcached:1"))
DEPLOYMENT, SERVICE = Key(DEPLOYMENTS, "test", "cache"), Key(SERVICES, "test", "cache")
CHANGED = ApiError(409, "Conflict", "the object has been modified")
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")
DELETED_AT = "2030-01-01T12:00:00Z"


def child(key: Key = DEPLOYMENT, **spec: Any) -> Object:
    """A desired child."""
    meta = {"name": key.name, "namespace": key.namespace, "labels": LABELS}
    return {"apiVersion": key.resource.api_version, "kind": key.resource.kind, "metadata": meta, "spec": spec}


def snapshot_of(cache: Store) -> Snapshot:
    """The snapshot of the Memcached."""
    return gather(cache, KIND, CR, {})


class Owner:
    """A Memcached whose child exists, created by us. `applied`: the ownership of its fields is migrated already."""

    def __init__(self, *, applied: bool = True) -> None:
        self.api, self.cache = Api(), whole_store()
        self.applier = Applier(self.api.client, self.cache)
        self.apply(child(minReadySeconds=1))
        if applied:
            self.apply(child(minReadySeconds=2))
        self.api.calls.clear()

    def apply(self, *children: Object, failures: int = 0) -> Result:
        """Apply these desired children; all others are deleted."""
        return asyncio.run(self.applier.apply_all(KIND, snapshot_of(self.cache), children, failures))

    def would_create(self, desired: Object) -> bool:
        """Whether a reconcile may create this child."""
        return self.applier.would_create(KIND, snapshot_of(self.cache), [desired])

    def wait(self, seconds: float) -> None:
        """Let time pass for the reads of an object whose deletion is awaited."""
        rechecks: Rechecks = vars(self.applier)["_rechecks"]
        now = rechecks.clock() + seconds
        rechecks.clock = lambda: now

    def observe(self, key: Key = DEPLOYMENT) -> None:
        """Handle the event of the last change: store the live object in the cache."""
        self.cache.put(key.resource, self.api.objects[key])

    def change_and_reject(self) -> None:
        """Change the child as another client, then reject the request with a conflict."""
        self.api.put(DEPLOYMENT, self.api.objects[DEPLOYMENT])
        raise CHANGED

    @property
    def spec(self) -> Object:
        """The child's spec in the API server."""
        return self.api.objects[DEPLOYMENT]["spec"]


def reasons(outcome: Result) -> list[str]:
    """The reasons of all problems."""
    return [problem.reason for problem in outcome.problems]


def test_child_that_keeps_changing_is_retried_later() -> None:
    owner = Owner()
    owner.api.always["apply"] = owner.change_and_reject
    outcome = owner.apply(child(minReadySeconds=3))
    assert [error.code for error in outcome.errors] == [409]
    assert reasons(outcome) == ["RollingOut"]
    assert owner.api.verbs().count("apply") == 3


REJECTED = {
    "migration: conflict": (False, "preparation_patch", CHANGED),
    "migration: not found": (False, "preparation_patch", ApiError(404, "NotFound", "not found")),
    "apply: conflict": (True, "apply", CHANGED),
    "apply: not found": (True, "apply", ApiError(404, "NotFound", "not found")),
}


@pytest.mark.parametrize(("applied", "verb", "error"), REJECTED.values(), ids=REJECTED.keys())
def test_rejected_write_of_an_unchanged_child_is_retried_later(applied: bool, verb: str, error: ApiError) -> None:
    owner = Owner(applied=applied)
    owner.api.always[verb] = raising(error)
    outcome = owner.apply(child(minReadySeconds=3))
    assert outcome.errors == [error]
    assert owner.api.verbs() == [verb, "get"]


def test_child_that_exists_but_cannot_be_read_is_retried_later() -> None:
    owner = Owner()
    del owner.api.objects[DEPLOYMENT]
    owner.cache.remove(DEPLOYMENT, owner.api.version)
    owner.api.always["create"] = raising(ApiError(409, "AlreadyExists", "it already exists"))
    outcome = owner.apply(child(minReadySeconds=3))
    assert [error.reason for error in outcome.errors] == ["AlreadyExists"]
    assert owner.api.verbs() == ["create", "get"]


def test_blocked_child_is_requeued_although_another_child_failed() -> None:
    owner = Owner()
    owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], deletionTimestamp=DELETED_AT)
    owner.observe()
    owner.api.always["create"] = raising(BROKEN)
    outcome = owner.apply(child(minReadySeconds=2), child(SERVICE))
    assert reasons(outcome) == ["WaitingForDeletion", "RollingOut"]
    assert outcome.errors == [BROKEN]
    assert outcome.requeue_after is not None


def test_policy_for_the_pod_template_has_the_remedy_of_the_kind() -> None:
    owner = Owner()
    cause = "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: spec.template.metadata.labels lack label a"
    owner.api.always["apply"] = raising(ApiError(422, "Invalid", f"{cause}, which is required"))
    (problem,) = owner.apply(child(minReadySeconds=3)).problems
    assert ". Add what it requires to spec.podTemplate.metadata, or change the policy. Changing" in problem.message
    assert problem.message.endswith(" replaces the pods, and their items are lost")


TRANSIENT = {
    "1st failure": (0, "RollingOut"),
    "2nd failure": (1, "RollingOut"),
    "3rd failure": (2, "ApplyFailed"),
    "10th failure": (9, "ApplyFailed"),
}


@pytest.mark.parametrize(("failures", "reason"), TRANSIENT.values(), ids=TRANSIENT.keys())
def test_transient_error_is_reported_as_degraded_from_the_third_failure_on(failures: int, reason: str) -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(BROKEN)
    (problem,) = owner.apply(child(minReadySeconds=3), failures=failures).problems
    assert problem.reason == reason
    assert problem.message == "Deployment cache cannot be applied: etcdserver: request timed out"


def test_permanent_error_is_reported_as_degraded_immediately() -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(ApiError(403, "Forbidden", "exceeded quota"))
    assert reasons(owner.apply(child(minReadySeconds=3))) == ["ApplyFailed"]


def limit_delay(obj: Object) -> Object:
    """Modify an object as a cluster policy does: at most 4 seconds."""
    spec: Object = obj.get("spec", {})
    return {**obj, "spec": {**spec, "minReadySeconds": min(spec.get("minReadySeconds", 0), 4)}}


def limited_owner() -> Owner:
    """An owner whose child was applied once and modified by the policy."""
    owner = Owner()
    owner.api.policy = limit_delay
    outcome = owner.apply(child(minReadySeconds=9))
    assert (outcome.problems, owner.spec) == ([], {"minReadySeconds": 4})
    owner.api.calls.clear()
    return owner


def test_child_that_a_policy_modifies_is_not_applied_repeatedly() -> None:
    owner = limited_owner()
    for _ in range(3):
        assert owner.apply(child(minReadySeconds=9)).errors == []
        # The status of the child keeps changing.
        owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "status": {"replicas": owner.api.version}})
        owner.observe()
    assert owner.api.verbs() == []


def test_child_that_a_policy_modified_is_applied_when_the_intent_changes() -> None:
    owner = limited_owner()
    assert owner.apply(child(minReadySeconds=8)).wrote
    assert owner.api.verbs() == ["apply"]
    owner.apply(child(minReadySeconds=3))
    assert owner.spec == {"minReadySeconds": 3}
    assert not vars(owner.applier)["_ineffective"], "it had an effect"


def test_child_that_a_policy_modified_is_applied_when_only_a_node_port_changes() -> None:
    owner = limited_owner()
    for node_port in (30001, 30002):
        owner.apply(child(minReadySeconds=9, ports=[{"port": 80, "protocol": "TCP", "nodePort": node_port}]))
        assert owner.spec["ports"][0]["nodePort"] == node_port


def test_child_that_a_policy_modified_is_applied_when_its_spec_changes() -> None:
    owner = limited_owner()
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "spec": {"minReadySeconds": 1}})
    owner.observe()
    owner.apply(child(minReadySeconds=9))
    owner.apply(child(minReadySeconds=9))
    assert (owner.api.verbs(), owner.spec) == (["apply"], {"minReadySeconds": 4})


def test_child_that_a_policy_modified_is_applied_when_it_changes_after_the_policy_was_removed() -> None:
    owner = limited_owner()
    owner.api.policy = lambda obj: obj
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "spec": {"minReadySeconds": 5}})
    owner.observe()
    owner.apply(child(minReadySeconds=9))
    assert owner.spec == {"minReadySeconds": 9}


def test_removed_label_of_a_child_that_a_policy_modifies_is_restored() -> None:
    owner = limited_owner()
    live = owner.api.objects[DEPLOYMENT]
    owner.api.put(DEPLOYMENT, {**live, "metadata": {**live["metadata"], "labels": {"other": "kept"}}})
    owner.observe()
    for _ in range(3):
        owner.apply(child(minReadySeconds=9))
    assert owner.api.verbs() == ["apply"]
    assert owner.api.objects[DEPLOYMENT]["metadata"]["labels"] == {**LABELS, "other": "kept"}


def test_changed_data_of_a_child_that_a_policy_modifies_is_restored() -> None:
    owner = limited_owner()
    wanted = {**child(minReadySeconds=9), "data": {"a": "1"}}
    owner.apply(wanted)
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "data": {"a": "2"}})
    owner.observe()
    owner.apply(wanted)
    assert owner.api.objects[DEPLOYMENT]["data"] == {"a": "1"}


def test_records_of_ineffective_writes_are_removed_with_the_child() -> None:
    owner = limited_owner()
    live = owner.api.objects.pop(DEPLOYMENT)
    owner.api.put(DEPLOYMENT, live, uid="another")
    owner.observe()
    owner.apply(child(minReadySeconds=9))
    assert owner.api.verbs() == ["apply"]
    owner.cache.remove(DEPLOYMENT, owner.api.version + 1)
    owner.api.policy = lambda obj: {**obj, "spec": {}}
    owner.apply(child(SERVICE, a=1))
    owner.apply(child(SERVICE, a=2))
    owner.applier.forget_deleted()
    assert vars(owner.applier)["_ineffective"].keys() == {SERVICE}


def test_terminating_namespace_is_checked_again() -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(
        ApiError(403, "Forbidden", "being terminated", causes=("NamespaceTerminating",))
    )
    outcome = owner.apply(child(minReadySeconds=3))
    assert (reasons(outcome), outcome.errors, outcome.requeue_after) == (["WaitingForDeletion"], [], 10)
    assert outcome.terminating


UNAVAILABLE = ApiError(503, "ServiceUnavailable", "not now", retry_after=7)


def test_failed_write_is_not_retried_at_each_event() -> None:
    owner = Owner()
    owner.api.always["apply"] = raising(UNAVAILABLE)
    outcomes = [owner.apply(child(minReadySeconds=3)) for _ in range(5)]
    assert owner.api.verbs() == ["apply"]
    assert [reasons(outcome) for outcome in outcomes] == [["RollingOut"]] * 5
    assert [[error.retry_after for error in outcome.errors] for outcome in outcomes] == [[7.0], *[[None]] * 4]


def test_new_intent_does_not_wait_for_the_cooldown_of_a_failed_one() -> None:
    owner = Owner()
    owner.api.hooks["apply"].append(raising(UNAVAILABLE))
    owner.apply(child(minReadySeconds=3))
    assert owner.apply(child(minReadySeconds=4)).errors == []
    assert owner.spec == {"minReadySeconds": 4}


@pytest.mark.parametrize("code", [404, 409])
def test_deletion_succeeds_if_the_child_no_longer_exists(code: int) -> None:
    owner = Owner()

    def delete_and_reject() -> None:
        """For example: our deletion succeeded, but its response was lost."""
        del owner.api.objects[DEPLOYMENT]
        raise ApiError(code, "", "not found")

    owner.api.hooks["delete"].append(delete_and_reject)
    assert owner.apply().errors == []
    assert owner.cache.get(DEPLOYMENT) is None


@pytest.mark.parametrize("code", [404, 409])
def test_deletion_fails_if_the_child_still_exists(code: int) -> None:
    owner = Owner()
    owner.api.always["delete"] = raising(ApiError(code, "", "not found"))
    assert [error.code for error in owner.apply().errors] == [code]
    assert owner.cache.get(DEPLOYMENT) is not None


def test_failed_deletion_is_not_retried_at_each_event() -> None:
    owner = Owner()
    owner.api.always["delete"] = raising(UNAVAILABLE)
    outcomes = [owner.apply() for _ in range(3)]
    assert owner.api.verbs() == ["delete"]
    assert [len(outcome.errors) for outcome in outcomes] == [1, 1, 1]
    owner.api.always.clear()
    assert owner.apply(child(minReadySeconds=2)).errors == []


def test_new_number_of_pods_does_not_wait_for_the_cooldown_of_a_failed_one() -> None:
    owner = Owner()
    owner.apply(child(minReadySeconds=1, replicas=1))
    owner.api.hooks["scale"].append(raising(UNAVAILABLE))
    assert owner.apply(child(minReadySeconds=1, replicas=2)).errors == [UNAVAILABLE]
    assert owner.apply(child(minReadySeconds=1, replicas=2)).errors != []
    assert owner.apply(child(minReadySeconds=1, replicas=3)).errors == []
    assert owner.spec["replicas"] == 3


def test_number_of_pods_that_a_policy_limits_is_not_patched_repeatedly() -> None:
    owner = Owner()
    owner.apply(child(minReadySeconds=1, replicas=1))
    owner.api.policy = lambda obj: {**obj, "spec": {**obj["spec"], "replicas": 2}}
    owner.api.calls.clear()
    for _ in range(3):
        assert owner.apply(child(minReadySeconds=1, replicas=9)).errors == []
    assert (owner.api.verbs(), owner.spec["replicas"]) == (["scale"], 2)


@pytest.mark.parametrize("code", [404, 405])
def test_missing_optional_api_is_no_problem(code: int) -> None:
    owner = Owner()
    owner.api.always["create"] = raising(ApiError(code, "", "page not found"))
    optional = replace(KIND, optional=(SERVICES,))
    children = [child(minReadySeconds=2), child(SERVICE)]
    result = asyncio.run(owner.applier.apply_all(optional, snapshot_of(owner.cache), children))
    assert (result.problems, result.errors, result.requeue_after) == ([], [], 10)
    assert [error.code for error in owner.apply(child(minReadySeconds=2), child(SERVICE)).errors] == [code]


def test_plan_without_an_existing_child_is_not_applied_to_it() -> None:
    """For example: its label was removed, and the watch reported a deletion, so the plan lacks its annotations."""
    owner = Owner()
    owner.cache.remove(DEPLOYMENT, owner.api.version)
    stale = owner.applier.apply_all(KIND, snapshot_of(owner.cache), [child(minReadySeconds=3)])
    owner.api.always["create"] = raising(ApiError(409, "AlreadyExists", "it already exists"))
    with pytest.raises(StaleError):
        asyncio.run(stale)
    assert owner.api.verbs() == ["create", "get"]
    assert owner.apply(child(minReadySeconds=3)).errors == []
    assert owner.spec == {"minReadySeconds": 3}
