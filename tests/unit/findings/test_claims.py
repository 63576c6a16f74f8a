"""Why claims of volumes are not created or bound: which pods wait for them, what is read, and what is reported."""

from dataclasses import replace
from typing import Final

import pytest

from memcached_api import conditions as c
from memcached_operator.engine.kind import Outcome
from memcached_operator.findings.event_reads import MAX_PODS, Late, late
from memcached_operator.findings.obstacles import CLAIM_PERIOD
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.status import status_with
from memcached_operator.world import kept_fields
from unit.builders import NOW, deleted, memcached, pod, snapshot_of, typed
from unit.findings.test_mounts import ago, condition, event, messages

UNCREATED: Final = (
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "sessions-0-extstore". not found'
)
UNBOUND: Final = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
VOLUMES: Final[list[Object]] = [
    {"name": "podinfo", "downwardAPI": {"items": []}},
    {"name": "extstore", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
]
DISK: Final[Object] = {"identity": "Stable", "cache": {"memory": "256Mi", "extstore": {"size": "1Gi"}}}
QUOTA: Final = (
    'ephemeral volume extstore: create PVC sessions-0-extstore: persistentvolumeclaims "sessions-0-extstore" is '
    "forbidden: exceeded quota: small, requested: requests.storage=1Gi, used: requests.storage=0, limited: "
    "requests.storage=512Mi"
)
RAISE: Final = "raise ResourceQuota small, which has an effect within 17 minutes, or at once for a new pod"
CLAIMS_QUOTA: Final = QUOTA.replace("requested: requests.storage=1Gi", "requested: count/persistentvolumeclaims=1")
TAKEN: Final = "PVC test/sessions-0-extstore was not created for pod test/sessions-0 (pod is not owner)"
RANGE: Final = "minimum storage usage per PersistentVolumeClaim is 5Gi, but request is 1Gi"


def pending(message: str = UNCREATED, name: str = "sessions-0", since: float = 60) -> Object:
    """A pod that was created `since` seconds ago and is on no node, as the operator keeps it."""
    conditions = [{**condition("PodScheduled", since, "False"), "message": message}] if message else []
    found = pod(name, phase="Pending", conditions=conditions)
    meta = {**found["metadata"], "creationTimestamp": ago(since)}
    return kept_fields.pod({**found, "metadata": meta, "spec": {"containers": [], "volumes": VOLUMES}})


def reads(*pods: Object) -> list[Late]:
    """The reads of Events about these pods."""
    return late(snapshot_of(memcached(**DISK), pods=pods), {}, NOW)


PODS: Final[dict[str, tuple[list[Object], list[tuple[str, float]]]]] = {
    "a claim that is not created": ([pending()], [("sessions-0", 0.0)]),
    "a claim that is not bound": ([pending(UNBOUND)], [("sessions-0", 0.0)]),
    "a pod that the scheduler has not reported": ([pending("")], [("sessions-0", 0.0)]),
    "a normal start": ([pending(since=5)], [("sessions-0", 10.0)]),
    "a volume that is provided": ([pending("", since=16)], [("sessions-0", 29.0)]),
    "a pod without a claim": ([{**pending(), "spec": {}}], []),
    "a pod without a node for another reason": ([pending("0/1 nodes are available: 1 Insufficient cpu.")], []),
    "a pod that is being deleted": ([deleted(pending())], []),
    "a pod on a node": (
        [pod("sessions-0", conditions=[condition("PodScheduled", 60)]) | {"spec": pending()["spec"]}],
        [],
    ),
    "the pods that wait longest": (
        [pending(name=name, since=since) for name, since in (("d", 60), ("c", 61), ("b", 62), ("a", 16))],
        [(name, 0.0) for name in ("b", "c", "d")],
    ),
}


@pytest.mark.parametrize(("pods", "expected"), PODS.values(), ids=PODS.keys())
def test_pods_that_wait_for_claims_are_late(pods: list[Object], expected: list[tuple[str, float]]) -> None:
    assert [(each.uid, each.after) for each in reads(*pods)] == expected
    assert len(expected) <= MAX_PODS


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (UNCREATED, "involvedObject.uid=sessions-0,source=ephemeral_volume,reason=FailedBinding"),
        (
            TAKEN,
            "involvedObject.uid=sessions-0,source=ephemeral_volume,reason=FailedBinding",
        ),
        (
            UNBOUND,
            "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=sessions-0-extstore,reason=ProvisioningFailed",
        ),
    ],
)
def test_events_about_the_pod_say_why_a_claim_is_not_created_and_others_why_it_is_not_bound(
    message: str, fields: str
) -> None:
    (found,) = reads(pending(message))
    assert found.source.fields.format(found.uid) == fields
    assert found.source.subject("any", "any", found) == "sessions-0"
    assert found.source.subject(" ", "any", found) is None


