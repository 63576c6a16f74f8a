from datetime import timedelta

import pytest

from memcached_api.shared.rules.placing import RESTARTED_AT
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Key, Object, Resource
from memcached_operator.memcached.interventions import interventions
from memcached_operator.world import kept_fields
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW, memcached, owned, snapshot_of

UPDATES = "Pod resources updated by vpa-cache: container 0: memory request"


def restarted(resource: Resource, at: str) -> Snapshot:
    """A Memcached whose workload has kubectl's annotation."""
    template = {"metadata": {"annotations": {RESTARTED_AT: at}}}
    child = {**owned(resource=resource), "spec": {"template": template}}
    return snapshot_of(memcached(), {Key(resource, "test", "cache"): child})


@pytest.mark.parametrize(
    ("resource", "effect"),
    [
        (DEPLOYMENTS, "Deployment cache at 2030-01-01T11:50:00+00:00 replaced its pods, and their items are lost"),
        (STATEFULSETS, "StatefulSet cache at 2030-01-01T11:50:00+00:00 had no effect"),
    ],
)
def test_restart_by_kubectl_is_reported_with_the_remedy_for_an_hour(resource: Resource, effect: str) -> None:
    at = NOW - timedelta(minutes=10)
    (found,), ends = interventions(restarted(resource, at.isoformat()), NOW)
    assert effect in found.message
    assert "kubectl memcached restart cache -n test, or set spec.rollout.restartedAt" in found.message
    assert ends == 50 * 60


ENDED = {
    "an hour ago": timestamp(NOW - timedelta(hours=1)),
    "in the future": timestamp(NOW + timedelta(hours=1)),
    "no time": "yesterday\n",
    "empty": "",
}


@pytest.mark.parametrize("at", ENDED.values(), ids=ENDED.keys())
def test_restart_that_is_not_reported(at: str) -> None:
    assert interventions(restarted(DEPLOYMENTS, at), NOW) == ((), None)


def test_restart_by_a_fast_clock_is_reported() -> None:
    assert interventions(restarted(DEPLOYMENTS, timestamp(NOW + timedelta(minutes=1))), NOW)[0]


def test_restart_by_the_spec_is_no_intervention() -> None:
    at = timestamp(NOW)
    snapshot = restarted(DEPLOYMENTS, at)
    snapshot.cr["spec"]["rollout"] = {"restartedAt": at}
    assert interventions(snapshot, NOW) == ((), None)


def pod(minutes: int, **annotations: str) -> Object:
    """A pod as it is cached, created some minutes ago."""
    created = timestamp(NOW - timedelta(minutes=minutes))
    return kept_fields.pod({"metadata": {"name": "cache-0", "creationTimestamp": created, "annotations": annotations}})


@pytest.mark.parametrize(
    ("annotations", "name"),
    [
        ({"vpaUpdates": UPDATES}, "VerticalPodAutoscaler vpa-cache changes"),
        ({"vpaInPlaceUpdated": "true"}, "A VerticalPodAutoscaler changes"),
    ],
)
def test_vertical_autoscaler_is_reported(annotations: dict[str, str], name: str) -> None:
    snapshot = snapshot_of(memcached(), pods=(pod(90, **annotations), pod(20, **annotations), pod(5)))
    (found,), ends = interventions(snapshot, NOW)
    assert found.message.startswith(name)
    assert "spec.updatePolicy.updateMode to Off" in found.message
    assert ends == 40 * 60


@pytest.mark.parametrize("created", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_pod_of_any_time_raises_no_error(created: str) -> None:
    obj = pod(1, vpaUpdates=UPDATES)
    obj["metadata"]["creationTimestamp"] = created
    assert len(interventions(snapshot_of(memcached(), pods=(obj,)), NOW)[0]) == created.startswith("9")


def test_long_annotation_of_a_pod_is_cut() -> None:
    text = f"Pod resources updated by {'x' * 2000}"
    kept = pod(1, vpaUpdates=text, other=text)
    assert len(kept["metadata"]["annotations"]["vpaUpdates"]) == 300
    assert "other" not in kept["metadata"]["annotations"]
    (found,), _ = interventions(snapshot_of(memcached(), pods=(kept,)), NOW)
    assert len(found.message) < 1024


@pytest.mark.parametrize("changed", [pod(61, vpaUpdates=UPDATES), pod(5, vpaObservedContainers="memcached")])
def test_pod_that_no_vertical_autoscaler_changed_lately(changed: Object) -> None:
    assert interventions(snapshot_of(memcached(), pods=(changed,)), NOW) == ((), None)
