"""Updates in place that the cluster rejects or that a node does not make, and the remedies in their messages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from memcached_operator.engine.kind import PodStep
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.confirmation import REPLACE_IT
from memcached_operator.memcached.updates.patches import CAPACITY_REMEDY, DENIED_ADDED, DENIED_REMEDY
from unit.memcached.walks.cluster import OPERATOR, Cluster
from unit.memcached.walks.test_remedies import (
    LIMITED,
    MINUTE,
    MORE,
    REPLACE,
    request_less,
    restart,
    set_back,
    spec,
    started,
)

HEALTHY: Final = "All components are healthy"


class Rejecting(Cluster):
    """A cluster in which a quota can reject resizes. `rejects`: of which pods. `rejected`: the steps."""

    def __init__(self, *arguments: Any) -> None:
        self.rejects: set[str] = set()
        self.rejected: list[PodStep] = []
        super().__init__(*arguments)

    def _make(self, step: PodStep) -> None:
        if step.subresource == "resize" and step.pod.name in self.rejects and self._exceeds(step):
            self.rejected.append(step)
            self.wake(OPERATOR, MINUTE)
        else:
            super()._make(step)

    def _exceeds(self, step: PodStep) -> bool:
        """Whether a resize exceeds the quota: all but lower ones."""
        return "15m" not in str(step.patch)


def accept(cluster: Rejecting) -> None:
    """Correct what rejects the resizes."""
    cluster.rejects = set()


def uids(cluster: Cluster) -> dict[str, str]:
    """The pods."""
    return {name: kubelet.pod["metadata"]["uid"] for name, kubelet in cluster.kubelets.items()}


ALL: Final = {"cache-0", "cache-1"}
REJECTED: Final[dict[str, tuple[Object, set[str], str, Callable[[Any], None], set[str]]]] = {
    "previous values": (MORE, ALL, DENIED_REMEDY, set_back, set()),
    "corrected": (MORE, ALL, DENIED_REMEDY, accept, set()),
    "added, corrected": (LIMITED, {"cache-0"}, DENIED_ADDED, accept, set()),
    "added, previous values": (LIMITED, {"cache-0"}, DENIED_ADDED, set_back, {"cache-1"}),
}
"""The change, the pods whose resizes are rejected, the message, the remedy, and the pods that it replaces."""


@pytest.mark.parametrize(("change", "rejects", "says", "remedy", "replaced"), REJECTED.values(), ids=REJECTED.keys())
def test_rejected_resize_ends_with_its_remedy(
    change: Object, rejects: set[str], says: str, remedy: Callable[[Any], None], replaced: set[str]
) -> None:
    """No pod is deleted before: a new one could be rejected, too."""
    cluster, checks = started(Rejecting)
    cluster.rejects = rejects
    before = uids(cluster)
    cluster.change_spec(spec(**change))
    cluster.run(5 * MINUTE)
    assert {step.denied_remedy for step in cluster.rejected} == {says}
    assert uids(cluster) == before
    remedy(cluster)
    cluster.run(5 * MINUTE)
    checks.end(complete=True)
    assert cluster.status()["Degraded"]["message"] == HEALTHY
    assert {name for name, uid in uids(cluster).items() if uid != before[name]} == replaced


@pytest.mark.parametrize(("remedy", "replaced"), [(request_less, set[str]()), (restart, ALL)])
def test_resize_that_a_node_has_no_capacity_for_ends_with_its_remedy(
    remedy: Callable[[Any], None], replaced: set[str]
) -> None:
    cluster, checks = started(Rejecting)
    cluster.rejects = ALL
    before = uids(cluster)
    cluster.change_spec(spec(**LIMITED))
    cluster.run(5 * MINUTE)
    assert {step.capacity_remedy for step in cluster.rejected} == {f"{CAPACITY_REMEDY}. {REPLACE}"}
    remedy(cluster)
    cluster.run(5 * MINUTE)
    checks.end(complete=True)
    assert cluster.status()["Degraded"]["message"] == HEALTHY
    assert {name for name, uid in uids(cluster).items() if uid != before[name]} == replaced


def test_update_that_a_node_does_not_make_ends_when_the_pod_is_deleted() -> None:
    cluster, checks = started()
    cluster.kubelets["cache-1"].down = cluster.now + timedelta(minutes=12)
    cluster.change_spec(spec(image="memcached:2"))
    cluster.run(11 * MINUTE)
    message = cluster.status()["Degraded"]["message"]
    assert "this was not confirmed within 10 minutes" in message
    assert REPLACE_IT in message
    cluster.delete("cache-1")
    cluster.run(20 * MINUTE)
    checks.end(complete=True)
    assert cluster.status()["Degraded"]["message"] == HEALTHY
