from dataclasses import replace

import msgspec
import pytest

from memcached_api.annotations import RECORD_ANNOTATION
from memcached_api.memcached.types import MemcachedStatus
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.reporting.conditions import with_transition_times
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import DEPLOYMENTS, Object, key_of
from memcached_operator.memcached.status import status_with
from unit.builders import NOW, container, memcached, pod, rolled_out, running_again, snapshot_of, waiting

status = status_with("cluster.example")
LIVE = rolled_out()
OBSERVED = snapshot_of(memcached(), {key_of(DEPLOYMENTS, LIVE): LIVE}, (pod("b"), pod("c"), pod("a")))


def test_counts_of_the_deployment_and_names_of_live_pods() -> None:
    found = status(OBSERVED, Outcome(), NOW).status
    conditions = found.pop("conditions")
    assert found == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "selector": "app.kubernetes.io/instance=cache,app.kubernetes.io/managed-by=memcached-operator,"
        "app.kubernetes.io/name=memcached",
        "nodes": ["a", "b", "c"],
        "cache": {"memory": "64Mi", "maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4},
    }
    assert [(each["type"], each["status"]) for each in conditions] == [
        ("Available", "True"),
        ("Progressing", "False"),
        ("Degraded", "False"),
        ("Ready", "True"),
    ]


@pytest.mark.parametrize(("generation", "updated"), [(2, 3), (3, 0)], ids=["current", "of an earlier generation"])
def test_pods_are_updated_once_the_deployment_has_observed_its_template(generation: int, updated: int) -> None:
    live = {**LIVE, "metadata": {**LIVE["metadata"], "generation": generation}}
    snapshot = snapshot_of(memcached(), {key_of(DEPLOYMENTS, live): live})
    assert status(snapshot, Outcome(), NOW).status["updatedReplicas"] == updated


def test_status_without_children() -> None:
    found = status(snapshot_of(memcached()), Outcome(), NOW).status
    assert (found["replicas"], found["readyReplicas"], found["nodes"]) == (0, 0, [])


DISKS: tuple[tuple[Object, Object | None], ...] = (
    ({}, None),
    ({"extstore": {"size": "1Gi"}}, {"file": "896Mi", "volume": "Claim"}),
    ({"extstore": {"size": "4Ti", "volume": "EmptyDir"}}, {"file": "3774848Mi", "volume": "EmptyDir"}),
)
"""Fields of `spec.cache`, and the field `status.cache.extstore`: 90 % of the volume in whole pages of 64Mi."""


@pytest.mark.parametrize(("cache", "disk"), DISKS)
def test_status_matches_the_api_type(cache: Object, disk: Object | None) -> None:
    spec: Object = {"cache": {"memory": "9Gi", **cache}, "identity": "Stable"} if cache else {}
    found: Object = {
        "servers": [],
        "scaling": None,
        **status(replace(OBSERVED, cr=memcached(**spec)), Outcome(), NOW).status,
    }
    assert found["cache"].get("extstore") == disk
    found["conditions"] = with_transition_times([], found["conditions"], NOW)
    assert msgspec.to_builtins(msgspec.convert(found, MemcachedStatus)) == found


def test_crash_sets_requeue_after() -> None:
    snapshot = snapshot_of(memcached(), {key_of(DEPLOYMENTS, LIVE): LIVE}, (running_again("2030-01-01T11:59:50Z"),))
    assert status(snapshot, Outcome(), NOW).requeue_after == 20.0


@pytest.mark.parametrize(("program", "expected"), [("sh", True), ("memcached", False)])
def test_image_without_a_shell(program: str, expected: bool) -> None:
    error = waiting("RunContainerError", f'exec: "{program}": executable file not found in $PATH: unknown')
    found = status(snapshot_of(memcached(), pods=(pod(containerStatuses=[error]),)), Outcome(), NOW).status
    message = found["conditions"][2]["message"]
    assert ("spec.cache.warmRestart needs an image with the program sh" in message) == expected


RESTARTS = ((1, 0, "a", False), (0, 0, "a", False), (9, 0, "b", True), (0, 0, "b", True), (1, 137, "a", True))


