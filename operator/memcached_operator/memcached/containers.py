"""The containers of a Memcached's pods, and the fields of its spec that govern each: data for messages."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from memcached_api.memcached.extstore import EMPTY_DIR
from memcached_api.remedies import Action, Direction, Remedy, assigned, corrected, lowered, raised, text_of
from memcached_operator.findings.creation_remedies import METADATA
from memcached_operator.findings.rules import OwnContainer
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired import pods
from memcached_operator.memcached.losses import loss_with
from memcached_operator.memcached.spec import checked
from memcached_operator.parts import agent
from memcached_operator.parts.containers import (
    ADD_NODE,
    AGENT,
    CREDENTIALS,
    MISSING_PROGRAM,
    ROOT,
    USER,
    disruptions,
    scheduling,
)

MISSING_SHELL: Final = re.compile(r'exec: "sh": executable file not found')
"""The container runtime's error for an image without the program `sh`."""

USAGE: Final = 64
"""EX_USAGE, with which memcached ends if it cannot use its arguments or its certificate (memcached.c, 1.6.45)."""

FAILURE: Final = 1
"""EXIT_FAILURE, with which memcached ends if it cannot open or lock its file on a disk (storage.c, 1.6.45)."""

OTHER_IMAGE: Final = Action(
    "spec.cache.warmRestart needs an image with the program sh: use another image", ("spec.image",)
)

CONTAINERS: Final[Mapping[str, OwnContainer]] = {
    pods.CONTAINER: OwnContainer(
        image="spec.image",
        credentials=CREDENTIALS,
        memory=(raised("spec.resources.limits.memory"),),
        start=(
            (MISSING_SHELL, (OTHER_IMAGE, Action("set it to false", ("spec.cache.warmRestart",)))),
            (MISSING_PROGRAM, (corrected("spec.image"),)),
            (ROOT, (USER,)),
        ),
        exits={USAGE: "memcached rejects an option, or the certificate or the key in the Secret of spec.tls"},
    ),
    agent.CONTAINER: AGENT,
}
"""By the name of the container."""

CONTAINERS_WITH_DISK: Final[Mapping[str, OwnContainer]] = {
    **CONTAINERS,
    pods.CONTAINER: replace(
        CONTAINERS[pods.CONTAINER],
        exits={
            **CONTAINERS[pods.CONTAINER].exits,
            FAILURE: "its log says why memcached cannot use the disk of spec.cache.extstore. If it is denied, set "
            "spec.podTemplate.spec.securityContext.fsGroup, otherwise delete the pod, so that it gets another disk. "
            "Its items are lost",
        },
    ),
}
"""The same with items on a disk."""

SCHEDULING: Final = scheduling(
    memory=(lowered("spec.cache.memory", "spec.resources.requests.memory"), ADD_NODE),
    others=(
        ADD_NODE,
        Action(
            "set spec.rollout.maxUnavailable to 100%, which replaces all pods at once: their items are lost",
            ("spec.rollout.maxUnavailable",),
            Direction.UP,
        ),
    ),
)
"""The remedy by a part of the scheduler's message."""

EXTSTORE: Final = "spec.cache.extstore"
LESS_DISK: Final = lowered("spec.cache.extstore.size")
CLAIM: Final = Action("set spec.cache.extstore.volume to Claim", ("spec.cache.extstore.volume",))
CHOOSE_CLASS: Final = assigned("spec.cache.extstore.storageClassName")
DEFAULT_CLASS: Final = Action("mark a StorageClass as the default one")
ADD_VOLUME: Final = Action("add a volume of this StorageClass")
OTHER_CLASS: Final = corrected("spec.cache.extstore.storageClassName")


def disk_scheduling(disk: Mapping[str, Any]) -> Mapping[str, Remedy]:
    """The same of pods with items on a disk (kubernetes pkg/scheduler/framework/plugins/volumebinding, 1.30 to 1.35).

    `disk`: `spec.cache.extstore`, which may be invalid.
    """
    on_node = disk.get("volume") == EMPTY_DIR
    unbound = (OTHER_CLASS,) if disk.get("storageClassName") else (CHOOSE_CLASS, DEFAULT_CLASS)
    storage = (LESS_DISK, CLAIM) if on_node else (lowered("spec.resources.requests.ephemeral-storage"),)
    return {
        "unbound immediate PersistentVolumeClaims": unbound,
        "didn't find available persistent volumes to bind": (OTHER_CLASS, ADD_VOLUME),
        "did not have enough free storage": (LESS_DISK, OTHER_CLASS, ADD_NODE),
        "Insufficient ephemeral-storage": (*storage, ADD_NODE),
    }


DISRUPTIONS: Final = disruptions(less=(lowered("spec.cache.verbosity"),))
"""The remedy by a part of the reason and of the message with which Kubernetes stops pods."""

LOSS: Final = "its items are then lost"
"""The consequence if a pod whose memcached runs is deleted."""


def template_remedy(cr: Object) -> str:
    """The remedy if a policy requires a label or an annotation of the pod template, with the loss by it."""
    return f"{text_of(METADATA)}{loss_with(checked(cr)[0])(METADATA)}"
