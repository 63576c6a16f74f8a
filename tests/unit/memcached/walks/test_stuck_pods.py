"""Updates in place that the cluster rejects or that a node does not make, and the remedies in their messages."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from memcached_operator.kind import PodStep, Resize
from memcached_operator.memcached.updates.confirmation import REPLACE_IT
from memcached_operator.memcached.updates.patches import DENIED_REMEDY
from unit.memcached.walks.cluster import OPERATOR, Cluster
from unit.memcached.walks.invariants import Checks
from unit.memcached.walks.test_remedies import MINUTE, MORE, set_back, spec

HEALTHY: Final = "All components are healthy"


class Rejecting(Cluster):
    """A cluster in which a quota can reject resizes. `rejected`: the steps that it has rejected."""

    def __init__(self, *arguments: Any) -> None:
        self.rejects = False
        self.rejected: list[PodStep] = []
        super().__init__(*arguments)

    def _make(self, step: PodStep) -> None:
        if self.rejects and step.subresource == "resize":
            self.rejected.append(step)
            self.wake(OPERATOR, MINUTE)
        else:
            super()._make(step)


def started(kind: type[Cluster] = Cluster) -> tuple[Any, Checks]:
    """A cluster with a complete cache."""
    checks = Checks()
    cluster = kind(random.Random(0), spec(), Resize.ANY, checks.step)  # noqa: S311 - no secret
    checks.cluster = cluster
    cluster.run(2 * MINUTE)
    return cluster, checks


def accept(cluster: Rejecting) -> None:
    """Correct what rejects the resizes."""
    cluster.rejects = False


@pytest.mark.parametrize("remedy", [set_back, accept])
def test_rejected_resize_ends_with_its_remedy(remedy: Callable[[Any], None]) -> None:
    """No pod is deleted: a new one could be rejected, too."""
    cluster, checks = started(Rejecting)
    cluster.rejects = True
    uids = {name: kubelet.pod["metadata"]["uid"] for name, kubelet in cluster.kubelets.items()}
    cluster.change_spec(spec(**MORE))
    cluster.run(5 * MINUTE)
    assert {step.denied_remedy for step in cluster.rejected} == {DENIED_REMEDY}
    remedy(cluster)
    cluster.run(5 * MINUTE)
    checks.end(complete=True)
    assert cluster.status()["Degraded"]["message"] == HEALTHY
    assert {name: kubelet.pod["metadata"]["uid"] for name, kubelet in cluster.kubelets.items()} == uids


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
