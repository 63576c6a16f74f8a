"""The agent's container, errors of containers, and the fields of a spec that govern placement: data for messages."""

import re
from typing import Final

from memcached_api.remedies import Action, Direction, Remedy, added, assigned, corrected, lowered, raised, relaxed
from memcached_operator.shared import agent
from memcached_operator.workloads.rules import OwnContainer

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

REPAIR: Final = "repair or uncordon the node if the taint begins with node.kubernetes.io"
"""The remedy for a taint that Kubernetes sets for a condition of the node, and sets again. Since release 1.35, the
scheduler does not name the taint."""


ADD_NODE: Final = Action("add a node")
UNCORDON: Final[Remedy] = (Action("uncordon a node"), Action("add one"))


def scheduling(memory: Remedy, others: Remedy) -> dict[str, Remedy]:
    """The remedy by a part of the scheduler's message. These parts are the same in Kubernetes 1.30 to 1.37.

    `memory`: if nodes have too little of it. `others`: if the anti-affinity of existing pods keeps a pod away.
    """
    tolerations = added("spec.podTemplate.spec.tolerations")
    return {
        "were unschedulable": UNCORDON,
        "Insufficient cpu": (lowered("spec.resources.requests.cpu"), ADD_NODE),
        "Insufficient memory": memory,
        "untolerated taint": (
            tolerations._replace(text=f"{REPAIR}, otherwise {tolerations.text}"),
            Action("remove the taint"),
        ),
        "node affinity/selector": (
            corrected("spec.podTemplate.spec.nodeSelector", "spec.podTemplate.spec.affinity"),
            Action("label a node"),
        ),
        "topology spread constraints": (relaxed("spec.podTemplate.spec.topologySpreadConstraints"), ADD_NODE),
        "match pod anti-affinity": (relaxed("spec.podTemplate.spec.affinity"), ADD_NODE),
        "existing pods anti-affinity": others,
        "Too many pods": (ADD_NODE,),
    }
