"""The state of a Deployment, from its status, as in `kubectl rollout status`."""

from dataclasses import replace
from typing import Final

from memcached_operator.findings.rollout import Rollout, counted
from memcached_operator.kube.resource import DEPLOYMENTS, Object, nested_list, nested_map
from memcached_operator.world.kind import WorkloadType
from memcached_operator.world.pod import Head


class _Deployment:
    resource = DEPLOYMENTS

    def owns(self, pod: Head, workload: Object) -> bool:
        """True for a pod of a ReplicaSet of the Deployment."""
        controller = pod.controller
        if controller is None or controller.kind != "ReplicaSet":
            return False
        template = pod.labels.get("pod-template-hash")
        return controller.name == f"{workload['metadata']['name']}-{template}"


DEPLOYMENT: Final[WorkloadType] = _Deployment()
"""The workload of a kind whose pods are interchangeable."""


def deployment_rollout(live: Object | None) -> Rollout:
    """The rollout of a live Deployment, from the counts and conditions of its controller. `live`: None without one."""
    counts = counted(DEPLOYMENTS.kind, live)
    conditions = {condition["type"]: condition for condition in nested_list(live or {}, "status", "conditions")}
    return replace(
        counts,
        complete=counts.current and counts.size == counts.replicas == counts.updated == counts.available_pods,
        deadline_exceeded=nested_map(conditions, "Progressing").get("reason") == "ProgressDeadlineExceeded",
    )
