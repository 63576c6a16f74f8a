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

LOSS: Final = "its items are then lost"
"""The consequence if a pod whose memcached runs is deleted."""
