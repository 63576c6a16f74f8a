"""The state of a Deployment, from its status, as in `kubectl rollout status`."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from memcached_operator.kind import Snapshot, Update
from memcached_operator.kube.resource import DEPLOYMENTS, Object, controller_of, nested_list, nested_map
from memcached_operator.workloads.rollout import Rollout, WorkloadType, counted


class _Deployment:
    resource = DEPLOYMENTS

    def owns(self, pod: Object, workload: Object) -> bool:
        """True for a pod of a ReplicaSet of the Deployment."""
        controller = controller_of(pod)
        if controller is None or controller["kind"] != "ReplicaSet":
            return False
        template = nested_map(pod, "metadata", "labels").get("pod-template-hash")
        return controller["name"] == f"{workload['metadata']['name']}-{template}"

    def rollout(self, snapshot: Snapshot, update: Update | None, now: datetime) -> Rollout:  # noqa: ARG002 - its controller has a clock
        """The rollout, from the counts and conditions of the Deployment controller."""
        live = snapshot.child(DEPLOYMENTS)
        return Rollout() if live is None else rollout_of(live)


DEPLOYMENT: Final[WorkloadType] = _Deployment()
"""The workload of a kind whose pods are interchangeable."""


def rollout_of(deployment: Object) -> Rollout:
    """The rollout of a live Deployment."""
    found = counted(deployment)
    conditions = {condition["type"]: condition for condition in nested_list(deployment, "status", "conditions")}
    failure = nested_map(conditions, "ReplicaFailure")
    return replace(
        found,
        complete=found.current and found.size == found.replicas == found.updated == found.available_pods,
        deadline_exceeded=nested_map(conditions, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        replica_failure=failure.get("message", "") if failure.get("status") == "True" else "",
    )
