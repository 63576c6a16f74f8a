"""The containers of a Memcached's pods, and the fields of its spec that govern each: data for messages."""

import re
from collections.abc import Mapping
from typing import Final

from memcached_operator.memcached.desired import agent, pods
from memcached_operator.workloads.rules import OwnContainer

CREDENTIALS: Final = "name a Secret with the registry's credentials in spec.imagePullSecrets"

MISSING_SHELL: Final = re.compile(r'exec: "sh": executable file not found')
"""The container runtime's error for an image without the program `sh`."""

MISSING_PROGRAM: Final = re.compile(r"executable file not found|no such file or directory")
"""The container runtime's errors for an image without the program of the container."""

ROOT: Final = re.compile(r"runAsNonRoot and image ")
"""The kubelet's errors for an image whose user is root or a name, and a container without `runAsUser` (kubernetes
pkg/kubelet/kuberuntime/security_context_others.go)."""

USER: Final = "set spec.podTemplate.spec.securityContext.runAsUser"

CONTAINERS: Final[Mapping[str, OwnContainer]] = {
    pods.CONTAINER: OwnContainer(
        image="spec.image",
        credentials=CREDENTIALS,
        memory="raise spec.resources.limits.memory",
        start=(
            (
                MISSING_SHELL,
                "spec.cache.warmRestart needs an image with the program sh: use another image, or set it to false",
            ),
            (MISSING_PROGRAM, "correct spec.image"),
            (ROOT, USER),
        ),
    ),
    agent.CONTAINER: OwnContainer(
        image="spec.agent.image",
        credentials=CREDENTIALS,
        memory="raise spec.agent.resources.limits.memory",
        start=((MISSING_PROGRAM, "correct spec.agent.image"), (ROOT, USER)),
        ports=frozenset({agent.METRICS_PORT_NAME, agent.PROBES_PORT_NAME}),
    ),
}
"""By the name of the container."""

SCHEDULING: Final = {
    "were unschedulable": "uncordon a node, or add one",
    "Insufficient cpu": "lower spec.resources.requests.cpu, or add a node",
    "Insufficient memory": "lower spec.cache.memory or spec.resources.requests.memory, or add a node",
    "untolerated taint": "add spec.podTemplate.spec.tolerations, or remove the taint",
    "node affinity/selector": "correct spec.podTemplate.spec.nodeSelector or affinity, or label a node",
    "topology spread constraints": "relax spec.podTemplate.spec.topologySpreadConstraints, or add a node",
    "match pod anti-affinity": "relax spec.podTemplate.spec.affinity, or add a node",
    "existing pods anti-affinity": (
        "add a node, or set spec.rollout.maxUnavailable to 100%, which replaces all pods at once: their items are lost"
    ),
    "Too many pods": "add a node",
}
"""The remedy by a part of the scheduler's message. These parts are the same in Kubernetes 1.30 to 1.37."""

LOSS: Final = "its items are then lost"
"""The consequence if a pod whose memcached runs is deleted."""
