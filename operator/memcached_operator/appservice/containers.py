"""The container of an AppService's pods, and the fields of its spec that govern it: data for messages."""

import re
from collections.abc import Mapping
from typing import Final

from memcached_api.remedies import Action, Direction, Remedy, corrected, lowered, raised
from memcached_operator.findings.rules import OwnContainer
from memcached_operator.parts.containers import (
    ADD_NODE,
    CONTAINER_STORAGE,
    FREE,
    MORE_MEMORY,
    REPAIR,
    STORAGE,
    UNCORDON,
)

MISSING_ENV: Final = re.compile(r"(?:secret|configmap) \".*\" not found|couldn't find key .* in (?:Secret|ConfigMap)")
"""The kubelet's errors for a variable whose value is missing (kubernetes pkg/kubelet/kubelet_pods.go)."""

MISSING_PROGRAM: Final = re.compile(r"executable file not found|no such file or directory|no command specified")
"""The container runtime's errors for an image without the program that it names."""

CONTAINER: Final = OwnContainer(
    image="spec.image",
    credentials=Action(
        "name a Secret with the registry's credentials in imagePullSecrets of the ServiceAccount default, and delete "
        "the pod"
    ),
    memory=(raised("spec.resources.limits.memory"), Action("reduce the memory use of the process")),
    start=(
        (MISSING_ENV, (Action("create it"), corrected("spec.envs"))),
        (MISSING_PROGRAM, (corrected("spec.image"),)),
    ),
)
"""It has the name of the object."""

LACKS: Final = ("spec.agent", "spec.podTemplate")
"""The sections that its spec does not have, but those of the other kinds."""

TAINT: Final[Remedy] = (Action(f"{REPAIR}, otherwise remove the taint"), ADD_NODE)
LESS: Final[Remedy] = (
    Action(
        "raise ephemeral-storage in spec.resources.limits",
        ("spec.resources.limits.ephemeral-storage",),
        Direction.UP,
    ),
    Action("let the process write less to its files and its log"),
)

DISRUPTIONS: Final[Mapping[str, Remedy]] = {
    STORAGE: LESS,
    CONTAINER_STORAGE: LESS,
    "low on resource: memory": (MORE_MEMORY, ADD_NODE),
    "low on resource: ": (FREE, ADD_NODE),
    "The node had condition: ": (FREE, ADD_NODE),
    "PreemptionByScheduler: ": (ADD_NODE,),
    "Preempting: ": (ADD_NODE,),
    "DeletionByTaintManager: ": TAINT,
}
"""The remedy by a part of the reason and of the message with which Kubernetes stops pods, as for a Memcached."""

SCHEDULING: Final[Mapping[str, Remedy]] = {
    "were unschedulable": UNCORDON,
    "Insufficient cpu": (lowered("spec.resources.requests.cpu"), ADD_NODE),
    "Insufficient memory": (lowered("spec.resources.requests.memory"), ADD_NODE),
    "untolerated taint": TAINT,
    "Too many pods": (ADD_NODE,),
}
"""The remedy by a part of the scheduler's message, as for a Memcached."""