@pytest.mark.parametrize(("count", "code", "ended", "crashed"), RESTARTS)
def test_restart_by_an_update_is_no_crash(count: int, code: int, ended: str, crashed: bool) -> None:
    last = {"exitCode": code, "reason": "Completed", "containerID": ended}
    state = {**container({"running": {}}, ended=last), "restartCount": count}
    found = pod(containerStatuses=[state])
    record = {RECORD_ANNOTATION: '{"revision":"r","restarts":{"memcached":{"id":"a"}}}'}
    spec = {"containers": [{"name": "memcached", "image": "example.com/memcached:1"}]}
    updated = {**found, "metadata": {**found["metadata"], "annotations": record}, "spec": spec}
    conditions = status(snapshot_of(memcached(), pods=(updated,)), Outcome(), NOW).status["conditions"]
    assert conditions[2]["status"] == str(crashed)


def test_no_requeue_if_nothing_expires() -> None:
    assert status(OBSERVED, Outcome(), NOW).requeue_after is None


@pytest.mark.parametrize(
    ("spec", "before", "expected"),
    [
        (
            {"resources": {"limits": {"memory": "2Gi"}}, "cache": {"maxItemSize": 8 * 2**20, "threads": 8}},
            None,
            {"memory": "1467Mi", "maxItemSize": "8Mi", "maxConnections": 1024, "threads": 8},
        ),
        (
            {"cache": {"memory": "1Gi"}},
            None,
            {"memory": "1Gi", "maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4},
        ),
        # An invalid spec leaves the pods as they are.
        ({"size": 0}, {"memory": "1Gi"}, {"memory": "1Gi"}),
        ({"size": 0}, None, None),
    ],
)
def test_settings_in_effect(spec: Object, before: Object | None, expected: Object | None) -> None:
    cr = {**memcached(**spec), "status": {"cache": before} if before else {}}
    assert status(snapshot_of(cr), Outcome(), NOW).status.get("cache") == expected


TERM: Object = {"topologyKey": "a", "labelSelector": {}, "namespaces": ["b"]}
KEYS: Object = {"matchLabelKeys": ["pod-template-hash"], "mismatchLabelKeys": ["c"]}
REMOVED = "spec.podTemplate.spec.affinity: this API server removes matchLabelKeys and mismatchLabelKeys"
FAILED = Outcome((Problem("ApplyFailed", "denied"),))
LABEL_KEYS: dict[str, tuple[Object, Object, Outcome, bool]] = {
    "removed": ({}, TERM, Outcome(), True),
    "kept": ({}, TERM | KEYS, Outcome(), False),
    "another affinity is stored": ({}, TERM | {"topologyKey": "d"}, Outcome(), False),
    "not applied": ({}, TERM, FAILED, False),
    "not applied during a pause": ({"rollout": {"paused": True}}, TERM, Outcome(), False),
}


def affinities(term: Object) -> tuple[Object, ...]:
    """Affinities with this term."""
    weighted = {"weight": 5, "podAffinityTerm": term}
    return (
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}},
    )


@pytest.mark.parametrize(("spec", "term", "outcome", "reported"), LABEL_KEYS.values(), ids=LABEL_KEYS.keys())
def test_removed_label_keys_are_reported(spec: Object, term: Object, outcome: Outcome, reported: bool) -> None:
    for wanted, stored in zip(affinities(TERM | KEYS), affinities(term), strict=True):
        live = {**LIVE, "spec": {**LIVE["spec"], "template": {"spec": {"affinity": stored}}}}
        cr = memcached(podTemplate={"spec": {"affinity": wanted}}, **spec)
        found = status(snapshot_of(cr, {key_of(DEPLOYMENTS, live): live}), outcome, NOW).status
        assert (REMOVED in found["conditions"][2]["message"]) == reported
        corrected = snapshot_of(memcached(**spec), {key_of(DEPLOYMENTS, live): live})
        assert REMOVED not in status(corrected, outcome, NOW).status["conditions"][2]["message"]


def test_remedy_for_an_image_names_the_field_of_this_kind() -> None:
    stuck = pod(containerStatuses=[waiting("ErrImagePull", "unauthorized")])
    snapshot = snapshot_of(memcached(), {key_of(DEPLOYMENTS, LIVE): LIVE}, (stuck,))
    degraded = status(snapshot, Outcome(), NOW).status["conditions"][2]
    assert degraded["reason"] == "ImageUnavailable"
    loss = "Changing spec.image or spec.imagePullSecrets replaces the pods, and their items are lost"
    assert degraded["message"].endswith(f"in spec.imagePullSecrets. {loss}")
