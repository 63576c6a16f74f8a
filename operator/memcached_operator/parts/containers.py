"""The agent's container, errors of containers, and the fields of a spec that govern placement: data for messages."""

import re
from typing import Final

from memcached_api.remedies import NONE, Action, Direction, Remedy, added, assigned, corrected, lowered, raised, relaxed
from memcached_operator.findings.rules import OwnContainer
from memcached_operator.parts import agent

CREDENTIALS: Final = Action(
    "name a Secret with the registry's credentials in spec.imagePullSecrets",
    ("spec.imagePullSecrets",),
    Direction.ADDED,
)

MISSING_PROGRAM: Final = re.compile(r"executable file not found|no such file or directory")
"""The container runtime's errors for an image without the program of the container."""

ROOT: Final = re.compile(r"runAsNonRoot and image ")
"""The kubelet's errors for an image whose user is root or a name, and a container without `runAsUser` (kubernetes
pkg/kubelet/kuberuntime/security_context_others.go)."""

USER: Final = assigned("spec.podTemplate.spec.securityContext.runAsUser")

AGENT: Final = OwnContainer(
    image="spec.agent.image",
    credentials=CREDENTIALS,
    memory=(raised("spec.agent.resources.limits.memory"),),
    start=((MISSING_PROGRAM, (corrected("spec.agent.image"),)), (ROOT, (USER,))),
    ports=frozenset({agent.METRICS_PORT_NAME, agent.PROBES_PORT_NAME}),
)

SURGE: Final[Remedy] = (
    Action(
        "set spec.rollout.maxSurge to 0 and spec.rollout.maxUnavailable to 1, so that one pod fewer serves during the "
        "rollout, or none with a size of 1",
        ("spec.rollout.maxSurge", "spec.rollout.maxUnavailable"),
    ),
)
"""The remedy for a quota that has too little left for the additional pod of a rollout. Both fields, because admission
has set `maxUnavailable` of a Memcached to 0, and rejects two zeros."""

REPAIR: Final = "repair or uncordon the node if the taint begins with node.kubernetes.io"
"""The remedy for a taint that Kubernetes sets for a condition of the node, and sets again. Since release 1.35, the
scheduler does not name the taint."""

TOLERATE: Final = added("spec.podTemplate.spec.tolerations")
TAINT: Final[Remedy] = (
    TOLERATE._replace(text=f"{REPAIR}, otherwise {TOLERATE.text}"),
    Action("remove the taint"),
)
ADD_NODE: Final = Action("add a node")
UNCORDON: Final[Remedy] = (Action("uncordon a node"), Action("add one"))
FREE: Final = Action("free this resource on the node")
MORE_MEMORY: Final = Action(
    "raise spec.resources.requests.memory to what the pod uses", ("spec.resources.requests.memory",), Direction.UP
)

STORAGE: Final = "local storage usage exceeds the total limit of containers"
CONTAINER_STORAGE: Final = "exceeded its local ephemeral storage limit"
"""The messages of a kubelet that evicts a pod because of a limit (kubernetes pkg/kubelet/eviction)."""


def disruptions(less: Remedy = NONE) -> dict[str, Remedy]:
    """The remedy by a part of the reason and of the message with which Kubernetes stops pods.

    `less`: how to write less to the log; none if a spec has no field for it.
    """
    storage = Action(
        "raise ephemeral-storage in spec.resources.limits or, for the container agent, in spec.agent.resources.limits",
        ("spec.resources.limits.ephemeral-storage", "spec.agent.resources.limits.ephemeral-storage"),
        Direction.UP,
    )
    priority = Action(
        "set spec.podTemplate.spec.priorityClassName to a class with a higher priority",
        ("spec.podTemplate.spec.priorityClassName",),
    )
    selector = "spec.podTemplate.spec.nodeSelector"
    others = (Action("keep the nodes running"), Action(f"select others in {selector}", (selector,)))
    return {
        STORAGE: (storage, *less),
        CONTAINER_STORAGE: (storage, *less),
        "low on resource: memory": (MORE_MEMORY, ADD_NODE),
        "low on resource: ": (FREE, ADD_NODE),
        "The node had condition: ": (FREE, ADD_NODE),
        "PreemptionByScheduler: ": (ADD_NODE, priority),
        "Preempting: ": (ADD_NODE, priority),
        "DeletionByTaintManager: ": TAINT,
        "node shutdown": others,
        "NodeShutdown: ": others,
    }


def scheduling(memory: Remedy, others: Remedy) -> dict[str, Remedy]:
    """The remedy by a part of the scheduler's message. These parts are the same in Kubernetes 1.30 to 1.37.

    A part that contains another one comes before it. `memory`: if nodes have too little of it. `others`: if the
    anti-affinity of existing pods keeps a pod away.
    """
    constraints = "spec.podTemplate.spec.topologySpreadConstraints"
    return {
        "were unschedulable": UNCORDON,
        "Insufficient cpu": (lowered("spec.resources.requests.cpu"), ADD_NODE),
        "Insufficient memory": memory,
        "untolerated taint": TAINT,
        "node affinity/selector": (
            corrected("spec.podTemplate.spec.nodeSelector", "spec.podTemplate.spec.affinity"),
            Action("label a node"),
        ),
        "constraints (missing required label)": (
            Action(f"label the nodes with the topologyKey of {constraints}"),
            Action("correct it", (constraints,)),
        ),
        "topology spread constraints": (relaxed(constraints), ADD_NODE),
        "match pod anti-affinity": (relaxed("spec.podTemplate.spec.affinity"), ADD_NODE),
        "existing pods anti-affinity": others,
        "Too many pods": (ADD_NODE,),
    }