MESSAGES: Final = {
    "a quota": (pending(), QUOTA, f"{QUOTA}; {RAISE}, or lower spec.cache.extstore.size"),
    "a quota of claims": (pending(), CLAIMS_QUOTA, f"{CLAIMS_QUOTA}; {RAISE}, or lower spec.size"),
    "a claim of another owner": (
        pending(TAKEN),
        TAKEN,
        f"{TAKEN}; delete PersistentVolumeClaim sessions-0-extstore if",
    ),
    "a volume that another program adds": (
        pending(),
        QUOTA.replace("extstore:", "scratch:"),
        f"{QUOTA}; {RAISE}".replace("extstore:", "scratch:"),
    ),
    "a range": (pending(), RANGE, f"{RANGE}; change the LimitRange, or change spec.cache.extstore.size"),
    "a missing class": (
        pending(UNBOUND),
        'storageclass.storage.k8s.io "fast" not found',
        'storageclass.storage.k8s.io "fast" not found; create StorageClass fast, or correct '
        "spec.cache.extstore.storageClassName",
    ),
    "the words of a driver": (pending(""), "rpc error: no space", "rpc error: no space"),
}


@pytest.mark.parametrize(("obj", "text", "expected"), MESSAGES.values(), ids=MESSAGES.keys())
def test_cause_is_reported_until_the_claim_is_bound(obj: Object, text: str, expected: str) -> None:
    known = messages(event("an earlier one", 30), event(text, 5))
    observed = snapshot_of(memcached(**DISK), pods=[obj], messages=known)
    degraded = status_with("cluster.local")(observed, Outcome(), NOW).status["conditions"][2]
    assert degraded["reason"] == c.APPLY_FAILED
    assert degraded["message"].startswith(f"Pod sessions-0: its volume cannot be claimed: {expected}")
    bound = replace(observed, pods=typed(pod("sessions-0", conditions=[condition("PodScheduled", 60)])))
    assert "claimed" not in str(status_with("cluster.local")(bound, Outcome(), NOW).status)


def test_events_of_an_earlier_claim_of_this_name_do_not_count() -> None:
    observed = snapshot_of(memcached(**DISK), pods=[pending(since=60)], messages=messages(event(QUOTA, 61)))
    assert "claimed" not in str(status_with("cluster.local")(observed, Outcome(), NOW).status)


@pytest.mark.parametrize(
    "message", [UNCREATED, UNBOUND, 'persistentvolumeclaim "sessions-0-extstore" is being deleted']
)
def test_claim_that_is_new_is_no_obstacle(message: str) -> None:
    def available(since: float) -> str:
        observed = snapshot_of(memcached(**DISK), pods=[pending(message, since=since)])
        return status_with("cluster.local")(observed, Outcome(), NOW).status["conditions"][0]["message"]

    assert CLAIM_PERIOD.total_seconds() == 15
    assert "cannot be scheduled" not in available(14)
    assert "cannot be scheduled" in available(15)
