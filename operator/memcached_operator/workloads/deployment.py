"""The state of a Deployment, from its status, as in `kubectl rollout status`."""

from datetime import datetime
from typing import Final

from memcached_operator.kind import Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, Object, controller_of, nested_list, nested_map
from memcached_operator.workloads.rollout import Rollout, WorkloadType, has_minimum


class _Deployment:
    resource = DEPLOYMENTS

    def owns(self, pod: Object, workload: Object) -> bool:
        """True for a pod of a ReplicaSet of the Deployment."""
        controller = controller_of(pod)
        if controller is None or controller["kind"] != "ReplicaSet":
            return False
        template = nested_map(pod, "metadata", "labels").get("pod-template-hash")
        return controller["name"] == f"{workload['metadata']['name']}-{template}"

    def rollout(self, snapshot: Snapshot, now: datetime) -> Rollout:  # noqa: ARG002 - its controller has a clock
        """The rollout, from the counts and conditions of the Deployment controller."""
        live = snapshot.child(DEPLOYMENTS)
        return Rollout() if live is None else rollout_of(live)


DEPLOYMENT: Final[WorkloadType] = _Deployment()
"""The workload of a kind whose pods are interchangeable."""


def rollout_of(deployment: Object) -> Rollout:
    """The rollout of a live Deployment."""
    status = nested_map(deployment, "status")
    conditions = {condition["type"]: condition for condition in nested_list(deployment, "status", "conditions")}
    failure = nested_map(conditions, "ReplicaFailure")
    size, available_pods = deployment["spec"].get("replicas", 1), status.get("availableReplicas", 0)
    replicas, updated = status.get("replicas", 0), status.get("updatedReplicas", 0)
    current = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    available = nested_map(conditions, "Available").get("status") == "True"
    return Rollout(
        exists=True,
        size=size,
        replicas=replicas,
        updated=updated,
        ready=status.get("readyReplicas", 0),
        available_pods=available_pods,
        current=current,
        # Until the Deployment controller observes a new size, its condition refers to the old one; compute it instead.
        available=available if current else has_minimum(available_pods, size),
        complete=current and size == replicas == updated == available_pods,
        deadline_exceeded=nested_map(conditions, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        replica_failure=failure.get("message", "") if failure.get("status") == "True" else "",
    )
