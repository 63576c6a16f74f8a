"""The agent's container, errors of containers, and the fields of a spec that govern placement: data for messages."""

import re
from typing import Final

from memcached_operator.shared import agent
from memcached_operator.workloads.rules import OwnContainer

CREDENTIALS: Final = "name a Secret with the registry's credentials in spec.imagePullSecrets"

MISSING_PROGRAM: Final = re.compile(r"executable file not found|no such file or directory")
"""The container runtime's errors for an image without the program of the container."""

ROOT: Final = re.compile(r"runAsNonRoot and image ")
"""The kubelet's errors for an image whose user is root or a name, and a container without `runAsUser` (kubernetes
pkg/kubelet/kuberuntime/security_context_others.go)."""

USER: Final = "set spec.podTemplate.spec.securityContext.runAsUser"

AGENT: Final = OwnContainer(
    image="spec.agent.image",
    credentials=CREDENTIALS,
    memory="raise spec.agent.resources.limits.memory",
    start=((MISSING_PROGRAM, "correct spec.agent.image"), (ROOT, USER)),
    ports=frozenset({agent.METRICS_PORT_NAME, agent.PROBES_PORT_NAME}),
)

SURGE: Final = (
    "set spec.rollout.maxSurge to 0 and spec.rollout.maxUnavailable to 1, so that one pod fewer serves during the "
    "rollout, or none with a size of 1"
)
"""The remedy for a quota that has too little left for the additional pod of a rollout. Both fields, because admission
has set `maxUnavailable` of a Memcached to 0, and rejects two zeros."""

METADATA: Final = "spec.podTemplate.metadata"
"""The field with the labels and annotations of the pods."""

REPAIR: Final = "repair or uncordon the node if the taint begins with node.kubernetes.io"
"""The remedy for a taint that Kubernetes sets for a condition of the node, and sets again. Since release 1.35, the
scheduler does not name the taint."""


STORAGE: Final = "local storage usage exceeds the total limit of containers"
CONTAINER_STORAGE: Final = "exceeded its local ephemeral storage limit"
"""The messages of a kubelet that evicts a pod because of a limit (kubernetes pkg/kubelet/eviction)."""


def disruptions(less: str = "") -> dict[str, str]:
    """The remedy by a part of the reason and of the message with which Kubernetes stops pods.

    `less`: how to write less to the log, as the end of a remedy; empty if a spec has no field for it.
    """
    storage = (
        "raise ephemeral-storage in spec.resources.limits or, for the container agent, in "
        f"spec.agent.resources.limits{less}"
    )
    priority = "add a node, or set spec.podTemplate.spec.priorityClassName to a class with a higher priority"
    select = "keep the nodes running, or select others in spec.podTemplate.spec.nodeSelector"
    return {
        STORAGE: storage,
        CONTAINER_STORAGE: storage,
        "low on resource: memory": "raise spec.resources.requests.memory to what the pod uses, or add a node",
        "low on resource: ": "free this resource on the node, or add a node",
        "The node had condition: ": "free this resource on the node, or add a node",
        "PreemptionByScheduler: ": priority,
        "Preempting: ": priority,
        "DeletionByTaintManager: ": (f"{REPAIR}, otherwise add spec.podTemplate.spec.tolerations, or remove the taint"),
        "node shutdown": select,
        "NodeShutdown: ": select,
    }


def scheduling(memory: str, others: str) -> dict[str, str]:
    """The remedy by a part of the scheduler's message. These parts are the same in Kubernetes 1.30 to 1.37.

    A part that contains another one comes before it. `memory`: if nodes have too little of it. `others`: if the
    anti-affinity of existing pods keeps a pod away.
    """
    return {
        "were unschedulable": "uncordon a node, or add one",
        "Insufficient cpu": "lower spec.resources.requests.cpu, or add a node",
        "Insufficient memory": memory,
        "untolerated taint": f"{REPAIR}, otherwise add spec.podTemplate.spec.tolerations, or remove the taint",
        "node affinity/selector": "correct spec.podTemplate.spec.nodeSelector or affinity, or label a node",
        "constraints (missing required label)": (
            "label the nodes with the topologyKey of spec.podTemplate.spec.topologySpreadConstraints, or correct it"
        ),
        "topology spread constraints": "relax spec.podTemplate.spec.topologySpreadConstraints, or add a node",
        "match pod anti-affinity": "relax spec.podTemplate.spec.affinity, or add a node",
        "existing pods anti-affinity": others,
        "Too many pods": "add a node",
    }
