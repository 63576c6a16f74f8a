"""The container of an AppService's pods, and the fields of its spec that govern it: data for messages."""

import re
from typing import Final

from memcached_operator.shared.containers import CONTAINER_STORAGE, REPAIR, STORAGE
from memcached_operator.workloads.rules import OwnContainer

MISSING_ENV: Final = re.compile(r"(?:secret|configmap) \".*\" not found|couldn't find key .* in (?:Secret|ConfigMap)")
"""The kubelet's errors for a variable whose value is missing (kubernetes pkg/kubelet/kubelet_pods.go)."""

MISSING_PROGRAM: Final = re.compile(r"executable file not found|no such file or directory|no command specified")
"""The container runtime's errors for an image without the program that it names."""

CONTAINER: Final = OwnContainer(
    image="spec.image",
    credentials=(
        "name a Secret with the registry's credentials in imagePullSecrets of the ServiceAccount default, and delete "
        "the pod"
    ),
    memory="raise spec.resources.limits.memory, or reduce the memory use of the process",
    start=((MISSING_ENV, "create it, or correct spec.envs"), (MISSING_PROGRAM, "correct spec.image")),
)
"""It has the name of the object."""

LESS: Final = "raise ephemeral-storage in spec.resources.limits, or let the process write less to its files and its log"

DISRUPTIONS: Final = {
    STORAGE: LESS,
    CONTAINER_STORAGE: LESS,
    "low on resource: memory": "raise spec.resources.requests.memory to what the pod uses, or add a node",
    "low on resource: ": "free this resource on the node, or add a node",
    "The node had condition: ": "free this resource on the node, or add a node",
    "PreemptionByScheduler: ": "add a node",
    "Preempting: ": "add a node",
    "DeletionByTaintManager: ": f"{REPAIR}, otherwise remove the taint, or add a node",
}
"""The remedy by a part of the reason and of the message with which Kubernetes stops pods, as for a Memcached."""

SCHEDULING: Final = {
    "were unschedulable": "uncordon a node, or add one",
    "Insufficient cpu": "lower spec.resources.requests.cpu, or add a node",
    "Insufficient memory": "lower spec.resources.requests.memory, or add a node",
    "untolerated taint": f"{REPAIR}, otherwise remove the taint, or add a node",
    "Too many pods": "add a node",
}
"""The remedy by a part of the scheduler's message, as for a Memcached."""
